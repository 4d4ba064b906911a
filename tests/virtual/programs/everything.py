"""A training that is recorded in every way, and runs out of memory in its last step.

everything.py RUN
"""

import sys

import torch
from torch import nn

import memboard as mb

model = nn.Sequential(
    nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512), nn.LayerNorm(512)
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
CONFIG = {
    "modules": True,
    "schedule": {"warmup": 2, "active": 2},
    "torch_profiler": {
        "enabled": True,
        "num_traces_to_keep": 1,
        "filename": "rank{rank}.{batch}.pt.trace.json.gz",
    },
}


@mb.profiled
def training_step(batch: torch.Tensor) -> torch.Tensor:
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


kept = []
with mb.record(sys.argv[1], model=model, optimizer=optimizer, config=CONFIG) as rec:
    for step in range(12):
        with rec.span("load"):
            batch = torch.randn(4096, 512, device="cuda")
        training_step(batch)
        kept.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
        rec.step(samples=len(batch))
        print("step", step, flush=True)
    kept.append(torch.empty(100 << 30, dtype=torch.uint8, device="cuda"))
