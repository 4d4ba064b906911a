"""A training of 6 GiB, which fits if nobody else is on the device.

beside.py RUN
"""

import sys

import torch

import memboard as mb

with mb.record(sys.argv[1]) as rec:
    for step in range(3):
        batch = [
            torch.empty(256 << 20, dtype=torch.uint8, device="cuda") for _ in range(24)
        ]
        del batch
        rec.step()
        print("step", step, flush=True)
