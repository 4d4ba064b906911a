"""What the server needs for the Trace view, from our columns to its pictures.

Run: python -m tests.perf.trace_server [--slices 100000 1000000 5000000]

For each size a trace is generated: threads with nested operators and device streams with
short kernels. "first" is the tile of everything, with nothing derived yet: from the columns
to the compressed body. After that all is warm: the median over windows of a tenth, a
hundredth and a thousandth of the time, each elsewhere, and of the sums and the search over
everything. The last column says what opening the tile costs beside reading the columns once.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import time
from dataclasses import replace

import numpy as np

from tb_plugin.analysis.trace.build import EMPTY_TRACE
from tb_plugin.analysis.trace.trace import (
    Slices,
    Trace,
    Track,
)
from tb_plugin.contract.wire import envelope
from tb_plugin.jobs.trace_sources import FoundSource, OpenSource
from tb_plugin.pages.trace.axis import Tracks, placed
from tb_plugin.pages.trace.slice import (
    SearchQuery,
    trace_range,
    trace_search,
)
from tb_plugin.pages.trace.slices import SlicesQuery, trace_slices

START_NS = 1_780_000_000 * 10**9
LEVELS = 6
NAMES = 400


def made(num_slices: int, seed: int = 7) -> Trace:
    """Four threads of nested operators, and four streams of kernels."""
    rng = np.random.default_rng(seed)
    streams = num_slices // 2 // 4
    per_level = num_slices // 2 // 4 // LEVELS
    span = max(1, num_slices) * 400
    tracks, starts, lengths, levels, parents, track_of, category = (
        [] for _ in range(7)
    )
    row = 0
    for index in range(8):
        first, rows = row, [row]
        if index < 4:
            cuts = np.sort(rng.integers(0, span, 2 * per_level))
            start, end = cuts[::2], cuts[1::2]
            above = np.full(per_level, -1)
            for level in range(LEVELS):
                starts.append(start)
                lengths.append(end - start)
                levels.append(np.full(per_level, level, np.int32))
                parents.append(above)
                above = np.arange(row, row + per_level)
                row += per_level
                rows.append(row)
                inset = (end - start) // 8
                start, end = start + inset, end - inset
        else:
            start = np.sort(rng.integers(0, span, streams))
            room = np.diff(start, append=span)
            starts.append(start)
            lengths.append(np.minimum(rng.integers(200, 30_000, streams), room))
            levels.append(np.zeros(streams, np.int32))
            parents.append(np.full(streams, -1))
            row += streams
            rows.append(row)
        track_of.append(np.full(row - first, index, np.int32))
        category.append(np.full(row - first, 1 + (index >= 4), np.int32))
        tracks.append(
            Track(
                name=f"thread {index}" if index < 4 else f"stream {index}",
                process="python 1" if index < 4 else "GPU 0",
                kind="host" if index < 4 else "device",
                rank=0,
                first_row=first,
                num_slices=row - first,
                level_rows=tuple(rows),
            )
        )
    strings = ["", "cpu_op", "kernel", *(f"aten::op_{at}" for at in range(NAMES))]
    return replace(
        EMPTY_TRACE,
        tracks=tuple(tracks),
        strings=strings,
        slices=Slices(
            track=np.concatenate(track_of),
            level=np.concatenate(levels),
            start_ns=np.concatenate(starts),
            duration_ns=np.concatenate(lengths),
            name=rng.integers(3, len(strings), row).astype(np.int32),
            category=np.concatenate(category),
            parent=np.concatenate(parents),
            args=np.full(row, -1),
        ),
        base_ns=START_NS,
        end_ns=span,
    )


def found(trace: Trace) -> FoundSource:
    """The trace as a source of a run."""
    return FoundSource(
        "made",
        "trace",
        "made.json",
        0,
        1,
        len(trace.slices),
        ("made",),
        lambda _: lambda: trace,
    )


def measured(num_slices: int) -> dict[str, float]:
    """Seconds and bytes of one size."""
    trace = made(num_slices)
    begin = time.perf_counter()
    for column in (trace.slices.start_ns, trace.slices.duration_ns, trace.slices.name):
        int(column.sum())
    scan = time.perf_counter() - begin
    (place,) = placed([OpenSource(found(trace), trace)], {}, 0)
    tracks = Tracks([("made", tuple(range(len(trace.tracks))))])
    places = {"made": place}

    def tile(low: int, high: int, px: int = 1600) -> tuple[float, int, int]:
        query = SlicesQuery(
            run="r", tracks=tracks, t0=START_NS + low, t1=START_NS + high, px=px
        )
        start = time.perf_counter()
        answer = trace_slices(places, query)
        body = gzip.compress(envelope(answer), 1)
        pieces = len(answer.row.data) // 4
        return time.perf_counter() - start, len(body), pieces

    result = {"scan": scan}
    result["first"], result["first_bytes"], result["first_pieces"] = tile(
        0, trace.end_ns
    )
    for name, share in (("tenth", 0.1), ("hundredth", 0.01), ("thousandth", 0.001)):
        width = int(trace.end_ns * share)
        for at in range(2):  # what is kept of a zoom is made
            tile(at * width, at * width + width)
        seen = [
            tile(low, low + width)
            for low in np.linspace(0, trace.end_ns - width, 7).astype(int).tolist()
        ]
        result[name] = statistics.median(seconds for seconds, _, _ in seen)
        result[f"{name}_bytes"] = max(size for _, size, _ in seen)
        result[f"{name}_pieces"] = max(pieces for _, _, pieces in seen)
    everything = SearchQuery(
        run="r", tracks=tracks, t0=START_NS, t1=START_NS + trace.end_ns, text="op_17"
    )
    start = time.perf_counter()
    trace_range(places, everything)
    result["range"] = time.perf_counter() - start
    start = time.perf_counter()
    trace_search(places, everything)
    result["search"] = time.perf_counter() - start
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--slices", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000]
    )
    sizes = parser.parse_args().slices
    print(
        "| slices | first tile | KB | a tenth | a hundredth | a thousandth | most KB"
        " | most pieces | sums | search | first / scan |"
    )
    print("|" + "---|" * 11)
    for size in sizes:
        one = measured(size)
        kinds = ("first", "tenth", "hundredth", "thousandth")
        most = max(one[f"{kind}_bytes"] for kind in kinds)
        pieces = max(one[f"{kind}_pieces"] for kind in kinds)
        print(
            f"| {size:,} | {one['first']:.2f} s | {one['first_bytes'] / 1e3:.0f}"
            f" | {one['tenth'] * 1e3:.0f} ms | {one['hundredth'] * 1e3:.0f} ms"
            f" | {one['thousandth'] * 1e3:.0f} ms | {most / 1e3:.0f} | {pieces:,}"
            f" | {one['range']:.2f} s | {one['search'] * 1e3:.0f} ms"
            f" | {one['first'] / one['scan']:.0f} |"
        )


if __name__ == "__main__":
    main()
