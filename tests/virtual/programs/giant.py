"""All scores of attention in one piece; in chunks they fit.

giant.py RUN [--chunks N]
"""

import argparse

import torch

import memboard as mb

parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("--chunks", type=int, default=1)
options = parser.parse_args()


def attend(queries, keys):
    out = torch.empty_like(queries)
    for part, into in zip(
        queries.chunk(options.chunks), out.chunk(options.chunks), strict=True
    ):
        scores = part @ keys.T
        into.copy_(scores @ keys)
    return out


with mb.record(options.run) as rec, torch.no_grad():
    for step, length in enumerate((4096, 4096, 4096, 32768)):
        tokens = torch.randn(length, 128, device="cuda")
        attend(tokens, tokens)
        rec.step()
        print("step", step, flush=True)
