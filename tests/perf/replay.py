"""Costs of a replayed history: to prepare it, and then to look at any moment of it.

    python -m tests.perf.replay [--events 1000000] [--file snapshot.pickle]

Wall time of one process; the last column is the ratio to the first row of its table.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from memboard.tb_plugin.analysis.allocator.live import (
    by_stack,
    holders,
    live_rows,
    range_sums,
)
from memboard.tb_plugin.analysis.allocator.moment.arenas import arenas, free_sizes
from memboard.tb_plugin.analysis.allocator.moment.fit import fit
from memboard.tb_plugin.analysis.allocator.moment.ledger import ledger
from memboard.tb_plugin.analysis.allocator.moment.pins import pins
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.allocator.stacking import columns
from memboard.tb_plugin.analysis.categories.attribution import attribution
from memboard.tb_plugin.analysis.snapshots.steps import steps_of
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.made_snapshots import read_snapshot
from tests.perf import bench
from tests.simulate import Form, trained_rank
from tests.simulate.allocator.settings import parse_settings

NUM_MOMENTS = 50
WIDTH = 1200


class Table:
    """Rows of milliseconds, printed as they come."""

    def __init__(self, title: str) -> None:
        print()
        self.print = bench.table(title, "ms", "of the first")
        self.first = 0.0

    def row(self, name: str, call, times: int = 1):
        found = []
        ms = sum(bench.seconds(lambda: found.append(call())) for _ in range(times))
        ms *= 1e3 / times
        self.first = self.first or ms
        self.print(name, ms, ms / self.first)
        return found[-1]


def simulated(num_events: int, text: str, folder: Path) -> Path:
    path = folder / "snapshot.pickle"
    rank = trained_rank(num_events, settings=parse_settings(text), stacks="python")
    rank.write(path, Form())
    return path


def measure(path: Path) -> None:
    tables = read_snapshot(path)
    table = Table(f"prepared once, of {path.stat().st_size / 1e6:.0f} MB")
    snapshot = table.row("columns with types", lambda: snapshot_of(tables))
    device = max(snapshot.devices, key=lambda one: len(one.events))
    replay = table.row("lifetimes", lambda: Replay(snapshot, device))
    table.row(
        "active, allocated and reserved levels",
        lambda: (replay.active, replay.allocated, replay.reserved),
    )
    table.row("segments", lambda: replay.segments)
    table.row("stream and pool of every life", lambda: (replay.stream, replay.pool))
    table.row("category of every life", lambda: attribution(replay))
    table.row("steps", lambda: steps_of(snapshot, device))

    num = replay.num_events
    print(f"\n{num:,} events, {len(replay.lives):,} lives")
    moments = iter(np.random.default_rng(0).integers(0, num, 10_000).tolist())
    peak = max(replay.active.peak[1], 0)
    state, rows = replay.at(peak), live_rows(replay.lives, peak)
    print(
        f"at the peak: {len(state.segments):,} segments, {len(state.blocks):,} blocks"
    )
    table = Table("at a moment")
    table.row("segments and blocks", lambda: replay.at(next(moments)), NUM_MOMENTS)
    table.row("ledger", lambda: ledger(replay, next(moments)), NUM_MOMENTS)
    table.row("live by stack", lambda: by_stack(replay.lives, rows), NUM_MOMENTS)
    table.row("arenas", lambda: arenas(state), NUM_MOMENTS)
    table.row("histogram of free blocks", lambda: free_sizes(state), NUM_MOMENTS)
    table.row("pins", lambda: pins(state, replay.lives.stack, 200), NUM_MOMENTS)
    rounding = replay.rounding
    table.row("fit", lambda: fit(state, rounding, 1 << 30), NUM_MOMENTS)

    table = Table(f"of all events, in {WIDTH} columns")
    found = table.row("columns", lambda: columns(replay.active.after, 0, num, WIDTH))
    stack, num_stacks = replay.lives.stack, len(snapshot.stacks)
    table.row(
        "holders, 256 of all stacks",
        lambda: holders(replay.lives, stack, num_stacks, found.at, 256),
    )
    table.row(
        "sums of a quarter, by stack",
        lambda: range_sums(
            replay.lives, num // 2, num * 3 // 4, stack + 1, num_stacks + 1
        ),
    )


def main() -> None:
    given = bench.options(__doc__, events=1_000_000, settings="", file=Path)
    with bench.folder() as folder:
        measure(given.file or simulated(given.events, given.settings, folder))


if __name__ == "__main__":
    main()
