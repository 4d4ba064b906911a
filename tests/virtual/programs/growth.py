"""A training that keeps what each step put out; numbers alone do not grow.

growth.py RUN [--numbers]
"""

import argparse

import torch
from torch import nn

import memboard as mb

parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("--numbers", action="store_true")
options = parser.parse_args()

model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
history = []
with mb.record(options.run, model=model, optimizer=optimizer) as rec:
    for step in range(40):
        out = model(torch.randn(16384, 1024, device="cuda"))
        out.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        history.append(out.mean().item() if options.numbers else out.detach())
        rec.step()
        print("step", step, flush=True)
