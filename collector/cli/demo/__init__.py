"""`memboard demo`: a small real training, or a simulated run."""
