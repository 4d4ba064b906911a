"""Rows of one table on their way to the file: pending, then a chunk and a rollup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from collector.format.digest import TableRollup
from collector.format.encoding.numeric import ABSENT
from collector.format.records import encode_chunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.format.columns import Dtype
    from collector.format.encoding.numeric import Values
    from collector.format.records import Schema

Row: TypeAlias = "Sequence[int | float | None]"
"""Values in schema order, the axes (time_ns, step) first."""

_INT64_MAX: Final = 2**63 - 1


class Table:
    """One schema's rows. `encode` may be repeated; `commit` says it is on disk."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.rollup = TableRollup(schema)
        self._pending: list[Row] = []
        self._encoded: list[Values] = []

    @property
    def num_pending(self) -> int:
        """Rows that are not on disk yet."""
        return len(self._pending)

    def add(self, row: Row) -> None:
        """Take a row; its length is the schema's."""
        self._pending.append(row)

    def encode(self, *, digest_offset: int) -> bytes:
        """The pending rows as the payload of a chunk."""
        values = zip(*self._pending, strict=True)
        self._encoded = [
            to_column(column, described.dtype)
            for column, described in zip(values, self.schema.columns, strict=True)
        ]
        with np.errstate(over="ignore"):  # beyond float32 is infinite
            return encode_chunk(self.schema, self._encoded, digest_offset=digest_offset)

    def commit(self, *, is_on_disk: bool) -> None:
        """What was encoded is on disk, or is known to the rollup alone."""
        with np.errstate(all="ignore"):  # infinities are data
            self.rollup.add(self._encoded, is_on_disk=is_on_disk)
        self._pending, self._encoded = [], []

    def discard(self) -> int:
        """Drop the pending rows; returns how many."""
        num_rows = len(self._pending)
        self._pending, self._encoded = [], []
        return num_rows


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
