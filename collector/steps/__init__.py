"""What the training loop says of itself, and the objects it is handed for that.

- `progress`: steps, phases, epochs, tokens and samples;
- `spans`: named stretches of code;
- `loader`: a dataloader that counts its batches;
- `attached`: what is said of model and optimizer;
- `compiled`: how torch.compile is told to leave these calls alone.
"""
