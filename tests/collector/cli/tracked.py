"""The same step, tracked by torch and by us: run as a program, for its process group.

    python tracked.py FOLDER

writes `fsdp.log` and `plain.log`, what torch's trackers print, and the runs `fsdp` and
`plain`, each with one capture of ours of an equal step.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from memboard.collector.config.sections import ModulesConfig
from memboard.collector.core.calls import Call
from memboard.collector.modules.kind import ModulesKind
from tests.builders import RunBuilder
from tests.collector.modules import oracle
from tests.collector.modules.models import Transformer, mlp, plain_step, tokens


class Sink:
    """Writes captures through the disk contract."""

    def __init__(self, folder: Path) -> None:
        self.rank = RunBuilder(folder).rank(0)

    def put_capture(self, capture) -> bool:
        fields = {
            name: getattr(capture, name)
            for name in ("iteration", "step", "meta", "tables")
        }
        self.rank.capture(capture.kind, capture.function, **fields)
        return True

    def note_kind(self, info, status, reason, remedy) -> None:
        self.rank.source(info.name, status, reason, remedy)


def write(folder: Path, name: str, make, track, step, batch) -> None:
    """Two warm steps, one that torch tracks; the same again, that we track."""
    import torch

    torch.manual_seed(0)
    model, optimizer = make()
    for _ in range(2):
        step(model, optimizer, batch)
    tracker = track(model, optimizer)
    with tracker:
        step(model, optimizer, batch)
    with (folder / f"{name}.log").open("w") as file, redirect_stdout(file):
        tracker.display_snapshot("peak", units="B")
        tracker.display_modulewise_snapshots(depth=99, units="B")
    torch.manual_seed(0)
    model, optimizer = make()
    for _ in range(2):
        step(model, optimizer, batch)
    sink = Sink(folder / name)
    kind = ModulesKind(ModulesConfig(enabled=True), sink)
    kind.attach(model, [optimizer])
    call = Call(function="step", phase="train", iteration=3, step=3)
    kind.begin(call)
    step(model, optimizer, batch)
    kind.end(call, None)
    kind.close()
    sink.rank.close()


def main(folder: Path) -> None:
    import torch
    from torch.distributed.fsdp import fully_shard

    from tests.collector.modules.models import train_step

    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())

    def sharded():
        model = Transformer()
        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
        return model, torch.optim.AdamW(model.parameters(), foreach=True)

    batch = tokens()
    write(
        folder, "fsdp", sharded,
        lambda m, o: oracle.fsdp_tracker(m, o, (batch,)), train_step, batch,
    )  # fmt: skip

    def whole():
        model = mlp()
        return model, torch.optim.AdamW(model.parameters(), foreach=True)

    inputs = torch.randn(4, 32)
    write(
        folder, "plain", whole,
        lambda m, o: oracle.plain_tracker(m, o, (inputs,)), plain_step, inputs,
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
