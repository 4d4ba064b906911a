"""How fast `memboard merge` merges traces, and Composer's merger the same files.

Run: python -m tests.perf.merge [--composer PYTHON] [--mib 42] [--rounds 3]

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

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
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
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def ours(paths: list[Path], out: Path) -> list[str]:
    files = map(str, paths)
    return [
        sys.executable, "-m", "tb_plugin.cli", "merge", *files, "-o", str(out), "--force",
    ]  # fmt: skip


def composers(python: str, paths: list[Path], out: Path) -> list[str]:
    where = "import importlib.util as u; print(u.find_spec('composer').origin)"
    found = subprocess.run(
        [python, "-c", where], capture_output=True, text=True, check=True
    ).stdout.strip()
    script = Path(found).parent / "profiler" / "json_trace_merger.py"
    return [python, str(script), "-o", str(out), *map(str, paths)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--composer", metavar="PYTHON")
    parser.add_argument("--mib", type=float, default=42.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        share = int(options.mib * MIB / 4)
        paths = [folder / f"ep0-ba9-rank{rank}.json" for rank in range(4)]
        for rank, path in enumerate(paths):
            write_rank(path, rank, share)
        size = sum(path.stat().st_size for path in paths) / MIB
        mergers = {
            "memboard, .json": ours(paths, folder / "ours.json"),
            "memboard, .json.gz": ours(paths, folder / "ours.json.gz"),
        }
        if options.composer:
            out = folder / "composers.json"
            mergers["composer, .json"] = composers(options.composer, paths, out)
        best: dict[str, tuple[float, float]] = {}
        for _ in range(options.rounds):
            for merger, command in mergers.items():
                seconds, rss = timed(command)
                known = best.get(merger, (seconds, rss))
                best[merger] = min(seconds, known[0]), max(rss, known[1])
        against = RECORDED_MIB_S
        if options.composer:
            against = size / best["composer, .json"][0]
        print(f"4 ranks, {size:.1f} MiB in all")
        print(f"{'merger':<22}{'s':>8}{'MiB/s':>9}{'RSS MiB':>9}{'ratio':>8}")
        for merger, (seconds, rss) in best.items():
            rate = size / seconds
            print(
                f"{merger:<22}{seconds:>8.2f}{rate:>9.1f}{rss:>9.0f}{rate / against:>8.1f}"
            )
        if not options.composer:
            print(f"ratio: against {RECORDED_MIB_S} MiB/s, which was recorded before")
        print(f"\n{'ranks':<8}{'MiB':>8}{'s':>8}{'RSS MiB':>9}")
        links = []
        for rank in range(16):  # the same size each, without writing it each time
            link = folder / f"ep0-ba1-rank{rank}.json"
            text = paths[rank % 4].read_text()
            link.write_text(text)
            links.append(link)
        for number in (1, 4, 16):
            seconds, rss = timed(ours(links[:number], folder / "many.json.gz"))
            amount = sum(link.stat().st_size for link in links[:number]) / MIB
            print(f"{number:<8}{amount:>8.1f}{seconds:>8.2f}{rss:>9.0f}")


if __name__ == "__main__":
    main()
