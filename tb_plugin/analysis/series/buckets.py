"""As many values as there are pixels: the highest (and lowest) of each column.

Peaks are what a memory chart is read for, so reducing always takes extremes and a peak
keeps its own x. Nothing is averaged or dropped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.series.rows import Rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats, Indices


def visible(rows: Rows, low: float, high: float) -> Rows:
    """The entries that touch `low..high`, and one neighbour on each side.

    The neighbours let a line run to the edges. x must ascend.
    """
    start = int(np.searchsorted(rows.last, low, "left"))
    stop = int(np.searchsorted(rows.first, high, "right"))
    return rows.take(slice(max(0, start - 1), stop + 1))


def thinned(rows: Rows, low: float, high: float, max_points: int) -> tuple[Rows, int]:
    """At most about `max_points` entries over `low..high`, and rows per entry.

    Entries in the same pixel column become one, at the x of its highest value.
    """
    rows = _without_repeats(rows)
    if len(rows) <= max_points or high <= low:
        return rows, rows.width
    column = np.floor((rows.first - low) * (max_points / (high - low)))
    column = np.clip(column, -1, max_points)
    return _grouped(rows, np.flatnonzero(np.diff(column, prepend=np.nan) != 0))


def _without_repeats(rows: Rows) -> Rows:
    """One entry per x: charts need x to ascend."""
    fresh = np.diff(rows.first, prepend=rows.first[:1] - 1) > 0
    if bool(fresh.all()):
        return rows
    merged, width = _grouped(rows, np.flatnonzero(fresh))
    return replace(merged, width=width)


def _grouped(rows: Rows, starts: Indices) -> tuple[Rows, int]:
    counts = np.diff(starts, append=len(rows))
    high = np.fmax.reduceat(rows.high, starts)
    low = np.fmin.reduceat(rows.low, starts)
    # The x of the highest value: the first entry of its group that equals the maximum.
    group = np.repeat(np.arange(len(starts)), counts)
    is_peak = rows.high == high[group]
    peaks = np.flatnonzero(is_peak)
    rows_of_peaks = starts.copy()
    rows_of_peaks[group[peaks][::-1]] = peaks[::-1]
    ends = starts + counts - 1
    merged = Rows(rows.first[rows_of_peaks], rows.last[ends], high, low, rows.width)
    return merged, int(counts.max()) * rows.width


def windows(
    rows_first: npt.NDArray[np.generic],
    rows_last: npt.NDArray[np.generic],
    edges: Floats,
) -> tuple[Indices, Indices]:
    """Which entries touch each column: `[start, stop)` by column.

    Columns are half open, `edges[c] <= x < edges[c + 1]`; x must ascend.
    """
    start = np.searchsorted(rows_last, edges[:-1], "left")
    stop = np.searchsorted(rows_first, edges[1:], "left")
    return start, stop


def pooled(values: Floats, start: Indices, stop: Indices) -> Floats:
    """Highest value of each window, along the last axis; NaN where it is empty."""
    if values.shape[-1] == 0:
        return np.full((*values.shape[:-1], len(start)), np.nan)
    # reduceat needs every index inside, so one absent value closes the row.
    padding = np.full((*values.shape[:-1], 1), np.nan)
    padded = np.concatenate([values, padding], axis=-1)
    pairs = np.empty(2 * len(start), np.intp)
    pairs[0::2], pairs[1::2] = np.minimum(start, stop), stop
    highest = np.fmax.reduceat(padded, pairs, axis=-1)[..., 0::2]
    highest[..., start >= stop] = np.nan
    return highest


def during(
    first: npt.NDArray[np.generic],
    last: npt.NDArray[np.generic],
    other_first: npt.NDArray[np.generic],
    other_values: Floats,
) -> Floats:
    """Another column's highest value over the steps of each of some buckets."""
    # A sample between two steps belongs to the step before it.
    start = np.searchsorted(other_first, first, "right") - 1
    stop = np.searchsorted(other_first, last, "right")
    start = np.clip(start, 0, len(other_first) - 1)
    return pooled(other_values, start, np.maximum(stop, start + 1))
