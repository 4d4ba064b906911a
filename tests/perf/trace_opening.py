"""From `tensorboard` to the Overview of a profiler's trace, beside two peers.

    python -m tests.perf.trace_opening INPUT [INPUT ...] [--cached]
        [--peer PYTHON] [--hta PYTHON]

An input is a trace's file, or a folder with one per rank (`trace_replicator.py` makes
both). It is put into a logdir of its own, and TensorBoard is started on it; time runs from
the start of its process until

- "served": it has printed its address;
- "overview": the time part of the Overview and the table of operators are answered
  (`/profile`, `/operators`; of the peer, after `/runs` names a run and says that it loads
  no more, `/overview` and `/operation/table` of its first worker);
- "all": every rank of the cycle has been read (`/distributed`; of the peer it is so
  before it shows anything).

Memory, processor time and the number of processes are those of TensorBoard and all below
it; the most that was seen, every 20 ms. Of memory, "pss" counts pages that processes share
once, "rss" once for each. `--peer` names the Python of an environment with
`torch-tb-profiler` and `tensorboard`, without MemBoard; `--hta` that of one with
HolisticTraceAnalysis, which is a library: its script reads the folder ("overview"), and
says what part of communication is overlapped on each rank ("all"). `--cached` starts ours
once more with what it kept; `--only-peer` leaves ours out.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import browser
from tests.perf import bench
from tests.perf.process_tree import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_S = 900.0
HTA = """
import logging, sys, time
from hta.trace_analysis import TraceAnalysis
logging.disable(logging.CRITICAL)
analysis = TraceAnalysis(trace_dir=sys.argv[1])
print("read", flush=True)
print(len(analysis.get_comm_comp_overlap(visualize=False)), "ranks", flush=True)
"""
NAME = re.compile(r"\.pt\.trace\.json(\.gz)?$")


@contextlib.contextmanager
def logdir_of(given: Path, folder: Path) -> Iterator[Path]:
    """A logdir with one run: links to what was given, by names of torch's."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        logdir = Path(made) / "run"
        logdir.mkdir()
        paths = sorted(given.iterdir()) if given.is_dir() else [given]
        for path in paths:
            name = path.name
            if not NAME.search(name):
                gz = ".gz" if path.suffix == ".gz" else ""
                name = f"worker0.1700000000000.pt.trace.json{gz}"
            os.link(path, logdir / name)
        yield logdir.parent


class Opening:
    """One TensorBoard that opens a logdir."""

    def __init__(self, python: str, logdir: Path, cache: Path) -> None:
        self._command = (python, "-m", "tensorboard.main")
        self._logdir, self._cache = logdir, str(cache)
        self.figures: list[float] = []

    def run(self, open_in) -> list[object]:
        """Seconds until each was there; processor seconds, MB, processes; a note."""
        log = self._logdir.parent / "log.txt"
        with browser.tensorboard(
            ["--logdir", self._logdir],
            log,
            self._command,
            MEMBOARD_CACHE_DIR=self._cache,
        ) as running:
            self._began, watch = running.began, Watch(running.pid, pss=True)
            self.reached()
            note = open_in(self, f"{running.url}data/plugin/")
            taken = watch.stop()
        return [
            *self.figures,
            taken.cpu_s,
            taken.pss_mb,
            taken.rss_mb,
            taken.processes,
            note,
        ]

    def reached(self) -> None:
        """Something is there now."""
        self.figures.append(time.perf_counter() - self._began)


def get(address: str, **query: object) -> Any:
    """An answer's data: of JSON, or of our envelope."""
    known = {name: value for name, value in query.items() if value is not None}
    url = f"{address}?{urllib.parse.urlencode(known)}"
    with urllib.request.urlopen(url, timeout=MOST_S) as answer:
        body: bytes = answer.read()
        if answer.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        if "json" in answer.headers["Content-Type"]:
            return json.loads(body)
    length = int.from_bytes(body[:4], "little")
    return json.loads(body[4 : 4 + length])["data"]


def ours(opening: Opening, address: str) -> str:
    """MemBoard, as the page asks it."""
    at, until = address + "memboard/", time.perf_counter() + MOST_S
    run = None
    while run is None and time.perf_counter() < until:
        listed = get(at + "runs")["runs"]
        run = listed[0]["id"] if listed else None
    while (choice := get(at + "profile", run=run)["choice"])["state"] == "opening":
        pass
    if choice["problem"] is not None:
        raise SystemExit(f"not opened: {choice['problem']}")
    get(at + "operators", run=run, source=choice["source"])
    opening.reached()
    while (ranks := get(at + "distributed", run=run))["num_opening"]:
        pass
    opening.reached()
    return f"{ranks['num_traces']} traces, {len(ranks['problems'])} problems"


def theirs(opening: Opening, address: str) -> str:
    """torch-tb-profiler, as its page asks it."""
    at, until = address + "pytorch_profiler/", time.perf_counter() + MOST_S
    runs: dict[str, Any] = {"runs": [], "loading": True}
    while not runs["runs"] or runs["loading"]:
        with contextlib.suppress(urllib.error.URLError):
            runs = get(at + "runs")
        if time.perf_counter() > until:
            opening.figures += [float("nan")] * 2
            return "timeout"
        time.sleep(0.02)
    of = {"run": runs["runs"][0]}
    workers = get(at + "workers", view="Overview", **of)
    of["worker"] = workers[0]
    of["span"] = get(at + "spans", **of)[0]
    get(at + "overview", **of)
    get(at + "operation/table", group_by="Operation", **of)
    opening.reached()
    opening.figures.append(opening.figures[-1])  # all of them were read before
    return f"{len(workers)} workers"


def read_by_hta(python: str, logdir: Path) -> list[object]:
    """As `Opening.run`; nothing is served."""
    began = time.perf_counter()
    with subprocess.Popen(
        [python, "-c", HTA, str(logdir / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        watch = Watch(process.pid, pss=True)
        lines = iter(process.stdout.readline, "")  # type: ignore[union-attr]  # a pipe
        reached = [(time.perf_counter() - began, line.strip()) for line in lines]
        taken = watch.stop()
        note = process.stderr.read().strip().rpartition("\n")[2]  # type: ignore[union-attr]
    reached += [(float("nan"), note)] * (2 - len(reached))
    figures = [float("nan"), *(seconds for seconds, _ in reached)]
    return [
        *figures,
        taken.cpu_s,
        taken.pss_mb,
        taken.rss_mb,
        taken.processes,
        reached[1][1],
    ]


def main() -> None:
    given = bench.options(
        __doc__, "inputs", peer=str, hta=str, cached=False, only_peer=False
    )
    for path in given.inputs:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files) / 1e6
        row = bench.table(
            f"{path.name}: {len(files)} files, {size:.0f} MB",
            "served s", "overview s", "all s", "CPU s", "pss MB", "rss MB", "processes", "",
        )  # fmt: skip
        # Beside the input: links need one file system, and the cache is as large.
        with tempfile.TemporaryDirectory(dir=path.parent) as made:
            folder, found = Path(made), {}
            ways = {} if given.only_peer else {"MemBoard": (sys.executable, ours)}
            if given.cached:
                ways["MemBoard, cached"] = (sys.executable, ours)
            if given.peer:
                ways["torch-tb-profiler"] = (given.peer, theirs)
            for name, (python, open_in) in ways.items():
                with logdir_of(path, folder) as logdir:
                    opening = Opening(python, logdir, folder / "cache")
                    found[name] = opening.run(open_in)
                row(name, *found[name])
            if given.hta:
                with logdir_of(path, folder) as logdir:
                    row("HTA", *read_by_hta(given.hta, logdir))
            if given.peer is None:
                row("torch-tb-profiler: not asked for (--peer PYTHON)")
            elif not given.only_peer:
                pairs = list(
                    zip(
                        *(
                            found[name][1:6]
                            for name in ("torch-tb-profiler", "MemBoard")
                        ),
                        strict=True,
                    )
                )
                row("ratio", None, *(a / b for a, b in pairs))


if __name__ == "__main__":
    main()
