"""A training whose activations do not fit: a smaller batch, or recomputing, helps.

full.py RUN [--batch N] [--checkpoint]
"""

import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import memboard as mb

parser = argparse.ArgumentParser()
parser.add_argument("run")
parser.add_argument("--batch", type=int, default=24)
parser.add_argument("--checkpoint", action="store_true")
options = parser.parse_args()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(1024, 4096), nn.Linear(4096, 1024)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(8))

    def forward(self, x):
        for block in self.blocks:
            if options.checkpoint:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return x


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with mb.record(options.run, model=model, optimizer=optimizer) as rec:
    for step in range(4):
        batch = torch.randn(options.batch, 512, 1024, device="cuda")
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        rec.step()
        print("step", step, flush=True)
