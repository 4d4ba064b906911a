"""Costs of reading a trace, against `json.load` and two peers: time and peak memory.

    MEMBOARD_REAL_DATA=... python -m tests.perf.trace_reader [--megabytes 42 638]
        [--trace kineto/.../x.pt.trace.json.gz] [--file TRACE ...] [--ranks 64]
        [--peer PYTHON] [--hta PYTHON] [--peers-up-to MEGABYTES] [--folder FOLDER]

A recorded trace is replicated to so many megabytes (or a file is taken as it is) and
read, each way in a process of its own:

- `import`: the worker from start to column file, as TensorBoard has it done;
- `json`: `json.load`, which stands for the least that a reader in Python does;
- `cached`: opening the column file as a `Trace`, checksums and all;
- `digest`: the process that sums up a trace for the recording it is of, at low priority
  beside training (its processor time and memory, not those of the training);
- `peer`: torch-tb-profiler reads it and makes its views of it, as its child process does
  (`--peer`: the Python of an environment that has it);
- `HTA`: HolisticTraceAnalysis reads it into a data frame (`--hta`: likewise).

Then as many ranks' files of 0.55 MB are imported by one importer. Seconds are the clock's
and the processor's; memory is the peak of the resident set, of the ranks that of all
processes together.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.perf import bench
from tests.perf.process_tree import Watch

RECORDED = "kineto/tb_sample_resnet50_workers0/worker0.1623143089861.pt.trace.json.gz"
SMALL = "kineto/torch213_ddp_gloo_2ranks/host_0.1795177296147695360.pt.trace.json.gz"
JSON = """
import json
with open(sys.argv[1], "rb") as file:
    json.load(file)
"""
CACHED = """
from pathlib import Path
from memboard.tb_plugin.worker.columns import open_columns
from memboard.tb_plugin.formats.traces.bytes.stored import trace_of
began, used = time.perf_counter(), time.process_time()
trace = trace_of(open_columns(Path(sys.argv[2])))
taken = time.process_time() - used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
"""
DIGEST = """
from memboard.collector.torch_profiler.digest.reading import TraceTask, read_trace
with open(sys.argv[1], "rb") as file:
    read_trace(file, TraceTask(flops={}))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
taken = used.ru_utime + used.ru_stime, used.ru_maxrss
"""
PEER = """
import logging, tempfile
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator
logging.disable(logging.CRITICAL)
with tempfile.TemporaryDirectory() as cache:
    data = RunProfileData.parse("worker", "1", sys.argv[1], cache)
    RunGenerator("worker", "1", data).generate_run_profile()
"""
HTA = """
import logging
from hta.common.trace import parse_trace_file
logging.disable(logging.CRITICAL)
parse_trace_file(sys.argv[1])
"""


def replicate(recorded: Path, target: Path, num_bytes: int) -> None:
    """In a process of its own: peaks of memory go on to the processes started later."""
    command = [sys.executable, "-m", "tests.perf.trace_replicator", recorded, target]
    command += ["--megabytes", f"{num_bytes / 1e6}"]
    subprocess.run(
        list(map(str, command)), cwd=bench.ROOT, check=True, stdout=subprocess.DEVNULL
    )


def of_ranks(source: Path, folder: Path, num: int) -> None:
    from memboard.tb_plugin.formats.traces import read_trace
    from memboard.tb_plugin.worker.cache import ColumnCache
    from memboard.tb_plugin.worker.importer import MAX_WORKERS, Importer

    small = folder / "rank.json"
    replicate(source, small, 550_000)
    data = small.read_bytes()
    paths = [folder / f"rank{rank}.pt.trace.json" for rank in range(num)]
    for path in paths:
        path.write_bytes(data)
    importer = Importer(ColumnCache(folder / "cache"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = time.process_time()
    watch = Watch(os.getpid(), pss=True)
    began = time.perf_counter()
    with ThreadPoolExecutor(MAX_WORKERS) as pool:
        traces = list(pool.map(lambda path: read_trace(path, importer)(), paths))
    wall = time.perf_counter() - began
    most = watch.stop()
    importer.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = time.process_time() - used
    cpu += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    slices = sum(len(trace.slices) for trace in traces)
    print(
        f"{num} ranks x {len(data) / 1e6:.2f} MB: {wall:.2f} s, processor {cpu:.2f} s,"
        f" peak {most.rss_mb:.0f} MB (shared pages once: {most.pss_mb:.0f}) in"
        f" {most.processes} processes, {slices:,} slices"
    )


def compare(target: Path, columns: Path, given) -> None:
    """Read one file each way, and print the table."""
    size = target.stat().st_size / 1e6
    ways = [
        ("json", JSON, sys.executable),
        ("import", bench.IMPORT.format(job="TRACE"), sys.executable),
        ("cached", CACHED, sys.executable),
        ("digest", DIGEST, sys.executable),
        ("peer", PEER, given.peer),
        ("HTA", HTA, given.hta),
    ]
    head = f"{target.name}, {size:.0f} MB"
    beside = "/ json.load"
    row = bench.table(
        head, "seconds", "processor", "MB", f"processor {beside}", f"MB {beside}"
    )
    base = None
    for name, code, python in ways:
        is_peer = python != sys.executable
        if is_peer and (not python or size > given.peers_up_to):
            row(name, "not asked for" if not python else "too large")
            continue
        wall, cpu, mb = bench.cost(code, target, columns, python=python)
        base = base or (cpu, mb)
        row(name, wall, cpu, mb, cpu / base[0], mb / base[1])
    print(f"columns  {columns.stat().st_size / 1e6:.1f} MB\n")


def main() -> None:
    given = bench.options(
        __doc__, megabytes=[42.0], trace=RECORDED, small=SMALL, file=[], ranks=64,
        peer=str, hta=str, peers_up_to=200.0, folder=Path,
    )  # fmt: skip
    real = Path(os.environ.get("MEMBOARD_REAL_DATA", "."))
    with bench.folder(given.folder) as folder:
        columns = folder / "trace.columns"
        for file in given.file:
            compare(Path(file), columns, given)
        for megabytes in given.megabytes:
            target = folder / "trace.json"
            replicate(real / given.trace, target, int(megabytes * 1e6))
            compare(target, columns, given)
            target.unlink()
        if given.ranks:
            of_ranks(real / given.small, folder, given.ranks)


if __name__ == "__main__":
    main()
