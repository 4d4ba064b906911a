"""Numbers of a recording over time, as counter tracks beside a rank's slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.series.buckets import thinned, visible
from memboard.tb_plugin.analysis.series.labels import column_label
from memboard.tb_plugin.analysis.series.rows import Rows
from memboard.tb_plugin.analysis.time.intervals import step_means
from memboard.tb_plugin.analysis.trace.timeline.counters import DEVICE_USE
from memboard.tb_plugin.analysis.trace.timeline.tiles import zoom_of
from memboard.tb_plugin.api.base import f64
from memboard.tb_plugin.api.time.trace import TraceLine, TraceTrack
from memboard.tb_plugin.facts.series.selection import RankRows, XAxis
from memboard.tb_plugin.facts.traces.axis import COUNTERS
from memboard.tb_plugin.formats.recording.series import WALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

    Floats: TypeAlias = npt.NDArray[Any]

COLUMNS: Final = (
    "allocated_peak_bytes",
    "reserved_peak_bytes",
    "device_used_bytes",
    "gpu_utilization_pct",
    "rss_bytes",
    "workers_rss_bytes",
    "memory_used_bytes",
    "cpu_total_pct",
    "disk_read_bytes_per_second",
    "network_received_bytes_per_second",
)
"""Columns of counters; a track's index is its place here: add new ones at the end."""

MEMORY: Final = frozenset(
    {"allocated_peak_bytes", "reserved_peak_bytes", "device_used_bytes"}
)


class RankCounters:
    """Counter tracks of one rank; hold the run's lock."""

    def __init__(self, reader: SeriesReader, run: Run, rank: int) -> None:
        self._run, self._rank = run, rank
        axis = XAxis("wall", {attempt.index: WALL for attempt in run.attempts})
        self._rows: dict[int, RankRows] = {}
        for index, column in enumerate(COLUMNS):
            key = run.catalogue.find(column)
            if key is not None and rank in run.catalogue.ranks_of(key):
                self._rows[index] = RankRows(reader, run, key, axis)

    def tracks(self, source: int) -> Iterator[tuple[TraceTrack, Rows]]:
        """A track and all its rows, of those that hold anything."""
        for index, rows_of in self._rows.items():
            rows = rows_of.rollup(self._rank, low=True)
            if rows is None or np.isnan(rows.high).all():
                continue
            key = self._run.catalogue.find(COLUMNS[index])
            info = (
                None if key is None else self._run.catalogue.info(key.table, key.column)
            )
            yield (
                TraceTrack(
                    source=source,
                    index=index,
                    key=f"{COUNTERS}{self._rank}:{index}",
                    name=column_label(COLUMNS[index]),
                    process="Memory" if COLUMNS[index] in MEMORY else "Host",
                    kind="counter",
                    rank=self._rank,
                    unit=None if info is None else info.unit,
                    most=float(np.nanmax(rows.high)),
                    least=float(np.nanmin(rows.low)),
                ),
                rows,
            )

    def lines(
        self,
        source_id: str,
        indices: Iterable[int],
        window: tuple[int, int],
        px: int,
        budget: Budget,
        offset_ns: int,
    ) -> Iterator[TraceLine]:
        """What is drawn in a window of time."""
        low, high = ((edge - offset_ns) / 1e6 for edge in window)
        for index in sorted(set(indices)):
            rows_of = self._rows.get(index)
            coarse = None if rows_of is None else rows_of.rollup(self._rank, low=True)
            if rows_of is None or coarse is None:
                continue
            fine = coarse
            if coarse.width > 1:
                fine = rows_of.refined(self._rank, coarse, low, high, budget) or coarse
            shown = visible(fine, low, high)
            drawn, width = _thinned(shown, low, high, px)
            yield TraceLine(
                track=f"{source_id}:{index}",
                series="",
                time_ns=f64((np.asarray(drawn.first, np.float64) - low) * 1e6),
                value=f64(drawn.high),
                reduced="exact" if width <= 1 else "highest",
            )


def trace_lines(
    trace: Trace, track: str, index: int, start_ns: int, end_ns: int, px: int
) -> Iterator[TraceLine]:
    """The series of one counter track of a trace in a window of its own time."""
    window = (start_ns, end_ns, px)
    for series in trace.series:
        if series.track != index:
            continue
        part = slice(series.first_row, series.first_row + series.num_points)
        time, value = trace.counters.time_ns[part], trace.counters.value[part]
        first, stop = np.searchsorted(time, (start_ns, end_ns)).tolist()
        chosen = slice(max(0, first - 1), stop + 1)
        if trace.tracks[index].process == DEVICE_USE:
            yield _mean_line(track, series.name, time[chosen], value[chosen], window)
            continue
        origin = int(time[chosen][0]) if len(time[chosen]) else start_ns
        x = (time[chosen] - origin).astype(np.float64)
        rows = Rows(x, x, np.asarray(value[chosen], np.float64), value[chosen], 1)
        drawn, width = _thinned(
            rows, float(start_ns - origin), float(end_ns - origin), px
        )
        yield TraceLine(
            track=track,
            series=series.name[:200],
            time_ns=f64(np.asarray(drawn.first) + float(origin - start_ns)),
            value=f64(drawn.high),
            reduced="exact" if width <= 1 else "highest",
        )


def _mean_line(
    track: str, series: str, time: Ints, value: Floats, window: tuple[int, int, int]
) -> TraceLine:
    """Shares of time: the highest of a pixel would say 100 % of nearly all of them."""
    start_ns, end_ns, px = window
    zoom = zoom_of(end_ns - start_ns, px)
    first = start_ns >> zoom << zoom
    edges = np.arange(first, end_ns + (1 << zoom) + 1, 1 << zoom, dtype=np.int64)
    is_exact = len(time) <= len(edges)
    if not is_exact:
        value = step_means(time, np.asarray(value, np.float64), edges)
        time = edges[:-1]
    return TraceLine(
        track=track,
        series=series[:200],
        time_ns=f64(np.asarray(time, np.float64) - start_ns),
        value=f64(value),
        reduced="exact" if is_exact else "mean",
    )


def _thinned(rows: Rows, low: float, high: float, px: int) -> tuple[Rows, int]:
    return thinned(rows, low, high, px) if len(rows) else (rows, 1)
