"""`memboard report` on a folder of many small files, and beside hostile ones.

    python -m tests.perf.many_files [--files 2500]

- "many": so many small files in one folder, three fifths of them traces and snapshots, half
  each, the rest of others (logs, checkpoints, events of TensorBoard): a fresh process prints
  the report, with an empty cache and with what that left.
- "hostile": a trace whose text is large and says little (see `hostile`): how long a worker
  has it, its peak memory, and how long a small trace beside it waits that was asked for last.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from memboard.tb_plugin.formats.traces import read_trace
from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.errors import ImportFailedError
from memboard.tb_plugin.worker.importer import Importer
from tests.kineto_files import trained
from tests.perf import bench
from tests.perf.process_tree import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20


def small_snapshot(number: int) -> bytes:
    """One segment, and forty allocations that come and go."""
    frames = [{"filename": "train.py", "line": number, "name": "step"}]
    base, events = 0x7F0000000000, []
    for at in range(40):
        common = {"addr": base + at * 4096, "size": 4096, "stream": 0, "frames": frames}
        events += [
            {"action": "alloc", "time_us": 10 * at, **common},
            {"action": "free_requested", "time_us": 10 * at + 5, **common},
            {"action": "free_completed", "time_us": 10 * at + 5, **common},
        ]
    block = {"address": base, "size": 2 * MIB, "requested_size": 0, "state": "inactive"}
    segment = {
        "device": 0,
        "address": base,
        "total_size": 2 * MIB,
        "allocated_size": 0,
        "active_size": 0,
        "stream": 0,
        "segment_type": "small",
        "blocks": [{**block, "frames": []}],
    }
    found = {"segments": [segment], "device_traces": [events]}
    return pickle.dumps(found)


def write_many(folder: Path, num: int) -> None:
    """Small files of all kinds, in one folder."""
    trace = trained()
    for number in range(num):
        kind = number % 10
        if kind in (0, 2, 4):
            trace.head["distributedInfo"]["rank"] = number
            trace.write(
                folder / f"host_{number}.{1700000000000 + number}.pt.trace.json"
            )
        elif kind in (1, 3, 5):
            (folder / f"snapshot_{number}.pickle").write_bytes(small_snapshot(number))
        elif kind in (6, 7):
            (folder / f"worker_{number}.log").write_text("step 1\n" * 100)
        elif kind == 8:
            (folder / f"part_{number}.pt").write_bytes(b"PK\x03\x04" + bytes(4000))
        else:
            name = f"events.out.tfevents.{1700000000 + number}.host.1.0"
            (folder / name).write_bytes(bytes(400))


def reported(folder: Path, cache: Path) -> list[float]:
    """Files told of, seconds, processor seconds, and MB of a report in processes of its own."""
    command = [
        sys.executable,
        "-m",
        "memboard.tb_plugin.cli",
        "report",
        str(folder),
        "--json",
    ]
    environment = {**os.environ, "MEMBOARD_CACHE_DIR": str(cache)}
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        watch = Watch(process.pid)
        assert process.stdout is not None
        answer = json.load(process.stdout)
        taken = watch.stop()
    took = time.perf_counter() - began
    files = sum(len(run["traces"]) + len(run["snapshots"]) for run in answer["runs"])
    return [files, took, taken.cpu_s, taken.rss_mb]


def events_of(kind: str, num: int) -> Iterator[str]:
    """Events of a hostile trace, as JSON."""
    for at in range(num):
        name, start, took, thread = "a", at, 1, 1
        if kind == "overlapping":
            took = num
        elif kind == "nested":
            took = 2 * (num - at)
        elif kind == "names":
            name = f"{at:x}"
        elif kind == "threads":
            thread = at
        elif kind == "crossing":
            start, took = at // 2, (num if at % 2 else num // 2)
        yield (
            f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":{thread},'
            f'"ts":{start},"dur":{took}}}'
        )


HOSTILE = ("overlapping", "crossing", "nested", "names", "threads")


def write_hostile(path: Path, kind: str, num: int) -> None:
    """One hostile trace."""
    with path.open("w") as file:
        file.write('{"traceEvents":[')
        for at, event in enumerate(events_of(kind, num)):
            file.write(f",{event}" if at else event)
        file.write("]}")


def beside_hostile(folder: Path, kind: str, num: int) -> list[object]:
    """MB, seconds, MB of memory, how it ended, and how long a small one waited beside it."""
    path, small = folder / f"{kind}.json", folder / "small.json"
    write_hostile(path, kind, num)
    trained().write(small)
    importer = Importer(ColumnCache(folder / "cache"))
    began, ended = time.perf_counter(), []

    def read() -> None:
        try:
            read_trace(path, importer)()
            ended.append("read")
        except ImportFailedError as error:
            ended.append(error.what)

    watch = Watch(os.getpid())
    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(0.5)
    waited = time.perf_counter()
    read_trace(small, importer)()
    waited = time.perf_counter() - waited
    thread.join()
    took = time.perf_counter() - began
    taken = watch.stop()
    importer.close()
    return [
        kind,
        path.stat().st_size / MIB,
        took,
        taken.rss_mb,
        ended[0],
        waited,
    ]


def main() -> None:
    options = bench.options(__doc__ or "", files=2_500, events=500_000)
    with tempfile.TemporaryDirectory() as made:
        many = Path(made) / "many"
        many.mkdir()
        write_many(many, options.files)
        row = bench.table("report", "files of ours", "s", "processor s", "MB")
        for what in ("nothing cached", "cached"):
            row(what, *reported(many, Path(made) / "cache"))
        row = bench.table("hostile", "MB", "s", "MB of memory", "end", "small one, s")
        for kind in HOSTILE:
            folder = Path(made) / kind
            folder.mkdir()
            row(*beside_hostile(folder, kind, options.events))


if __name__ == "__main__":
    main()
