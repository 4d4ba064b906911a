"""What importing a snapshot costs, against unpickling it: time and peak memory.

    python -m tests.perf.snapshot_reader [--events 1000000 3000000] [--bytes 1000000000]
        [--folder FOLDER]

Simulated trainings with mixed stacks, of so many events and of so many bytes, are written
to FOLDER (else to a temporary one) and imported in turn, each in a process of its own:

- `import`: the worker from start to column file, as TensorBoard has it done;
- `pickle`: `pickle.load`, then `collector.format.snapshots.tables_of`;
- `gc off`: the same with a C unpickler that refuses classes, and the collector off;
- `cached`: opening the column file, checksums and all.

Seconds are the clock's and the processor's; memory is the peak of the resident set.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

SIMULATE = """
from pathlib import Path
from tests.simulate import Form, trained_rank
trained_rank(int(sys.argv[2]), seed=1).write(Path(sys.argv[1]), Form())
"""

IMPORT = """
from tb_plugin.worker import process
from tb_plugin.worker.limits import SNAPSHOT, Limits
process._FORKS = False  # a child of this process: what it takes is known
with open(sys.argv[1], "rb", buffering=0) as file, open(sys.argv[2], "wb") as columns:
    size = os.fstat(file.fileno()).st_size
    limits = Limits.of(size, SNAPSHOT)
    process.WorkerProcess(file, columns, SNAPSHOT, limits).follow(
        lambda _: None, lambda _: True
    )
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
"""

CACHED = """
from pathlib import Path
from tb_plugin.worker.columns import open_columns
open_columns(Path(sys.argv[2]))
"""

UNPICKLE = """
import gc, pickle
from collector.format.snapshots import tables_of
class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(name)
if sys.argv[3] == "off":
    gc.disable()
with open(sys.argv[1], "rb") as file:
    snapshot = Plain(file).load() if sys.argv[3] == "off" else pickle.load(file)
tables = tables_of(snapshot)
"""

AROUND = """
import json, os, resource, sys, time
began = time.perf_counter()
taken = None
{code}
if taken is None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    taken = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
print(json.dumps([time.perf_counter() - began, *taken]))
sys.stdout.flush()
os._exit(0)
"""


def run(code: str, *arguments: object) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and MB at the peak."""
    done = subprocess.run(
        [sys.executable, "-c", AROUND.format(code=code), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    wall, cpu, peak_kib = json.loads(done.stdout)
    return wall, cpu, peak_kib / 1024


def measured(name: str, path: Path, columns: Path) -> None:
    ours = run(IMPORT, path, columns)
    cached = run(CACHED, path, columns)
    row = f"{name:>9}{path.stat().st_size / 1e6:>7.0f} MB"
    row += f"{ours[0]:>7.1f} s{ours[1]:>7.1f} s{ours[2]:>6.0f} MB"
    for collector in ("on", "off"):
        wall, cpu, peak = run(UNPICKLE, path, columns, collector)
        row += f" |{wall:>6.1f} s{cpu:>6.1f} s{peak:>6.0f} MB"
        row += f"{wall / ours[0]:>6.1f}x{peak / ours[2]:>6.1f}x"
    print(f"{row} |{cached[0]:>6.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="*", default=[1_000_000, 3_000_000])
    parser.add_argument("--bytes", type=int, nargs="*", default=[1_000_000_000])
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    print(
        f"{'events':>9}{'file':>10}{'import':>9}{'cpu':>9}{'peak':>9}"
        + "".join(
            f" |{name:>8}{'cpu':>8}{'peak':>9}{'time':>7}{'peak':>7}"
            for name in ("pickle", "gc off")
        )
        + f" |{'cached':>8}"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True, parents=True)
        # A simulated event takes 141 bytes, and a little less in a longer file.
        numbers = [*options.events, *(size // 140 for size in options.bytes)]
        for number in numbers:
            path = folder / f"{number}.pickle"
            if not path.is_file():
                run(SIMULATE, path, number)
            measured(f"{number:,}", path, Path(temporary) / "columns")


if __name__ == "__main__":
    main()
