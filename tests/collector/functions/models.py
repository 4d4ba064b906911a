"""A small model whose numbers are known, what hangs on it, and its recorded training."""

from __future__ import annotations

import torch
from torch import nn

import memboard as mb
from tests.collector.recordings import ONLY_STEPS, read_only_file

BATCH = 4


def mlp():
    """32 -> 64 -> 8: saved are 512, 1024, 1024 (again) and 2048 B (a weight's view)."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))


def batch(size=BATCH):
    return torch.randn(size, 32)


def fingerprint(model):
    """Names of all attributes, and every dictionary of hooks, by module."""
    return {
        path: {
            name: dict(value) if "hooks" in name and isinstance(value, dict) else None
            for name, value in vars(module).items()
        }
        for path, module in model.named_modules()
    }


PROFILED = {**ONLY_STEPS, "functions": True}


def record(run_dir, **keywords):
    return mb.record(run_dir, **{**PROFILED, **keywords})


class Trainer:
    """A model whose steps are profiled methods, as a trainer would have them."""

    def __init__(self):
        self.model = mlp()
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    @mb.profiled("training_step")
    def training_step(self, size=4):
        return self.model(batch(size)).sum()

    @mb.profiled("validation_step")
    def validation_step(self):
        with torch.no_grad():
            return self.model(batch()).sum()

    def fit(self, rec, num_epochs=1, num_batches=4, num_val=0):
        for epoch in range(num_epochs):
            rec.epoch(epoch, num_batches)
            for _ in range(num_batches):
                self.training_step().backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                rec.step(samples=4)
            with rec.phase("val"):
                for _ in range(num_val):
                    self.validation_step()
                    rec.step()


def run(tmp_path, trainer=None, fit=None, **keywords):
    trainer = trainer or Trainer()
    with record(
        tmp_path / "run", model=trainer.model, optimizer=trainer.optimizer, **keywords
    ) as rec:
        trainer.fit(rec, **(fit or {}))
    return read_only_file(tmp_path / "run")
