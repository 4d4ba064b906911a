"""Pre-aggregates rows while they are written, so that thousands of ranks open at once.

A `Rollup` holds a bounded number of buckets of consecutive rows. When they are full,
neighbours merge and the buckets become twice as wide: the whole run stays covered at
ever coarser grain, in bounded memory, and short runs are held row by row. Maxima and
minima survive merging exactly: peaks never vanish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from collector.format.numeric import ABSENT
from collector.format.records import TableDigest

if TYPE_CHECKING:
    from collections.abc import Sequence

Values: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]

FINE_BUCKETS: Final = 1024
"""Headline columns: about one bucket per pixel of a wide screen."""

COARSE_BUCKETS: Final = 128
"""All other columns: enough for a sparkline and a heatmap."""

AXES: Final = ("step_first", "step_last", "ns_first", "ns_last")


class Rollup:
    """Bounded max (and min, mean) of columns over buckets of consecutive rows."""

    def __init__(
        self, names: Sequence[str], *, max_buckets: int, max_only: bool = False
    ) -> None:
        """`max_buckets` is rounded down to an even number, at least 2."""
        self._names = tuple(names)
        self._max_buckets = max(2, max_buckets - max_buckets % 2)
        self._max_only = max_only
        self.rows_per_bucket = 1
        self.num_rows = 0
        self._steps = np.empty((0, 2), np.int64)
        self._times = np.empty((0, 2), np.int64)
        empty = np.empty((0, len(names)), np.float64)
        self._high, self._low, self._sum, self._count = empty, empty, empty, empty

    def add(
        self,
        time_ns: npt.NDArray[np.int64],
        step: npt.NDArray[np.int64],
        columns: Sequence[Values],
    ) -> None:
        """Append rows; `columns` in the order of the names given at construction."""
        if len(time_ns) == 0:
            return
        values = np.empty((len(time_ns), len(self._names)), np.float64)
        for index, column in enumerate(columns):
            values[:, index] = as_floats(column)
        while self.num_rows + len(time_ns) > self._max_buckets * self.rows_per_bucket:
            self._widen()
        # Open the last bucket again where it is not full, by starting inside it.
        filled = self.num_rows % self.rows_per_bucket
        bucket = (np.arange(len(time_ns)) + filled) // self.rows_per_bucket
        starts = np.flatnonzero(np.diff(bucket, prepend=-1))
        fresh = _aggregate(time_ns, step, values, starts)
        if filled:
            fresh = _join(self._pop(), fresh)
        self._append(fresh)
        self.num_rows += len(time_ns)

    def columns(self) -> dict[str, Values]:
        """One value per bucket: the axes, then each name's aggregates.

        `<name>:max` always, `<name>:min` and `<name>:mean` unless maxima only; NaN
        where a bucket recorded nothing.
        """
        result: dict[str, Values] = {
            "step_first": self._steps[:, 0],
            "step_last": self._steps[:, 1],
            "ns_first": self._times[:, 0],
            "ns_last": self._times[:, 1],
        }
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self._sum / self._count
        for index, name in enumerate(self._names):
            result[f"{name}:max"] = self._high[:, index]
            if not self._max_only:
                result[f"{name}:min"] = self._low[:, index]
                result[f"{name}:mean"] = mean[:, index]
        return result

    def _pop(self) -> _Buckets:
        last = _Buckets(
            self._steps[-1:],
            self._times[-1:],
            self._high[-1:],
            self._low[-1:],
            self._sum[-1:],
            self._count[-1:],
        )
        self._steps, self._times = self._steps[:-1], self._times[:-1]
        self._high, self._low = self._high[:-1], self._low[:-1]
        self._sum, self._count = self._sum[:-1], self._count[:-1]
        return last

    def _append(self, more: _Buckets) -> None:
        self._steps = np.concatenate([self._steps, more.steps])
        self._times = np.concatenate([self._times, more.times])
        self._high = np.concatenate([self._high, more.high])
        self._low = np.concatenate([self._low, more.low])
        self._sum = np.concatenate([self._sum, more.sum])
        self._count = np.concatenate([self._count, more.count])

    def _widen(self) -> None:
        self.rows_per_bucket *= 2
        pairs = np.arange(0, len(self._steps), 2)
        if len(pairs) == 0:
            return
        self._steps = np.stack(
            [
                np.minimum.reduceat(self._steps[:, 0], pairs),
                np.maximum.reduceat(self._steps[:, 1], pairs),
            ],
            axis=1,
        )
        self._times = np.stack(
            [
                np.minimum.reduceat(self._times[:, 0], pairs),
                np.maximum.reduceat(self._times[:, 1], pairs),
            ],
            axis=1,
        )
        self._high = np.fmax.reduceat(self._high, pairs)
        self._low = np.fmin.reduceat(self._low, pairs)
        self._sum = np.add.reduceat(self._sum, pairs)
        self._count = np.add.reduceat(self._count, pairs)


class _Buckets:
    """Rows of the six arrays that make up a stretch of buckets."""

    __slots__ = ("count", "high", "low", "steps", "sum", "times")

    def __init__(
        self,
        steps: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        high: npt.NDArray[np.float64],
        low: npt.NDArray[np.float64],
        total: npt.NDArray[np.float64],
        count: npt.NDArray[np.float64],
    ) -> None:
        self.steps, self.times = steps, times
        self.high, self.low, self.sum, self.count = high, low, total, count


def table_digest(
    schema_id: int,
    num_rows: int,
    chunks: Sequence[Sequence[int]],
    fine: Rollup,
    coarse: Rollup,
) -> TableDigest:
    """What a digest holds of one table.

    `chunks` has a row per chunk since the previous digest: offset, rows, first and last
    step, first and last nanosecond.
    """
    directory = np.array(chunks, np.int64).reshape(-1, 6)
    return TableDigest(
        schema_id=schema_id,
        num_rows=num_rows,
        chunk_offset=directory[:, 0],
        chunk_rows=directory[:, 1],
        chunk_first_step=directory[:, 2],
        chunk_last_step=directory[:, 3],
        chunk_first_ns=directory[:, 4],
        chunk_last_ns=directory[:, 5],
        fine_rows=fine.rows_per_bucket,
        fine=fine.columns(),
        coarse_rows=coarse.rows_per_bucket,
        coarse=coarse.columns(),
    )


def as_floats(values: Values) -> npt.NDArray[np.float64]:
    """float64 with NaN where an int64 column holds `ABSENT`."""
    if values.dtype == np.float64:
        return values  # type: ignore[return-value]
    floats = values.astype(np.float64)
    floats[values == ABSENT] = np.nan
    return floats


def _aggregate(
    time_ns: npt.NDArray[np.int64],
    step: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    starts: npt.NDArray[np.intp],
) -> _Buckets:
    steps = np.stack(
        [np.minimum.reduceat(step, starts), np.maximum.reduceat(step, starts)], axis=1
    )
    times = np.stack(
        [np.minimum.reduceat(time_ns, starts), np.maximum.reduceat(time_ns, starts)],
        axis=1,
    )
    present = (~np.isnan(values)).astype(np.float64)
    return _Buckets(
        steps,
        times,
        np.fmax.reduceat(values, starts),
        np.fmin.reduceat(values, starts),
        np.add.reduceat(np.nan_to_num(values), starts),
        np.add.reduceat(present, starts),
    )


def _join(last: _Buckets, fresh: _Buckets) -> _Buckets:
    """Fold an unfinished bucket into the first of the buckets that continue it."""
    fresh.steps[0, 0] = min(fresh.steps[0, 0], last.steps[0, 0])
    fresh.steps[0, 1] = max(fresh.steps[0, 1], last.steps[0, 1])
    fresh.times[0, 0] = min(fresh.times[0, 0], last.times[0, 0])
    fresh.times[0, 1] = max(fresh.times[0, 1], last.times[0, 1])
    fresh.high[0] = np.fmax(fresh.high[0], last.high[0])
    fresh.low[0] = np.fmin(fresh.low[0], last.low[0])
    fresh.sum[0] += last.sum[0]
    fresh.count[0] += last.count[0]
    return fresh
