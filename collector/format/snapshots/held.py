"""Events that are columns already, on their way into the tables of a snapshot.

A reader of dumped snapshots makes columns while it reads, without an object per event.
Its lists of events are empty then; what they held are rows here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.format.snapshots.columns import GAPS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.format.records import FloatArray, IntArray
    from collector.format.snapshots.interning import Interner


@dataclass(frozen=True, slots=True)
class HeldColumn:
    """One key of the events: numbers as they are, texts and stacks by `HeldEvents`."""

    kind: str
    """See `collector.format.snapshots`."""
    arrays: tuple[IntArray | FloatArray, ...]
    """Two of a pair, else one; a row without the key has the kind's gap."""


@dataclass(frozen=True, slots=True)
class HeldEvents:
    """All events of a snapshot, of every list."""

    columns: Mapping[str, HeldColumn]
    texts: Sequence[str]
    stacks: Sequence[list[dict[str, Any]]]
    spans: Mapping[int, tuple[int, int]]
    """By id of an empty list: the rows that it held, from and to."""

    def span(self, rows: Any) -> tuple[int, int]:
        """The rows of a list, or none."""
        return self.spans.get(id(rows), (0, 0))

    def numbered(self, interner: Interner) -> HeldEvents:
        """The same with the interner's numbers of texts and stacks."""
        maps = {
            "text": interner.texts(self.texts),
            "stack": interner.stack_numbers(self.stacks),
        }
        maps["value"] = maps["text"]
        columns = {}
        for key, column in self.columns.items():
            arrays = column.arrays
            if column.kind in maps:
                arrays = (_looked_up(maps[column.kind], np.asarray(arrays[0])),)
            columns[key] = HeldColumn(column.kind, arrays)
        return HeldEvents(columns, (), (), self.spans)


def rows_of(column: HeldColumn, spans: Sequence[tuple[int, int]]) -> HeldColumn:
    """A column's rows of some lists, one list after the other."""
    picked = tuple(
        np.concatenate([array[start:stop] for start, stop in spans] or [array[:0]])
        for array in column.arrays
    )
    return HeldColumn(column.kind, picked)


def gaps_of(column: HeldColumn) -> Any:
    """Which rows lack the key."""
    first = column.arrays[0]
    return np.isnan(first) if column.kind == "float" else first == GAPS[column.kind]


def _looked_up(numbers: IntArray, places: IntArray) -> IntArray:
    found = np.full(len(places), -1, np.int64)
    there = places >= 0
    found[there] = numbers[places[there]]
    return found
