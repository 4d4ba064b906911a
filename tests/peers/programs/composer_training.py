"""A training of Composer's real Trainer, with its own profiler or with MemBoard's callback.

SETTINGS: `recorder` ("composer" or "memboard"), `folder`, `filename`, `schedule`
(of `cyclic_schedule`), `batches` of an epoch, `epochs`, `accumulate` (microbatches of a
batch), and maybe `save` (a folder for checkpoints), `load` (a checkpoint), `evaluate`
(after each epoch) and `lacking` (samples of an epoch's last batch that are not there).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from composer import Callback, Event, Trainer
from composer.models import ComposerModel
from composer.profiler import (
    JSONTraceHandler,
    Profiler,
    ProfilerAction,
    cyclic_schedule,
)
from composer.utils import dist, format_name_with_dist_and_time
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 4


class Net(ComposerModel):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
        )

    def forward(self, batch):
        return self.layers(batch[0])

    def loss(self, outputs, batch):
        return torch.nn.functional.cross_entropy(outputs, batch[1])


class Names(Callback):
    """Writes down Composer's own name of each moment at which its schedule saves."""

    def __init__(self, filename: str, schedule, path: Path) -> None:
        self.filename, self.schedule, self.path = filename, schedule, path
        self.saves = False
        self.first_batch = 0
        self.names: list[str] = []

    def run_event(self, event, state, logger) -> None:
        if event is Event.FIT_START:
            self.first_batch = int(state.timestamp.batch_in_epoch)
        elif event is Event.BATCH_START:
            # As its Profiler does, which counts from where an epoch was resumed.
            state.profiler = Resumption(self.first_batch)
            self.saves = self.schedule(state) is ProfilerAction.ACTIVE_AND_SAVE
            state.profiler = None
        elif event is Event.BATCH_END and self.saves:
            name = format_name_with_dist_and_time(
                self.filename, run_name=state.run_name, timestamp=state.timestamp
            )
            self.names.append(name)
            self.path.write_text(json.dumps(self.names))
        elif event is Event.EPOCH_END:
            self.first_batch = 0


class Resumption:
    def __init__(self, batch: int) -> None:
        self.resumption_batch_idx = batch


def main(settings: dict) -> None:
    folder = Path(settings["folder"])
    schedule = cyclic_schedule(**settings["schedule"])
    callbacks, profiler = [], None
    if settings["recorder"] == "composer":
        profiler = Profiler(
            schedule=schedule,
            trace_handlers=[JSONTraceHandler(folder=str(folder / "unified"))],
            torch_prof_folder=str(folder / "torch"),
            torch_prof_filename=settings["filename"],
            torch_prof_remote_file_name=None,
            sys_prof_memory=True,
        )
    else:
        from memboard.integrations.composer import MemBoardCallback

        callback = MemBoardCallback(
            folder / "run",
            torch_profiler={"filename": settings["filename"]},
            schedule={**settings["schedule"], "per_epoch": True},
        )
        rank = os.environ.get("RANK", "0")
        names = Names(settings["filename"], schedule, folder / f"names{rank}.json")
        callbacks = [callback, names]
    torch.manual_seed(0)
    num = settings["batches"] * BATCH_SIZE * int(os.environ.get("WORLD_SIZE", "1"))
    num -= settings.get("lacking", 0)
    data = TensorDataset(torch.randn(num, 8), torch.randint(0, 2, (num,)))
    model = Net()
    trainer = Trainer(
        model=model,
        train_dataloader=DataLoader(
            data, BATCH_SIZE, sampler=dist.get_sampler(data, shuffle=False)
        ),
        eval_dataloader=DataLoader(data, 8) if settings.get("evaluate") else None,
        optimizers=torch.optim.SGD(model.parameters(), lr=0.1),
        max_duration=f"{settings['epochs']}ep",
        device_train_microbatch_size=BATCH_SIZE // settings["accumulate"],
        run_name="run",
        device="cpu",
        profiler=profiler,
        callbacks=callbacks,
        progress_bar=False,
        save_folder=settings.get("save"),
        save_interval=settings.get("save_interval", "1ep"),
        load_path=settings.get("load"),
    )
    trainer.fit()
    trainer.close()
