"""Small models whose numbers are known, and what hangs on a model."""

from __future__ import annotations

import torch
from torch import nn

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
