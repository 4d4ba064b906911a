"""A limit on the process refuses what the device has.

limit.py RUN [--fraction F]
"""

import argparse

import torch

import memboard as mb

parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("--fraction", type=float, default=0.4)
options = parser.parse_args()

torch.cuda.set_per_process_memory_fraction(options.fraction)
with mb.record(options.run) as rec:
    for step in range(3):
        batch = [
            torch.empty(128 << 20, dtype=torch.uint8, device="cuda") for _ in range(16)
        ]
        del batch
        rec.step()
        print("step", step, flush=True)
