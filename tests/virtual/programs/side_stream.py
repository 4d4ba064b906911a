"""Frees memory on a side stream, which alone may use it again.

side_stream.py RUN
"""

import sys

import torch

import memboard as mb

MIB = 1 << 20


def block(mebibytes):
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")


with mb.record(sys.argv[1]) as rec:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        whole = block(1600)
        del whole
        buffer = block(1500)
        kept = block(60)
        del buffer
    rec.step()
    print("step 0", flush=True)
    weights = [block(200) for _ in range(8)]
    rec.step()
    print("step 1", flush=True)
    block(1200)
    rec.step()
    print("step 2", flush=True)
