"""A training that waits for its dataloader, whose workers eat the host's memory.

    python examples/dataloader_bound.py --logdir runs
    tensorboard --logdir runs

Each worker decodes slowly and keeps what it decoded (a cache, as many datasets have). In
the MemBoard tab, Host shows the workers' memory growing, and Timeline a step time that
more workers shorten: try --workers 4. `rec.loader` counts the batches and `rec.epoch`
and `rec.phase` say where training stands.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import memboard as mb

WIDTH = 256
SAMPLE_ELEMENTS = WIDTH * WIDTH


class DecodedImages(Dataset[torch.Tensor]):
    """Images that take time to decode and stay in the worker that decoded them."""

    def __init__(self, num_images: int, decode_seconds: float) -> None:
        self._num_images = num_images
        self._decode_seconds = decode_seconds
        self._cache: dict[int, torch.Tensor] = {}

    def __len__(self) -> int:
        return self._num_images

    def __getitem__(self, index: int) -> torch.Tensor:
        if index not in self._cache:
            time.sleep(self._decode_seconds)
            random = torch.Generator().manual_seed(index)
            # 32 copies stand for the large intermediate results of a real decoder.
            decoded = torch.rand(32, SAMPLE_ELEMENTS, generator=random)
            self._cache[index] = decoded
        return self._cache[index][0]


def train(run_dir: Path, *, num_epochs: int, num_images: int, num_workers: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(SAMPLE_ELEMENTS, 64), nn.ReLU(), nn.Linear(64, SAMPLE_ELEMENTS)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loader = DataLoader(
        DecodedImages(num_images, decode_seconds=0.01),
        batch_size=4,
        num_workers=num_workers,
        persistent_workers=num_workers > 0,
    )
    with mb.record(run_dir, model=model, optimizer=optimizer) as rec:
        batches = rec.loader(loader)
        for epoch in range(num_epochs):
            rec.epoch(epoch, length=len(loader))
            for batch in batches:
                loss = functional.mse_loss(model(batch), batch)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                rec.step(samples=len(batch))
            # Steps of a phase have rows of their own; training continues behind it.
            with rec.phase("val"), torch.no_grad():
                held_out = torch.rand(4, SAMPLE_ELEMENTS)
                loss = functional.mse_loss(model(held_out), held_out)
                rec.step()
            print(f"epoch {epoch}, validation loss {loss.item():.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logdir", type=Path, default=Path("runs"))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    train(
        options.logdir / "dataloader-bound",
        num_epochs=options.epochs,
        num_images=options.images,
        num_workers=options.workers,
    )
    print(f"Look at it: tensorboard --logdir {options.logdir}")


if __name__ == "__main__":
    main()
