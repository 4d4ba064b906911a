"""Share of a device's peak that the ledger has no category for.

    python -m tests.perf.unknown_share [--ranks 64]

Own captures are those of a simulated run (`memboard demo --simulate`), with the tensors
that a recorder would know of; then the same without them, as a bare pickle has them. What
a simulated program keeps for no known reason (a planted leak, a cache, outputs that fill a
device) is unknown rightly, and shown apart. With
MEMBOARD_REAL_DATA recorded pickles follow; there what was live before the recording has no
stack and does not count.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from memboard.collector.format.snapshots import tables_of
from memboard.collector.simulate import SimulatedRun, write_run
from memboard.tb_plugin.analysis.allocator.live import live_rows
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.categories.attribution import attribution
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.collector.recordings import rank_files, read
from tests.perf import bench
from tests.simulate import Form, trained_rank
from tests.tb_plugin.analysis.snapshots import (
    EXPECTED,
    INCONSISTENT,
    real,
    unknown_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot, Snapshot

WANTED = 0.05
"""At most so much on our own captures."""
KEPT = frozenset({"log_outputs", "prefill"})
"""Functions in which simulated programs keep something for no known reason."""
LEAST_EVENTS = 1000


def main() -> None:
    given = bench.options(__doc__, ranks=64)
    own = list(captures(given.ranks))
    bare = [replace(snapshot, tensors=None) for snapshot in own]
    row = bench.table("history", "devices", "unknown of the peak, median %", "worst %")

    def show(name: str, snapshots: Sequence[Snapshot], *, known: bool = False) -> None:
        if found := shares(snapshots, known=known):
            row(name, len(found), 100 * median(found), 100 * max(found))

    show("own captures, healthy ranks", [s for s in own if not keeps(s)])
    show("the same without the tensors", [s for s in bare if not keeps(s)])
    show("own captures with a planted leak or cache", [s for s in own if keeps(s)])
    show("the same without the tensors", [s for s in bare if keeps(s)])
    for stacks in ("all", "python"):
        made = trained_rank(20_000, stacks=stacks).snapshot(Form())
        show(f"bare pickle, {stacks} stacks", [snapshot_of(tables_of(made))])
    names = [name for name in EXPECTED if name not in INCONSISTENT]
    recorded = [(name, real(name)) for name in names]
    show("recorded pickles", [snapshot for _, snapshot in recorded], known=True)
    for name, snapshot in recorded:
        if max(shares([snapshot], known=True), default=0.0) > WANTED:
            show(name.partition("+")[0], [snapshot], known=True)


def captures(num_ranks: int) -> Iterator[Snapshot]:
    """Every history of a simulated run."""
    with tempfile.TemporaryDirectory() as folder:
        write_run(SimulatedRun(num_ranks=num_ranks), Path(folder))
        for path in rank_files(Path(folder)):
            for capture in read(path).captures:
                if capture.kind == "history":
                    yield snapshot_of(capture.tables)


def keeps(snapshot: Snapshot) -> bool:
    """Whether something is live at the end that is kept for no known reason."""
    (device, *_) = snapshot.devices
    replay = Replay(snapshot, device)
    rows = live_rows(replay.lives, replay.num_events - 1)
    stacks = np.unique(replay.lives.stack[rows])
    return any(
        snapshot.stacks.name[frame] in KEPT
        for stack in stacks[stacks >= 0].tolist()
        for frame in snapshot.stacks.of(stack).tolist()
    )


def shares(snapshots: Sequence[Snapshot], *, known: bool = False) -> list[float]:
    """By device, at its peak; `known`: of what was allocated since the recording began."""
    return [
        share(snapshot, device, known=known)
        for snapshot in snapshots
        for device in snapshot.devices
        if len(device.events) >= LEAST_EVENTS
    ]


def share(snapshot: Snapshot, device: DeviceSnapshot, *, known: bool) -> float:
    """Of one device."""
    replay = Replay(snapshot, device)
    rows: Any = live_rows(replay.lives, replay.active.peak[1])
    if known:
        rows = rows[replay.lives.born[rows] >= 0]
    return unknown_share(attribution(replay), replay, rows)


if __name__ == "__main__":
    main()
