"""Keeps small blocks between large ones: when these go, no gap is large.

fragmented.py RUN
"""

import sys

import torch

import memboard as mb

MIB = 1 << 20


def features(mebibytes):
    return torch.empty(mebibytes * MIB, dtype=torch.uint8, device="cuda")


kept, pieces = [], []
with mb.record(sys.argv[1]) as rec:
    longest = [features(900) for _ in range(4)]
    del longest
    rec.step()
    print("step 0", flush=True)
    for _ in range(12):
        pieces.append(features(230))
        kept.append(features(60))
    pieces.clear()
    rec.step()
    print("step 1", flush=True)
    features(700)
    rec.step()
    print("step 2", flush=True)
