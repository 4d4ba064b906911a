"""What is collected around calls of chosen functions, on a schedule.

- `contract`: what a kind of collecting is, and who takes what it finds;
- the rest: one file per kind, and the counters and windows that drive them.
"""
