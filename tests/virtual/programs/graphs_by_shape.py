"""A CUDA graph for every new length: each has a pool of its own, and all are kept.

graphs_by_shape.py RUN [--share] [--buckets]
"""

import argparse

import torch

import memboard as mb

parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("--share", action="store_true")
options = parser.parse_args()


def forward(tokens):
    hidden = tokens.repeat(1, 2)
    return hidden.sum()


static = torch.zeros(64 * 1024, 256, device="cuda")  # 64 MiB
pool = torch.cuda.graph_pool_handle() if options.share else None
graphs = {}
with mb.record(options.run) as rec:
    for step in range(40):
        length = 64 * 1024 - 512 * step
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            out = forward(static[:length])
        graphs[length] = graph, out
        rec.step()
        print("step", step, flush=True)
