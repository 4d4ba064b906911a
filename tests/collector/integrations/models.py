"""Small things to train: as little as a trainer takes."""

from __future__ import annotations

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(pl.LightningModule):
    def __init__(self, fail_at: int | None = None) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.fail_at = fail_at

    def forward(self, x):
        return self.layer(x)

    def training_step(self, batch, batch_idx):
        if batch_idx == self.fail_at:
            raise RuntimeError("the batch is bad")
        return self(batch[0]).sum()

    def validation_step(self, batch, batch_idx):
        self(batch[0])

    test_step = validation_step

    def predict_step(self, batch, batch_idx):
        return self(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class TwoOptimizers(Regression):
    """As GANs train: by hand, each optimizer its own half."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.other = nn.Linear(4, 2)

    def training_step(self, batch, batch_idx):
        for optimizer, layer in zip(
            self.optimizers(), (self.layer, self.other), strict=True
        ):
            optimizer.zero_grad()
            self.manual_backward(layer(batch[0]).sum())
            optimizer.step()

    def configure_optimizers(self):
        return [
            torch.optim.SGD(self.layer.parameters(), lr=0.1),
            torch.optim.AdamW(self.other.parameters(), lr=0.1),
        ]


def batches(number: int, size: int = 3):
    return DataLoader(TensorDataset(torch.ones(number * size, 4)), batch_size=size)
