"""A Lightning training with the real MemProfiler, or with MemBoard in its place.

    python -m tests.peers.programs.memprofiler_training SETTINGS

SETTINGS is JSON: `recorder` ("memprofiler" or "memboard"), `folder`, `memprofiler_cfg` (a
mapping, as in a YAML file) and `batches`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import lightning
import torch
from fts_examples.profiling.config import (
    MemProfilerCfg,
    MemProfilerFuncs,
    MemProfilerSchedule,
)
from fts_examples.profiling.memprofiler import MemProfiler
from fts_examples.profiling.profiler_hooks_mixin import ProfilerHooksMixin
from torch.utils.data import DataLoader, TensorDataset

import collector


class Base(lightning.LightningModule):
    def __init__(self, **more) -> None:
        super().__init__(**more)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)
        )

    def forward(self, batch):
        return self.layers(batch)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

    def loss(self, batch):
        return self(batch[0]).square().mean()


class Theirs(ProfilerHooksMixin, Base):
    @MemProfiler.memprofilable
    def training_step(self, batch, index):
        return self.loss(batch)

    @MemProfiler.memprofilable
    def validation_step(self, batch, index):
        return self.loss(batch)


class Ours(Base):
    @collector.profiled
    def training_step(self, batch, index):
        return self.loss(batch)

    @collector.profiled
    def validation_step(self, batch, index):
        return self.loss(batch)


def configured(plain: dict) -> MemProfilerCfg:
    """As jsonargparse makes it of a YAML file."""
    plain = dict(plain)
    if "collect_funcs" in plain:
        functions = {name: set(of) for name, of in plain["collect_funcs"].items()}
        plain["collect_funcs"] = MemProfilerFuncs(**functions)
    if "schedule" in plain:
        plain["schedule"] = MemProfilerSchedule(**plain["schedule"])
    return MemProfilerCfg(**plain)


def main(settings: dict) -> None:
    torch.manual_seed(0)
    folder, plain = Path(settings["folder"]), settings["memprofiler_cfg"]
    data = DataLoader(TensorDataset(torch.randn(32 * settings["batches"], 64)), 32)
    trainer = lightning.Trainer(
        default_root_dir=folder,
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    if settings["recorder"] == "memprofiler":
        model = Theirs(memprofiler_cfg=configured(plain))
        trainer.fit(model, data, data)
        return
    model = Ours()
    config = {"memprofiler_cfg": plain}
    with collector.record(folder, model=model, config=config):
        trainer.fit(model, data, data)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
