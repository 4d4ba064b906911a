"""A plain training loop on one process, with the three lines that record it.

    python examples/plain_loop.py --logdir runs
    tensorboard --logdir runs

The three lines are marked. Everything else is a loop as you may have it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

import memboard as mb  # line 1


def train(run_dir: Path, *, num_steps: int, device: torch.device) -> float:
    """Learn the sine function; returns the last loss."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(1, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.zeros(())
    with mb.record(run_dir, model=model, optimizer=optimizer) as rec:  # line 2
        for step in range(num_steps):
            x = torch.rand(1024, 1, device=device) * 6 - 3
            loss = functional.mse_loss(model(x), torch.sin(x))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            rec.step()  # line 3
            if step % 50 == 0:
                print(f"step {step}, loss {loss.item():.4f}")
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logdir", type=Path, default=Path("runs"))
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    run_dir = options.logdir / "plain-loop"
    loss = train(run_dir, num_steps=options.steps, device=device)
    print(f"Last loss {loss:.4f}. Look at it: tensorboard --logdir {options.logdir}")


if __name__ == "__main__":
    main()
