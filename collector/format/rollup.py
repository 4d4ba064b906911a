"""Pre-aggregates of rows, made while they are written: thousands of ranks open at once.

A `Rollup` holds a bounded number of buckets of consecutive rows. When they are full,
neighbours merge and the buckets become twice as wide: the whole run stays covered at
ever coarser grain, in bounded memory, and short runs are held row by row. Maxima and
minima survive merging exactly: peaks never vanish.

A digest repeats the rollups, so it must be small beside what it follows; and whoever
opens a live file reads frame by frame what follows the last digest, so that must stay
small too. `DigestPace` measures both in bytes, hence they hold at any pace of training:
all digests together stay below about a seventh of the file, and what is behind the last
one is at most the greater of six digests (a MiB or so) and an eighth of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from memboard.collector.format.encoding.numeric import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.format.encoding.numeric import Values

FINE_BUCKETS: Final = 1024
"""Headline columns: about one bucket per pixel of a wide screen."""

COARSE_BUCKETS: Final = 128
"""All other columns: enough for a sparkline and a heatmap."""

SHARE: Final = 6
"""Least ratio of the bytes before a digest to its size."""

_GROWTH: Final = 8
"""In long files digests come when this part of the file is new, ..."""

_MOST_BYTES: Final = 1 << 25

_FIRST_BYTES: Final = 1 << 16
"""No digest comes before; a reader is through that in a few milliseconds."""

_FIRST_ROWS: Final = 1024
_ROWS_GROWTH: Final = 1.25

_STEPS: Final = ("step_first", "step_last")
_TIMES: Final = ("ns_first", "ns_last")
AXES: Final = (*_STEPS, *_TIMES)


def rollup_names(names: Sequence[str], *, max_only: bool) -> tuple[str, ...]:
    """The columns of a rollup: `<name>:max`, `:min`, `:mean` of each name between axes.

    Neighbours are decoded together. First stands what every picture of all ranks needs:
    steps and maxima. Times, which take the most bytes, stand last.
    """
    kinds = ("max",) if max_only else ("max", "mean", "min")
    values = (f"{column}:{kind}" for kind in kinds for column in names)
    return (*_STEPS, *values, *_TIMES)


class Rollup:
    """Bounded max (and min, mean) of columns over buckets of consecutive rows."""

    def __init__(
        self, num_columns: int, *, max_buckets: int, max_only: bool = False
    ) -> None:
        """`max_buckets` is rounded down to an even number, at least 2."""
        self._max_buckets = max(2, max_buckets - max_buckets % 2)
        self._max_only = max_only
        self.rows_per_bucket = 1
        self.num_rows = 0
        self._folds: list[Any] = [np.minimum, np.maximum, np.minimum, np.maximum]
        self._folds += [np.fmax] if max_only else [np.fmax, np.fmin, np.add, np.add]
        self._held: list[npt.NDArray[Any]] = [np.empty(0, np.int64)] * len(AXES)
        values = np.empty((0, num_columns), np.float64)
        self._held += [values] * (len(self._folds) - len(AXES))
        """By fold: the axes, the highest, the lowest, the sum, and how many there are."""

    def add(self, time_ns: Values, step: Values, columns: Sequence[Values]) -> None:
        """Append rows; as many columns as given at construction."""
        if len(time_ns) == 0:
            return
        values = np.empty((len(time_ns), len(columns)), np.float64)
        for index, column in enumerate(columns):
            values[:, index] = _as_floats(column)
        while self.num_rows + len(time_ns) > self._max_buckets * self.rows_per_bucket:
            self._widen()
        rows: list[npt.NDArray[Any]] = [step, step, time_ns, time_ns, values]
        if not self._max_only:
            rows += [values, np.nan_to_num(values), 1.0 - np.isnan(values)]
        filled = self.num_rows % self.rows_per_bucket
        bucket = (np.arange(len(time_ns)) + filled) // self.rows_per_bucket
        starts = np.flatnonzero(np.diff(bucket, prepend=-1))
        for place, (fold, new) in enumerate(zip(self._folds, rows, strict=True)):
            earlier, fresh = self._held[place], fold.reduceat(new, starts)
            if filled:  # the last bucket goes on
                fresh[0] = fold(earlier[-1], fresh[0])
                earlier = earlier[:-1]
            self._held[place] = np.concatenate([earlier, fresh])
        self.num_rows += len(time_ns)

    def columns(self) -> list[Values]:
        """One value per bucket, as `rollup_names` names them; NaN where nothing was recorded.

        Of buckets of one row the maxima alone, which are minima and means as well.
        """
        axes, values = self._held[: len(AXES)], self._held[len(AXES) :]
        steps, times = axes[: len(_STEPS)], axes[len(_STEPS) :]
        if self.rows_per_bucket == 1:
            values = values[:1]
        elif not self._max_only:
            high, low, total, count = values
            with np.errstate(invalid="ignore", divide="ignore"):
                values = [high, total / count, low]
        return [*steps, *(column for kind in values for column in kind.T), *times]

    def _widen(self) -> None:
        self.rows_per_bucket *= 2
        pairs = np.arange(0, len(self._held[0]), 2)
        if len(pairs):
            columns = zip(self._folds, self._held, strict=True)
            self._held = [fold.reduceat(values, pairs) for fold, values in columns]


def _as_floats(values: Values) -> npt.NDArray[np.float64]:
    """float64 with NaN where an int64 column holds `ABSENT`."""
    floats = values.astype(np.float64, copy=False)
    if values.dtype == np.int64:
        floats[values == ABSENT] = np.nan
    return floats


class DigestPace:
    """Of one file; a digest that turns out too big waits for more rows."""

    def __init__(self) -> None:
        self._covered_bytes = 0
        """Where in the file the last digest ended."""
        self._due_bytes = _FIRST_BYTES
        """How much behind that makes the next one worth encoding."""
        self._unlisted_rows = 0
        self._unlisted_due: float = _FIRST_ROWS
        self._is_soon = False

    def flush_soon(self) -> None:
        """Make the next digest due now, whatever its size."""
        self._is_soon = True

    def roll_up(self, num_rows: int) -> None:
        """So many rows are known to the rollup alone: no chunk has them."""
        self._unlisted_rows += num_rows

    def is_due(self, end: int) -> bool:
        """Whether to encode a digest now; `end`: the size of the file."""
        return (
            self._is_soon
            or end - self._covered_bytes >= self._due_bytes
            or self._unlisted_rows >= self._unlisted_due
        )

    def admits(self, num_bytes: int, end: int) -> bool:
        """Whether a digest of so many bytes is to be written; asked when one is due."""
        long = min(end // _GROWTH, _MOST_BYTES)
        self._due_bytes = max(_FIRST_BYTES, SHARE * num_bytes, long)
        return (
            self._is_soon
            or end - self._covered_bytes >= SHARE * num_bytes
            or self._unlisted_rows >= self._unlisted_due
        )

    def written(self, end: int) -> None:
        """The digest that was admitted ends at `end`."""
        self._is_soon = False
        self._covered_bytes = end
        self._unlisted_due = max(_FIRST_ROWS, self._unlisted_rows * _ROWS_GROWTH)
