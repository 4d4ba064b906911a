"""Tables back to the snapshot they were made of.

Equal stacks and frames become one object each, as torch's pickles have them, so what is
rebuilt is small and is not to be changed in place.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.errors import CorruptError
from memboard.collector.format.snapshots.columns import NOTHING
from memboard.collector.format.snapshots.encode import BLOCKS, FLAT, NESTED
from memboard.collector.format.snapshots.interning import MAX_KEYS
from memboard.collector.format.snapshots.plain_text import plain_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memboard.collector.format.records import CaptureTable, IntArray

    Row = dict[str, Any]

_MISSING: Final = object()
_MAX_LAYOUT: Final = 16 * MAX_KEYS


def rebuilt(tables: Mapping[str, CaptureTable]) -> Any:
    """The snapshot that `tables_of` was given.

    Raises:
        CorruptError: the tables contradict each other.
    """
    try:
        return _Decoder(tables).snapshot()
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise CorruptError(f"a snapshot does not decode: {error!r}") from error


class _Decoder:
    def __init__(self, tables: Mapping[str, CaptureTable]) -> None:
        self._tables = tables
        self._layout: dict[str, list[tuple[str, str, str, int]]] = {}
        self._strings: list[str] = list(tables["strings"]["text"])
        self._values: dict[int, Any] = {}
        self._stacks: list[list[Row]] = []
        self._read_layout()
        self._read_stacks()

    def snapshot(self) -> Any:
        root = self._tables["root"]
        entries: dict[str, Any] = {}
        for key, kind, value in zip(
            root["key"], root["kind"], root["value"], strict=True
        ):
            entries[str(key)] = self._entry(str(key), str(kind), str(value))
        if list(entries) == [""]:
            return entries[""]
        return entries

    def _entry(self, key: str, kind: str, value: str) -> Any:
        part = key or "segments"
        if kind == "segments":
            return self._segments(part)
        if kind == "traces":
            return self._traces(part)
        if kind == "rows":
            return self._rows(FLAT[part])
        if kind == "value":
            return plain_value(value)
        raise CorruptError(f"a snapshot's entry of kind {kind!r} is not known")

    def _segments(self, key: str) -> list[Row]:
        table, inner, _, count = NESTED[key]
        segments = self._rows(table)
        blocks = self._rows(inner)
        lengths = self._numbers(table, count)
        ends = _ends(np.maximum(lengths, 0), len(blocks))
        for segment, length, end in zip(segments, lengths.tolist(), ends, strict=True):
            if length >= 0:
                segment[BLOCKS] = blocks[end - length : end]
        return segments

    def _traces(self, key: str) -> list[list[Row]]:
        table, inner, _, count = NESTED[key]
        events = self._rows(inner)
        lengths = self._numbers(table, count)
        ends = _ends(lengths, len(events))
        pairs = zip(lengths.tolist(), ends, strict=True)
        return [events[end - length : end] for length, end in pairs]

    def _rows(self, table: str) -> list[Row]:
        """The table's rows as dicts, without what is nested in them."""
        layout = self._layout.get(table, [])
        if not layout:
            return [{} for _ in range(self._num_rows(table))]
        keys = [entry[0] for entry in layout]
        columns = [self._column(table, *entry[1:]) for entry in layout]
        rows = zip(*columns, strict=True)
        if not any(entry[3] for entry in layout):
            return [dict(zip(keys, row, strict=True)) for row in rows]
        return [
            {
                key: value
                for key, value in zip(keys, row, strict=True)
                if value is not _MISSING
            }
            for row in rows
        ]

    def _column(self, table: str, column: str, kind: str, optional: int) -> list[Any]:
        if kind == "pair":
            first, second = (
                self._numbers(table, f"{column}.{half}") for half in (0, 1)
            )
            pairs = list(zip(first.tolist(), second.tolist(), strict=True))
            return _with_gaps(pairs, first == ABSENT) if optional else pairs
        if kind == "float":
            floats = np.asarray(self._tables[table][column], np.float64)
            values = floats.tolist()
            return _with_gaps(values, np.isnan(floats)) if optional else values
        numbers = self._numbers(table, column)
        if kind in ("int", "uint"):
            numbers_as = numbers.view(np.uint64) if kind == "uint" else numbers
            values = numbers_as.tolist()
            return _with_gaps(values, numbers == ABSENT) if optional else values
        if kind == "bool":
            values = (numbers != 0).tolist()
        else:
            values = self._looked_up(kind, numbers)
        return _with_gaps(values, numbers == NOTHING) if optional else values

    def _looked_up(self, kind: str, numbers: IntArray) -> list[Any]:
        if kind == "stack":
            return _picked(self._stacks, numbers)
        texts = _picked(self._strings, numbers)
        if kind == "text":
            return texts
        if kind == "value":
            values = {text: plain_value(text) for text in set(filter(None, texts))}
            return list(map(values.get, texts))
        raise CorruptError(f"a column of kind {kind!r} is not known")

    def _numbers(self, table: str, column: str) -> IntArray:
        return np.asarray(self._tables[table][column], np.int64)

    def _num_rows(self, table: str) -> int:
        """Of a table whose rows are empty dicts: the tables' own columns tell."""
        return max((len(column) for column in self._tables[table].values()), default=0)

    def _read_layout(self) -> None:
        layout = self._tables["layout"]
        if len(layout["table"]) > _MAX_LAYOUT:
            raise CorruptError("a snapshot has too many columns")
        names = ("table", "key", "column", "kind")
        optional = np.asarray(layout["optional"], np.int64).tolist()
        texts = (map(str, layout[column]) for column in names)
        seen = set()
        for table, key, column, kind, may_lack in zip(*texts, optional, strict=True):
            if (table, key) in seen:
                raise CorruptError(f"a snapshot has {key!r} of {table!r} twice")
            seen.add((table, key))
            entry = key, column, kind, int(may_lack)
            self._layout.setdefault(table, []).append(entry)

    def _read_stacks(self) -> None:
        frames = self._rows("frames")
        lengths = self._numbers("stacks", "num_frames")
        inner = _picked(frames, self._numbers("stack_frames", "frame"))
        ends = _ends(lengths, len(inner))
        pairs = zip(lengths.tolist(), ends, strict=True)
        self._stacks = [inner[end - length : end] for length, end in pairs]


def _ends(lengths: IntArray, num_rows: int) -> list[int]:
    if len(lengths) and int(lengths.min()) < 0:
        raise CorruptError("a snapshot counts less than nothing")
    ends: list[int] = np.cumsum(lengths).tolist()
    if (ends[-1] if ends else 0) != num_rows:
        raise CorruptError(f"a snapshot counts {ends[-1:]} rows, it has {num_rows}")
    return ends


def _picked(things: Sequence[Any], numbers: IntArray) -> list[Any]:
    """The things by number; None for NOTHING."""
    if len(numbers) and not (
        int(numbers.min()) >= NOTHING and int(numbers.max()) < len(things)
    ):
        raise CorruptError("a snapshot refers to what it does not have")
    with_nothing: Iterable[Any] = chain(things, (None,))  # which -1 leads to
    return list(map(list(with_nothing).__getitem__, numbers.tolist()))


def _with_gaps(values: list[Any], gaps: Any) -> list[Any]:
    for place in np.flatnonzero(gaps).tolist():
        values[place] = _MISSING
    return values
