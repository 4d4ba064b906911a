"""What reading a trace costs, against `json.load` and two peers: time and peak memory.

    MEMBOARD_REAL_DATA=... python -m tests.perf.trace_reader [--megabytes 42 638]
        [--trace kineto/.../x.pt.trace.json.gz] [--file TRACE ...] [--ranks 64]
        [--peer PYTHON] [--hta PYTHON] [--peers-up-to MEGABYTES] [--folder FOLDER]

A recorded trace is replicated to so many megabytes (or a file is taken as it is) and
read, each way in a process of its own:

- `import`: the worker from start to column file, as TensorBoard has it done;
- `json`: `json.load`, which stands for the least that a reader in Python does;
- `cached`: opening the column file as a `Trace`, checksums and all;
- `peer`: torch-tb-profiler reads it and makes its views of it, as its child process does
  (`--peer`: the Python of an environment that has it);
- `HTA`: HolisticTraceAnalysis reads it into a data frame (`--hta`: likewise).

Then as many ranks' files of 0.55 MB are imported by one importer. Seconds are the clock's
and the processor's; memory is the peak of the resident set, of the ranks that of all
processes together.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.perf.process_tree import Watch

ROOT = Path(__file__).parents[2]


def replicate(recorded: Path, target: Path, num_bytes: int) -> None:
    """In a process of its own: peaks of memory go on to the processes started later."""
    script = Path(__file__).with_name("trace_replicator.py")
    size = f"--megabytes={num_bytes / 1e6}"
    command = [sys.executable, str(script), str(recorded), str(target), size]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


IMPORT = """
from tb_plugin.worker import process
from tb_plugin.worker.limits import TRACE, Limits
process._FORKS = False  # a child of this process: what it takes is known
with open(sys.argv[1], "rb", buffering=0) as file, open(sys.argv[2], "wb") as columns:
    size = os.fstat(file.fileno()).st_size
    worker = process.WorkerProcess(file, columns, TRACE, Limits.of(size, TRACE))
    worker.follow(lambda _: None, lambda _: True)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = usage.ru_utime + usage.ru_stime, usage.ru_maxrss
"""
JSON = """
import json
with open(sys.argv[1], "rb") as file:
    json.load(file)
"""
CACHED = """
from pathlib import Path
from tb_plugin.worker.columns import open_columns
from tb_plugin.formats.traces.bytes.stored import trace_of
began, used = time.perf_counter(), time.process_time()
trace = trace_of(open_columns(Path(sys.argv[2])))
taken = time.process_time() - used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
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


def taken(code: str, *args: str, python: str = sys.executable) -> tuple[float, ...]:
    """Seconds of the clock and of the processor, and MB."""
    done = subprocess.run(
        [python, "-c", AROUND.format(code=code), *args],
        cwd=ROOT if python == sys.executable else None,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{python}:\n{done.stderr[-4000:]}")
    wall, cpu, kib = json.loads(done.stdout.splitlines()[-1])
    return wall, cpu, kib / 1024


def of_ranks(source: Path, folder: Path, num: int) -> None:
    from tb_plugin.formats.traces import read_trace
    from tb_plugin.worker.cache import ColumnCache
    from tb_plugin.worker.importer import MAX_WORKERS, Importer

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


def compare(target: Path, columns: Path, options: argparse.Namespace) -> None:
    """Read one file each way, and print the table."""
    files = str(target), str(columns)
    base = taken(JSON, *files)
    size = target.stat().st_size / 1e6
    ways = [("json", JSON, sys.executable), ("import", IMPORT, sys.executable)]
    ways.append(("cached", CACHED, sys.executable))
    peers = (("peer", PEER, options.peer), ("HTA", HTA, options.hta))
    ways += [one for one in peers if one[2] and size <= options.peers_up_to]
    print(f"{size:.0f} MB   seconds  processor     MB   processor, memory / json.load")
    for name, code, python in ways:
        wall, cpu, mb = base if name == "json" else taken(code, *files, python=python)
        print(
            f"{name:8} {wall:8.2f} {cpu:10.2f} {mb:6.0f}"
            f"   {cpu / base[1]:.2f} x, {mb / base[2]:.2f} x",
            flush=True,
        )
    for name, _, python in peers:
        if not python:
            print(f"{name:8} not asked for: no Python with it was named")
    print(f"columns  {columns.stat().st_size / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--megabytes", type=float, nargs="*", default=[42])
    parser.add_argument(
        "--trace",
        default="kineto/tb_sample_resnet50_workers0/worker0.1623143089861.pt.trace.json.gz",
    )
    parser.add_argument(
        "--small",
        default="kineto/torch213_ddp_gloo_2ranks/host_0.1795177296147695360.pt.trace.json.gz",
    )
    parser.add_argument("--file", type=Path, nargs="*", default=[])
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--peer", help="Python with torch-tb-profiler")
    parser.add_argument("--hta", help="Python with HolisticTraceAnalysis")
    parser.add_argument("--peers-up-to", type=float, default=200, metavar="MEGABYTES")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    real = Path(os.environ.get("MEMBOARD_REAL_DATA", "."))
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        columns = folder / "trace.columns"
        for given in options.file:
            print(given.name)
            compare(given, columns, options)
        for megabytes in options.megabytes:
            target = folder / "trace.json"
            replicate(real / options.trace, target, int(megabytes * 1e6))
            compare(target, columns, options)
            target.unlink()
        if options.ranks:
            of_ranks(real / options.small, folder, options.ranks)


if __name__ == "__main__":
    main()
