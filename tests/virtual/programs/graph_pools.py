"""Two CUDA graphs whose passes need the same memory; in one pool they share it.

graph_pools.py RUN [--share]
"""

import argparse

import torch

import memboard as mb

parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("--share", action="store_true")
options = parser.parse_args()


def forward(tokens):
    hidden = tokens.repeat(1, 8)
    return hidden.sum()


static = torch.zeros(64 * 1024, 1024, device="cuda")  # 256 MiB
pool = torch.cuda.graph_pool_handle() if options.share else None
graphs = []
with mb.record(options.run) as rec:
    for step in range(3):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            out = forward(static)
        graphs.append((graph, out))
        rec.step()
        print("step", step, flush=True)
