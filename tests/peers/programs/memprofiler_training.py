"""A Lightning training with the real MemProfiler, or with MemBoard in its place.

SETTINGS: `recorder` ("memprofiler" or "memboard"), `folder`, `memprofiler_cfg` (a mapping,
as in a YAML file), `batches`, and maybe `sharded`: the model of FSDP2's conformance list on
ranks of gloo, whose steps run "forward" alone in their function, or the "whole" of it. It
prints how many forward hooks are left on the model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning
import torch
import torch.distributed as dist
from fts_examples.profiling.config import (
    MemProfilerCfg,
    MemProfilerFuncs,
    MemProfilerSchedule,
)
from fts_examples.profiling.memprofiler import MemProfiler
from fts_examples.profiling.profiler_hooks_mixin import ProfilerHooksMixin
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from tests.collector.modules import models


class Plain(lightning.LightningModule):
    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)
        )

    def forward(self, batch):
        return self.layers(batch)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

    def work(self, batch):
        return self(batch[0]).square().mean()


class Sharded(lightning.LightningModule):
    """Backward and optimizer run where Lightning runs them: outside `training_step`."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.layers = models.Transformer()

    def configure_model(self) -> None:
        for layer in self.layers.layers:
            fully_shard(layer)
        fully_shard(self.layers)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())

    def work(self, batch):
        found = self.layers(batch[0])
        return cross_entropy(found.flatten(0, 1), batch[0].flatten())


class ShardedWhole(Sharded):
    """The whole step is in `training_step`."""

    automatic_optimization = False

    def work(self, batch):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(super().work(batch))
        optimizer.step()


MODELS = {"": Plain, "forward": Sharded, "whole": ShardedWhole}


def profiled_by(decorate: Any, *bases: type) -> type:
    """A module whose steps are functions to look at."""

    class Profiled(*bases):
        @decorate
        def training_step(self, batch, index):
            return self.work(batch)

        @decorate
        def validation_step(self, batch, index):
            return self.work(batch)

    return Profiled


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
    sharded = settings.get("sharded", "")
    base = MODELS[sharded]
    callbacks = []
    if settings["recorder"] == "memprofiler":
        made = profiled_by(MemProfiler.memprofilable, ProfilerHooksMixin, base)
        model = made(memprofiler_cfg=configured(plain))
    else:
        import memboard as mb
        from memboard.integrations.lightning import MemBoardCallback

        model = profiled_by(mb.profiled, base)()
        callbacks = [MemBoardCallback(folder, config={"memprofiler_cfg": plain})]
    if sharded:
        from tests.collector.modules.two_ranks import released

        # What gloo's threads still hold is not seen a moment earlier or later.
        dist.all_gather_single = released(dist.all_gather_single)
        dist.reduce_scatter_single = released(dist.reduce_scatter_single)
        data = TensorDataset(torch.randint(0, 1024, (8 * settings["batches"], 64)))
        strategy = ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1)
    else:
        data = TensorDataset(torch.randn(32 * settings["batches"], 64))
        strategy = "auto"
    loader = DataLoader(data, 4 if sharded else 32)
    trainer = lightning.Trainer(
        default_root_dir=folder,
        max_epochs=1,
        accelerator="cpu",
        devices=2 if sharded else 1,
        strategy=strategy,
        callbacks=callbacks,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        limit_val_batches=0 if sharded else None,
    )
    trainer.fit(model, loader, None if sharded else loader)
    kinds = ("_forward_pre_hooks", "_forward_hooks")
    print(sum(len(getattr(part, kind)) for part in model.modules() for kind in kinds))
