"""A Lightning training that records itself: one callback, nothing else changes.

    python examples/lightning_trainer.py --logdir runs
    tensorboard --logdir runs

The callback records into the logger's directory. In the MemBoard tab, Timeline shows the
training with its sanity check and validation as phases of their own, and Calls the
memory of a whole step: forward, backward and optimizer.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from memboard.integrations.lightning import MemBoardCallback

WIDTH = 256


class Autoencoder(pl.LightningModule):
    """Squeezes its input through a narrow layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH)
        )

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        """Return the loss of a batch."""
        del batch_idx
        return functional.mse_loss(self.layers(batch[0]), batch[0])

    def validation_step(self, batch: list[torch.Tensor], batch_idx: int) -> None:
        """Log the loss of a batch."""
        self.log("val_loss", self.training_step(batch, batch_idx))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def train(logdir: Path, num_epochs: int) -> None:
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(256, WIDTH))
    trainer = pl.Trainer(
        max_epochs=num_epochs,
        accelerator="auto",
        devices=1,
        logger=CSVLogger(logdir, name="autoencoder"),
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[MemBoardCallback()],
    )
    trainer.fit(Autoencoder(), DataLoader(data, batch_size=16), DataLoader(data, 64))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logdir", type=Path, default=Path("runs"))
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    train(arguments.logdir, arguments.epochs)


if __name__ == "__main__":
    main()
