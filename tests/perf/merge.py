"""Speed of `memboard merge`, and of Composer's merger on the same files.

    python -m tests.perf.merge [--composer PYTHON] [--mib 42] [--rounds 3]

PYTHON is an interpreter of an environment that has Composer, without its dependencies:

    python -m venv /tmp/composer
    /tmp/composer/bin/pip install --no-deps mosaicml

Its merger is one file that needs nothing else, and runs as the script that it is. Without
PYTHON the last column is against the 3.6 MiB/s that it was measured at before.

The files are what Composer's JSONTraceHandler writes of torch's events: one list per rank,
one event per line, of one cycle. Every merger runs in a process of its own, in turns; the
best of the rounds counts, with interpreter and imports. RSS is the most there was. The
second table merges 1 to 16 ranks of a size to show that memory stays.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from tests.perf import bench

MIB = 1 << 20
RECORDED_MIB_S = 3.6
EPOCH_US = 1_790_900_000_000_000
NAMES = ("aten::add", "aten::mm", "aten::addmm", "aten::copy_", "MulBackward0")


def write_rank(path: Path, rank: int, num_bytes: int) -> None:
    """A rank's file, about so large."""
    rng = random.Random(rank)
    at = {"ph": "M", "pid": rank, "tid": 100 + rank, "ts": EPOCH_US}
    meta = [
        {
            "name": "process_name",
            "args": {"name": f"Rank {rank} training loop process"},
        },
        {"name": "global_rank", "args": {"value": rank}},
        {"name": "clock_sync_timestamp_us", "args": {"value": EPOCH_US + 17 * rank}},
        {"name": "clock_sync_error_bound", "args": {"value": 50}},
    ]
    with path.open("w") as file:
        file.write("[\n" + ",\n".join(json.dumps({**one, **at}) for one in meta))
        ts = EPOCH_US
        while file.tell() < num_bytes:
            lines = []
            for _ in range(1000):
                ts += rng.randrange(1, 30)
                event = {
                    "ph": "X", "cat": "cpu_op", "name": rng.choice(NAMES), "pid": rank,
                    "tid": 100 + rank, "ts": ts, "dur": rng.randrange(1, 20),
                    "args": {
                        "External id": rng.randrange(10**6),
                        "Record function id": 0,
                        "Concrete Inputs": ["", "", "1"],
                        "Input type": ["float", "float", "Scalar"],
                        "Input Dims": [[32, 1024], [1024, 1024], []],
                        "Ev Idx": rng.randrange(10**6),
                    },
                }  # fmt: skip
                lines.append(json.dumps(event))
            file.write(",\n" + ",\n".join(lines))
        file.write("\n]\n")


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds, and the most MiB that the process had."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=bench.ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def ours(paths: list[Path], out: Path) -> list[str]:
    files = map(str, paths)
    return [
        sys.executable, "-m", "memboard.tb_plugin.cli", "merge", *files, "-o", str(out), "--force",
    ]  # fmt: skip


def composers(python: str, paths: list[Path], out: Path) -> list[str]:
    where = "import importlib.util as u; print(u.find_spec('composer').origin)"
    found = subprocess.run(
        [python, "-c", where], capture_output=True, text=True, check=True
    ).stdout.strip()
    script = Path(found).parent / "profiler" / "json_trace_merger.py"
    return [python, str(script), "-o", str(out), *map(str, paths)]


def main() -> None:
    given = bench.options(__doc__, composer=str, mib=42.0, rounds=3)
    with bench.folder() as folder:
        share = int(given.mib * MIB / 4)
        paths = [folder / f"ep0-ba9-rank{rank}.json" for rank in range(4)]
        for rank, path in enumerate(paths):
            write_rank(path, rank, share)
        size = sum(path.stat().st_size for path in paths) / MIB
        commands = {
            "memboard, .json": ours(paths, folder / "ours.json"),
            "memboard, .json.gz": ours(paths, folder / "ours.json.gz"),
        }
        if given.composer:
            out = folder / "composers.json"
            commands["composer, .json"] = composers(given.composer, paths, out)
        ways = {name: partial(timed, command) for name, command in commands.items()}
        found = bench.turns(ways, given.rounds)
        against = RECORDED_MIB_S
        if given.composer:
            against = size / min(found["composer, .json"])[0]
        else:
            print(f"ratio: against {RECORDED_MIB_S} MiB/s, which was recorded before")
        head = f"4 ranks, {size:.1f} MiB in all"
        row = bench.table(head, "s", "MiB/s", "RSS MiB", "ratio")
        for merger, rounds in found.items():
            rate = size / min(rounds)[0]
            rss = max(one[1] for one in rounds)
            row(merger, min(rounds)[0], rate, rss, rate / against)
        copies = []  # of the same size each
        for rank in range(16):
            copy = folder / f"ep0-ba1-rank{rank}.json"
            copies.append(shutil.copyfile(paths[rank % 4], copy))
        row = bench.table("ranks", "MiB", "s", "RSS MiB")
        for number in (1, 4, 16):
            amount = sum(path.stat().st_size for path in copies[:number]) / MIB
            row(number, amount, *timed(ours(copies[:number], folder / "many.json.gz")))


if __name__ == "__main__":
    main()
