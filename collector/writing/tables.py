"""Rows of one table on their way to the file: pending, then a chunk, then a digest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from collector.format.codec import encode_chunk
from collector.format.numeric import ABSENT
from collector.format.rollup import COARSE_BUCKETS, FINE_BUCKETS, Rollup, table_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.format.columns import Column, Dtype
    from collector.format.numeric import Values
    from collector.format.records import Schema, TableDigest

Row: TypeAlias = "Sequence[int | float | None]"
"""Values in schema order, the axes (time_ns, step) first."""

_NUM_AXES: Final = 2
_INT64_MAX: Final = 2**63 - 1


class Table:
    """One schema's rows. `encode` may be repeated; `commit` says it is on disk."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.num_rows = 0
        """Rows on disk or rolled up so far, all in all."""
        self._pending: list[Row] = []
        self._encoded: list[Values] = []
        self._directory: list[tuple[int, int, int, int, int, int]] = []
        self._headlines = _places(schema.columns, headline=True)
        self._others = _places(schema.columns, headline=False)
        # Of a table that is not rolled up these stay empty.
        self._fine = Rollup(
            [schema.columns[at].name for at in self._headlines],
            max_buckets=FINE_BUCKETS,
        )
        self._coarse = Rollup(
            [schema.columns[at].name for at in self._others],
            max_buckets=COARSE_BUCKETS,
            max_only=True,
        )

    @property
    def num_pending(self) -> int:
        """Rows that are not on disk yet."""
        return len(self._pending)

    def add(self, row: Row) -> None:
        """Take a row; its length is the schema's."""
        self._pending.append(row)

    def encode(self, *, digest_offset: int) -> bytes:
        """The pending rows as the payload of a chunk."""
        columns = self.schema.columns
        self._encoded = [
            to_column(values, column.dtype)
            for values, column in zip(
                zip(*self._pending, strict=True), columns, strict=True
            )
        ]
        with np.errstate(over="ignore"):  # beyond float32 is infinite
            return encode_chunk(self.schema, self._encoded, digest_offset=digest_offset)

    def commit(self, offset: int | None) -> None:
        """What was encoded lies at `offset`; None: nowhere, only the rollup keeps it."""
        columns, self._encoded = self._encoded, []
        times, steps = columns[0], columns[1]
        self._pending = []
        if self.schema.rolled_up:
            self._fine.add(times, steps, [columns[at] for at in self._headlines])  # type: ignore[arg-type]
            self._coarse.add(times, steps, [columns[at] for at in self._others])  # type: ignore[arg-type]
        if self.schema.rolled_up or offset is not None:
            self.num_rows += len(times)
        if offset is not None:
            self.list_chunk(offset, times, steps)

    def list_chunk(self, offset: int, times: Values, steps: Values) -> None:
        """Enter a chunk into the directory that the next digest carries."""
        self._directory.append(
            (
                offset,
                len(times),
                int(steps.min()),
                int(steps.max()),
                int(times.min()),
                int(times.max()),
            )
        )

    def discard(self) -> int:
        """Drop the pending rows; returns how many."""
        num_rows = len(self._pending)
        self._pending, self._encoded = [], []
        return num_rows

    def digest(self) -> TableDigest:
        """All that is known about the rows on disk."""
        return table_digest(
            self.schema.schema_id,
            self.num_rows,
            self._directory,
            self._fine,
            self._coarse,
        )

    def start_directory(self) -> None:
        """Forget the chunks listed so far: a digest has them, or their file is gone."""
        self._directory = []


def to_column(values: Sequence[int | float | None], dtype: Dtype) -> Values:
    """One column's values as an array; None, and what does not fit, as absent."""
    try:
        if dtype == "i8":
            return np.array(values, np.int64)
        return np.array(values, np.float64)  # None becomes NaN
    except (TypeError, ValueError, OverflowError):
        if dtype == "i8":
            return np.array([_to_int(value) for value in values], np.int64)
        return np.array([_to_float(value) for value in values], np.float64)


def _to_int(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):  # None, NaN, infinity
        return ABSENT
    return number if -_INT64_MAX <= number <= _INT64_MAX else ABSENT


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _places(columns: Sequence[Column], *, headline: bool) -> list[int]:
    return [
        at
        for at, column in enumerate(columns)
        if at >= _NUM_AXES and column.headline == headline
    ]
