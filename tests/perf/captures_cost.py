"""Costs of captures and snaps: to queue, to encode, to list, to show.

    python -m tests.perf.captures_cost

Times are the best of several rounds in one process; sizes are what lies on disk. The
first paint is that of a server that has read nothing, over real HTTP decoding.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.format.capture import decode_body, encode_body
from memboard.collector.format.columns import Column
from memboard.collector.format.records import Capture
from memboard.collector.writing.queues.captures import CaptureQueue
from tests.builders import START_NS, RunBuilder
from tests.perf import bench
from tests.tb_plugin.client import Page

if TYPE_CHECKING:
    from collections.abc import Callable

NUM_RANKS = 64
NUM_CALLS = 1000
NUM_STATS = 120
MS = 10**6


def best(call: Callable[[], object], rounds: int = 5) -> float:
    """Milliseconds of the fastest round."""
    return min(bench.seconds(call) for _ in range(rounds)) * 1e3


def events(number: int) -> Capture:
    """A window's event log, as a tracker writes it."""
    rng = np.random.default_rng(0)
    columns = {
        "time_us": np.cumsum(rng.integers(0, 50, number)),
        "delta_bytes": rng.integers(-100, 100, number) * 512,
        "category": rng.integers(0, 14, number),
        "device": np.zeros(number, np.int64),
        "module": rng.integers(0, 900, number),
        "storage": rng.integers(0, number, number),
    }
    return Capture(
        kind="modules",
        time_ns=START_NS,
        step=1,
        phase="train",
        function="step",
        iteration=1,
        tables={"events": columns},
    )


def codec_rows() -> list[tuple[str, float, str]]:
    rows = []
    for number in (10_000, 100_000, 1_000_000):
        capture = events(number)
        body = encode_body(capture)
        label = f"{number:,} events"
        rows.append((f"encode {label}", best(lambda c=capture: encode_body(c)), "ms"))
        rows.append((f"decode {label}", best(lambda b=body: decode_body(b)), "ms"))
        rows.append((f"size of {label}", len(body) / number, "bytes/event"))
    queue = CaptureQueue(WarnOnce(), max_bytes=2**40)
    capture = events(1_000_000)
    put = best(lambda: [queue.put(capture) for _ in range(100)])
    rows.append(("put_capture, 1,000,000 events", put * 10, "us"))
    return rows


def snap_columns() -> tuple[Column, ...]:
    stats = (
        Column(name=f"stat_{n}_bytes.all.current", unit="bytes", group="device")
        for n in range(NUM_STATS)
    )
    return (
        Column(name="iteration", unit="index", group="progress"),
        Column(name="context", unit="index", group="progress"),
        *stats,
    )


def build(folder: Path, rows_per_chunk: int) -> None:
    """Ranks with snaps of two functions at every call, and captures.

    Two rows per chunk is a call in each flush of the recorder; up to three are cheap.
    """
    columns = snap_columns()
    for number in range(NUM_RANKS):
        rank = RunBuilder(folder).rank(number, world_size=NUM_RANKS)
        rank.steps(range(NUM_CALLS), rss_bytes=[2.0**30] * NUM_CALLS)
        for at, function in enumerate(("step", "eval")):
            rows = np.arange(2 * NUM_CALLS)
            values: dict[str, Any] = {
                column.name: rows * 512 + number for column in columns[2:]
            }
            rank.rows(
                f"function/{function}",
                rows // 2,
                times=START_NS + (rows * 2 + at) * MS,
                rolled_up=False,
                extra=columns,
                rows_per_chunk=rows_per_chunk,
                iteration=rows // 2 + 1,
                context=rows % 2,
                **values,
            )
        for iteration in range(1, 21):
            rank.capture("modules", tables=events(1000).tables, iteration=iteration)
            if iteration % 5 == 0:
                rank.digest()
        rank.close()


def view_rows(folder: Path, rows_per_chunk: int) -> list[tuple[str, float, str]]:
    build(folder / "exp", rows_per_chunk)
    rows = []
    page = Page(folder)
    run_id = page.run_id("exp")
    label = f"/functions, {rows_per_chunk} rows a chunk"
    first = best(lambda: page.raw("/functions", run=run_id), 1)
    rows.append((f"{label}, cold", first, "ms"))
    again = best(lambda: page.raw("/functions", run=run_id))
    rows.append((f"{label}, again", again, "ms"))
    other = best(lambda: page.raw("/functions", run=run_id, rank=17), 1)
    rows.append((f"{label}, another rank", other, "ms"))
    size = len(page.raw("/functions", run=run_id).data) / 1e6
    rows.append((f"{label}, body", size, "MB"))
    return rows


def main() -> None:
    """Print one table."""
    with tempfile.TemporaryDirectory() as folder:
        rows = codec_rows()
        for number in (2, 4):
            rows += view_rows(Path(folder, str(number)), number)
    print(
        f"/functions: {NUM_RANKS} ranks x {NUM_CALLS} calls x {NUM_STATS} stats x 2",
        "functions; with a capture at each of 20 calls",
    )
    row = bench.table("what", "", "unit")
    for cells in rows:
        row(*cells)


if __name__ == "__main__":
    main()
