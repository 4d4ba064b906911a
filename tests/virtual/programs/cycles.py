"""Each batch is kept by an object that refers to itself, until the collector finds it.

cycles.py RUN [--break] [--collect N] [--keep N] [--steps N] [--mib N] [--disable N]
"""

import argparse
import gc

import torch

import memboard as mb

parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("--break", dest="breaks", action="store_true")
parser.add_argument("--collect", type=int, default=0)
parser.add_argument("--keep", type=int, default=0)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--mib", type=int, default=4)
parser.add_argument("--disable", type=int, default=-1)
options = parser.parse_args()


class Batch:
    """Its callback holds it."""

    def __init__(self, number):
        self.values = torch.empty(options.mib << 18, device="cuda")
        self.notes = [{"number": number, "place": [place]} for place in range(8)]
        if not options.breaks:
            self.callback = self.used

    def used(self):
        return self.values.numel()


static = torch.empty(8 << 20, dtype=torch.float32, device="cuda")
kept = []
with mb.record(options.run) as rec:
    for step in range(options.steps):
        if step == options.disable:
            gc.disable()
        batch = Batch(step)
        batch.used()
        if options.keep:
            kept.append(torch.empty(1 << 20, dtype=torch.float32, device="cuda"))
            if step % options.keep == options.keep - 1:
                kept.clear()
        del batch
        if options.collect and step % options.collect == options.collect - 1:
            gc.collect()
        rec.step()
        print("step", step, flush=True)
