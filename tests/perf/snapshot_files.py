"""How long a logdir full of snapshots takes to be found, and to be looked at again.

    python -m tests.perf.snapshot_files [--files 1000 10000 100000]

Files are named as trainings name them (`step_40/rank3_memory_snapshot.pickle`, 64 ranks)
and hold a small snapshot each. `found` is from nothing to the list of all of them with
their ranks and steps; `again` is a poll when nothing changed. Nothing is read but names
and sizes; the last column compares with the first row, per file.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from pathlib import Path

from tb_plugin.index.logdirs import Logdir
from tb_plugin.index.walk import Index

RANKS = 64
LATER_S = 100.0
"""After this the index looks again, whatever it found before."""


class Clock:
    """The clock, and a hand to put it forward."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_s


def look(index: Index, clock: Clock) -> float:
    """Walk and list until there is nothing more to find; seconds."""
    clock.ahead_s += LATER_S
    begin = time.perf_counter()
    index.refresh()
    while index.is_walking:
        index.refresh()
    spent = time.perf_counter() - begin
    clock.ahead_s += LATER_S
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[1000, 10_000, 100_000])
    options = parser.parse_args()
    body = pickle.dumps({"segments": [], "device_traces": []}, 4)
    print(f"{'files':>10}{'found s':>12}{'again s':>12}{'per file':>12}")
    first = None
    for number in options.files:
        with tempfile.TemporaryDirectory() as temporary:
            for place in range(number):
                step, rank = divmod(place, RANKS)
                folder = Path(temporary, "run", f"step_{step}")
                if rank == 0:
                    folder.mkdir(parents=True)
                (folder / f"rank{rank}_memory_snapshot.pickle").write_bytes(body)
            clock = Clock()
            index = Index((Logdir(temporary, "", temporary),), clock=clock)
            found_s, again_s = look(index, clock), look(index, clock)
            (run,) = index.runs.values()
            assert run.snapshots is not None
            assert len(run.snapshots.found.files) == number
        each = found_s / number
        first = first or each
        print(f"{number:>10,}{found_s:>12.2f}{again_s:>12.2f}{each / first:>11.1f}x")


if __name__ == "__main__":
    main()
