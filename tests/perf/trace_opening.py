"""From `tensorboard` to the Overview of a profiler's trace, beside torch-tb-profiler.

    python -m tests.perf.trace_opening INPUT [INPUT ...] [--peer PYTHON] [--cached]

An input is a trace's file, or a folder with one per rank (`trace_replicator.py` makes
both). It is put into a logdir of its own, and TensorBoard is started on it; time runs from
the start of its process until

- "served": it has printed its address;
- "overview": the time part of the Overview is answered (`/profile`; of the peer, after
  `/runs` names a run and says that it loads no more, `/overview` of its first worker);
- "all": every rank of the cycle has been read (`/distributed`; of the peer it is so
  before it shows anything).

Memory, processor time and the number of processes are those of TensorBoard and all below
it; the most that was seen, every 20 ms. `--peer` names the Python of an environment with
`torch-tb-profiler` and `tensorboard`, without MemBoard; `--cached` starts ours once more
with what it kept; `--only-peer` leaves ours out.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.perf.process_tree import Taken, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
_MOST_S = 900.0
_PAUSE_S = 0.02
NAME = re.compile(r"\.pt\.trace\.json(\.gz)?$")


@dataclass
class Opened:
    """How long after its start TensorBoard had what; and what that took."""

    served_s: float
    overview_s: float
    all_s: float
    taken: Taken
    note: str = ""


@contextlib.contextmanager
def logdir_of(given: Path, folder: Path) -> Iterator[Path]:
    """A logdir with one run: links to what was given, by names of torch's."""
    logdir = folder / "logdir"
    with tempfile.TemporaryDirectory(dir=folder) as made:
        logdir = Path(made) / "run"
        logdir.mkdir()
        paths = sorted(given.iterdir()) if given.is_dir() else [given]
        for path in paths:
            whole = NAME.search(path.name)
            name = (
                path.name if whole else f"worker0.1700000000000.pt.trace.json{gz(path)}"
            )
            os.link(path, logdir / name)
        yield logdir.parent


def gz(path: Path) -> str:
    return ".gz" if path.suffix == ".gz" else ""


@contextlib.contextmanager
def tensorboard(
    python: str, logdir: Path, cache: Path
) -> Iterator[tuple[float, str, Watch]]:
    """When it was started, its address once it has one, and its watch."""
    log = logdir.parent / "log.txt"
    command = [python, "-m", "tensorboard.main", "--logdir", str(logdir)]
    command += ["--port", "0", "--host", "127.0.0.1"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["MEMBOARD_CACHE_DIR"] = str(cache)
    with log.open("w") as sink:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=logdir.parent,
            env=environment,
            start_new_session=True,
        )
    watch = Watch(process.pid)
    try:
        while not (found := re.search(r"at (http://\S+/) \(Press", log.read_text())):
            if process.poll() is not None:
                raise SystemExit(f"{python}: tensorboard ended:\n{log.read_text()}")
            time.sleep(_PAUSE_S)
        yield began, found[1] + "data/plugin/", watch
    finally:
        watch.stop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)


def get(address: str, **query: object) -> bytes:
    known = {name: value for name, value in query.items() if value is not None}
    url = f"{address}?{urllib.parse.urlencode(known)}"
    with urllib.request.urlopen(url, timeout=_MOST_S) as answer:
        body: bytes = answer.read()
        if answer.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
    return body


def ours(address: str, **query: object) -> dict[str, Any]:
    body = get(address, **query)
    length = int.from_bytes(body[:4], "little")
    data: dict[str, Any] = json.loads(body[4 : 4 + length])["data"]
    return data


def open_ours(logdir: Path, cache: Path) -> Opened:
    """MemBoard, as the page asks it."""
    with tensorboard(sys.executable, logdir, cache) as (began, address, watch):
        served = time.perf_counter()
        at, until = address + "memboard/", served + _MOST_S
        run = None
        while run is None and time.perf_counter() < until:
            listed = ours(at + "runs")["runs"]
            run = listed[0]["id"] if listed else None
        profile = ours(at + "profile", run=run)
        while profile["choice"]["state"] == "opening":
            profile = ours(at + "profile", run=run)
        overview = time.perf_counter()
        if profile["choice"]["problem"] is not None:
            raise SystemExit(f"not opened: {profile['choice']['problem']}")
        ranks = ours(at + "distributed", run=run)
        while ranks["num_opening"]:
            ranks = ours(at + "distributed", run=run)
        whole = time.perf_counter()
        note = f"{ranks['num_traces']} traces, {ranks['num_failed']} failed"
        return Opened(
            served - began, overview - began, whole - began, watch.stop(), note
        )


def open_peer(python: str, logdir: Path, cache: Path) -> Opened:
    """torch-tb-profiler, as its page asks it."""
    with tensorboard(python, logdir, cache) as (began, address, watch):
        served = time.perf_counter()
        at, until = address + "pytorch_profiler/", served + _MOST_S
        runs: dict[str, Any] = {"runs": [], "loading": True}
        while not runs["runs"] or runs["loading"]:
            with contextlib.suppress(urllib.error.URLError):
                runs = json.loads(get(at + "runs"))
            if time.perf_counter() > until:
                return Opened(
                    served - began, *[float("nan")] * 2, watch.stop(), "timeout"
                )
            time.sleep(_PAUSE_S)
        run = runs["runs"][0]
        worker = json.loads(get(at + "workers", run=run, view="Overview"))[0]
        span = json.loads(get(at + "spans", run=run, worker=worker))[0]
        get(at + "overview", run=run, worker=worker, span=span)
        overview = time.perf_counter() - began
        workers = json.loads(get(at + "workers", run=run, view="Overview"))
        note = f"{len(workers)} workers"
        return Opened(served - began, overview, overview, watch.stop(), note)


def line(name: str, opened: Opened) -> str:
    taken = opened.taken
    return (
        f"  {name:18s} {opened.served_s:7.1f} {opened.overview_s:9.2f} {opened.all_s:7.2f}"
        f" {taken.cpu_s:7.1f} {taken.rss_mb:8.0f} {taken.processes:6d}  {opened.note}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("inputs", type=Path, nargs="+")
    parser.add_argument("--peer", help="Python with torch-tb-profiler and tensorboard")
    parser.add_argument("--cached", action="store_true")
    parser.add_argument("--only-peer", action="store_true")
    options = parser.parse_args()
    for given in options.inputs:
        files = sorted(given.iterdir()) if given.is_dir() else [given]
        size = sum(path.stat().st_size for path in files) / 1e6
        print(f"{given.name}: {len(files)} files, {size:.0f} MB")
        print("                     served  overview     all   CPU s   rss MB  procs")
        # Beside the input: links need one file system, and the cache is as large.
        with tempfile.TemporaryDirectory(dir=given.parent) as made:
            folder = Path(made)
            mine = None
            with logdir_of(given, folder) as logdir:
                if not options.only_peer:
                    mine = open_ours(logdir, folder / "cache")
                    print(line("MemBoard", mine), flush=True)
                if options.cached:
                    again = open_ours(logdir, folder / "cache")
                    print(line("MemBoard, cached", again), flush=True)
            if options.peer is None:
                print("  torch-tb-profiler: not asked for (--peer PYTHON)")
                continue
            with logdir_of(given, folder) as logdir:
                theirs = open_peer(options.peer, logdir, folder / "cache")
                print(line("torch-tb-profiler", theirs))
            if mine is not None:
                print(
                    f"  ratio: overview {theirs.overview_s / mine.overview_s:.1f} x,"
                    f" all {theirs.all_s / mine.all_s:.1f} x,"
                    f" CPU {theirs.taken.cpu_s / mine.taken.cpu_s:.1f} x,"
                    f" memory {theirs.taken.rss_mb / mine.taken.rss_mb:.1f} x"
                )


if __name__ == "__main__":
    main()
