"""Costs of importing a snapshot, against unpickling it: time and peak memory.

    python -m tests.perf.snapshot_reader [--events 1000000 3000000] [--bytes 1000000000]
        [--stacks 200000] [--folder FOLDER]

Simulated trainings with mixed stacks, of so many events and of so many bytes, are written
to FOLDER (else to a temporary one) and imported in turn, each in a process of its own:

- `import`: the worker from start to column file, as TensorBoard has it done;
- `pickle`: `pickle.load`, then `memboard.collector.format.snapshots.tables_of`;
- `gc off`: the same with a C unpickler that refuses classes, and the collector off;
- `cached`: opening the column file, checksums and all.

`--stacks`: snapshots of so many events, each with 20 frames that no other has, are imported
beside them; no simulated training has such.

Seconds are the clock's and the processor's; memory is the peak of the resident set.
"""

from __future__ import annotations

import pickle
from pathlib import Path

from tests.made_snapshots import own_stacks
from tests.perf import bench
from tests.perf.allocations_server import write_pickle

CACHED = """
from pathlib import Path
from memboard.tb_plugin.worker.columns import open_columns
open_columns(Path(sys.argv[2]))
"""

UNPICKLE = """
import gc, pickle
from memboard.collector.format.snapshots import tables_of
class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(name)
if sys.argv[3] == "off":
    gc.disable()
with open(sys.argv[1], "rb") as file:
    snapshot = Plain(file).load() if sys.argv[3] == "off" else pickle.load(file)
tables = tables_of(snapshot)
"""


def write_own_stacks(path: str, num_events: int) -> None:
    """A snapshot whose events have frames of their own."""
    with Path(path).open("wb") as file:
        pickle.dump(own_stacks(num_events), file)


def main() -> None:
    given = bench.options(
        __doc__,
        events=[1_000_000, 3_000_000],
        bytes=[1_000_000_000],
        stacks=[200_000],
        folder=Path,
    )
    row = bench.table("events", "MB", "way", "s", "CPU s", "peak MB", "time", "peak")
    with bench.folder(given.folder) as folder, bench.folder() as temporary:
        columns = temporary / "columns"
        # A simulated event takes 141 bytes, and a little less in a longer file.
        for number in (*given.events, *(size // 140 for size in given.bytes)):
            path = folder / f"{number}.pickle"
            bench.fresh(write_pickle, path, number)
            ours = None
            for way, code, *more in (
                ("import", bench.IMPORT.format(job="SNAPSHOT")),
                ("pickle", UNPICKLE, "on"),
                ("gc off", UNPICKLE, "off"),
                ("cached", CACHED),
            ):
                found = bench.cost(code, path, columns, *more)
                ours = ours or found
                ratios = found[0] / ours[0], found[2] / ours[2]
                row(number, path.stat().st_size / 1e6, way, *found, *ratios)
        for number in given.stacks:
            path = folder / f"{number}.stacks.pickle"
            bench.fresh(write_own_stacks, path, number)
            found = bench.cost(bench.IMPORT.format(job="SNAPSHOT"), path, columns)
            row(number, path.stat().st_size / 1e6, "own stacks", *found, None, None)


if __name__ == "__main__":
    main()
