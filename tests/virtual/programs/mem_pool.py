"""A MemPool of the program's own that has cached memory, and an ordinary request.

mem_pool.py RUN [--inside] [--release]
"""

import argparse

import torch

import memboard as mb

parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("--inside", action="store_true")
parser.add_argument("--release", action="store_true")
options = parser.parse_args()
MIB = 1 << 20

pool = torch.cuda.MemPool()
with mb.record(options.run) as rec:
    with torch.cuda.use_mem_pool(pool):
        buffers = [
            torch.empty(256 * MIB, dtype=torch.uint8, device="cuda") for _ in range(8)
        ]
    rec.step()
    print("step 0", flush=True)
    del buffers
    if options.release:
        del pool
        torch.cuda.empty_cache()
    if options.inside:
        with torch.cuda.use_mem_pool(pool):
            held = torch.empty(3072 * MIB, dtype=torch.uint8, device="cuda")
    else:
        held = torch.empty(2560 * MIB, dtype=torch.uint8, device="cuda")
    rec.step()
    print("step 1", flush=True)
