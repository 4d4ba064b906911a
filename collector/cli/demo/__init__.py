"""`memboard demo`: a simulated run, and a small real training beside it."""
