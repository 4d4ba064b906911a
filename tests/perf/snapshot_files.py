"""Time to find a logdir full of snapshots, and to look at it again.

    python -m tests.perf.snapshot_files [--files 1000 10000 100000]

Files are named as trainings name them (`step_40/rank3_memory_snapshot.pickle`, 64 ranks)
and hold a small snapshot each. `found` is from nothing to the list of all of them with
their ranks and steps; `again` is a poll when nothing changed. Nothing is read but names
and sizes; the last column compares with the first row, per file.
"""

from __future__ import annotations

import pickle

from memboard.tb_plugin.index.logdirs import Logdir
from memboard.tb_plugin.index.search.walk import Index
from tests.perf import bench
from tests.tb_plugin.client import Ticking

RANKS = 64
LATER_S = 100.0
"""After this the index looks again, whatever it found before."""


def look(index: Index, clock: Ticking) -> float:
    """Walk and list until there is nothing more to find; seconds."""

    def refresh() -> None:
        index.refresh()
        while index.is_walking:
            index.refresh()

    clock.later(LATER_S)
    return bench.seconds(refresh)


def main() -> None:
    given = bench.options(__doc__, files=[1000, 10_000, 100_000])
    body = pickle.dumps({"segments": [], "device_traces": []}, 4)
    row = bench.table("files", "found s", "again s", "per file")
    first = None
    for number in given.files:
        with bench.folder() as logdir:
            for place in range(number):
                step, rank = divmod(place, RANKS)
                folder = logdir / "run" / f"step_{step}"
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"rank{rank}_memory_snapshot.pickle").write_bytes(body)
            clock = Ticking()
            index = Index((Logdir(str(logdir), "", str(logdir)),), clock=clock)
            found_s, again_s = look(index, clock), look(index, clock)
            (run,) = index.runs.values()
            assert run.snapshots is not None
            assert len(run.snapshots.found.files) == number
        first = first or found_s / number
        row(number, found_s, again_s, f"{found_s / number / first:.1f}x")


if __name__ == "__main__":
    main()
