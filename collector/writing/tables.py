"""Tables of a file: their schemas, queued before the first row, and rows until written."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.collector.format.digest import TableRollup
from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.records import Schema, encode_chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.format.columns import Column, Dtype
    from memboard.collector.format.encoding.numeric import Values

Row: TypeAlias = "Sequence[int | float | None]"
"""Values in schema order, the axes (time_ns, step) first."""

_MAX_TABLES: Final = 512
"""A program may invent names of functions without end; each table costs memory."""

_INT64_MAX: Final = 2**63 - 1


class Schemas:
    """Of one recording. Safe from any thread."""

    def __init__(self, put: Callable[[Schema], None], warn_once: WarnOnce) -> None:
        # `put` queues a schema
        self._put = put
        self._warn_once = warn_once
        self._lock = threading.RLock()
        self._ids = count()
        self._of_kinds: dict[tuple[str, str], list[tuple[tuple[Column, ...], int]]] = {}
        """By table and phase, what kinds write there: columns and their schema."""
        self._num_of_kinds = 0

    def add(
        self,
        table: str,
        phase: str,
        columns: tuple[Column, ...],
        interval_seconds: float | None = None,
        *,
        rolled_up: bool = True,
    ) -> int:
        """Another table, by the number that its rows go under."""
        with self._lock:
            schema = Schema(
                schema_id=next(self._ids),
                table=table,
                phase=phase,
                columns=columns,
                interval_seconds=interval_seconds,
                rolled_up=rolled_up,
            )
            self._put(schema)
        return schema.schema_id

    def of_kind(
        self, table: str, phase: str, columns: tuple[Column, ...], *, rolled_up: bool
    ) -> int | None:
        """The number of a kind's table, new or not; None where there are too many."""
        # Lists of them are replaced and never changed, so the usual case needs no lock.
        for known_columns, schema_id in self._of_kinds.get((table, phase), ()):
            if known_columns is columns:
                return schema_id
        with self._lock:
            known_tables = self._of_kinds.get((table, phase), [])
            for known_columns, schema_id in known_tables:
                if known_columns == columns:
                    return schema_id
            if self._num_of_kinds >= _MAX_TABLES:
                self._warn_once(
                    "tables",
                    "more than %d tables of functions: %s and further ones are not"
                    " recorded. Give functions and spans names without a number that"
                    " grows.",
                    _MAX_TABLES,
                    table,
                )
                return None
            schema_id = self.add(table, phase, columns, rolled_up=rolled_up)
            self._num_of_kinds += 1
            self._of_kinds[table, phase] = [*known_tables, (columns, schema_id)]
        return schema_id


class Table:
    """One schema's rows. `encode` may be repeated; `commit` says it is on disk."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.rollup = TableRollup(schema)
        self.num_over_budget = 0
        """Rows that only the rollup has, because the disk budget was spent."""
        self.num_discarded = 0
        """Rows that a fault of the writer cost."""
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
            return encode_chunk(
                self.schema,
                self._encoded,
                digest_offset=digest_offset,
                first_row=self.rollup.num_on_disk,
            )

    def commit(self, *, is_on_disk: bool) -> None:
        """What was encoded is on disk, or is known to the rollup alone."""
        with np.errstate(all="ignore"):  # infinities are data
            self.rollup.add(self._encoded, is_on_disk=is_on_disk)
        if not is_on_disk:
            self.num_over_budget += self.num_pending
        self._pending, self._encoded = [], []

    def discard(self) -> int:
        """Drop the pending rows; returns how many."""
        num_rows = len(self._pending)
        self.num_discarded += num_rows
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
