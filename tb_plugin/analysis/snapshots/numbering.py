"""Streams, pools and texts of a snapshot, numbered in the order in which they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, constant, grouped
from memboard.tb_plugin.analysis.snapshots.snapshot import DEFAULT_POOL

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.snapshots.columns import Table


class Numbering:
    """Rows of `Snapshot.streams`, `pools` and `texts` for the values of tables."""

    def __init__(self, texts: list[str], note: Callable[[str, Flags], None]) -> None:
        """`texts` grows by what has to be spelled out.

        `note` is told of rows that hold something else, in words.
        """
        self._texts = texts
        self._note = note
        self.streams: dict[int, int] = {0: 0}
        """The row of each pointer; the default stream is the first."""
        self.pools: dict[tuple[int, int], int] = {DEFAULT_POOL: 0}
        """The row of each pair of numbers."""

    def text_rows(self, table: Table, column_name: str) -> Ints:
        """Rows of texts that say something: not empty, not `N/A`."""
        values = table.text_rows(column_name)
        if table.kind(column_name) == "value":
            values = self._as_texts(table, column_name)
        means = np.arange(len(self._texts) + 1, dtype=np.int32)
        means[-1] = NOTHING  # where NOTHING looks
        empty = [row for row, text in enumerate(self._texts) if text in ("", "N/A")]
        means[empty] = NOTHING
        rows, place = grouped(values)
        if (means[rows] == NOTHING).all():
            return constant(NOTHING, len(values))
        return means[rows][place]

    def _as_texts(self, table: Table, column_name: str) -> Ints:
        """Rows of texts for values of any kind: a dict is written `key=value, ...`."""
        rows, values = table.values(column_name)
        place = {text: row for row, text in enumerate(self._texts)}
        texts = [_readable(value) for value in values]
        self._texts += dict.fromkeys(text for text in texts if text not in place)
        place.update((text, row) for row, text in enumerate(self._texts))
        return np.array([*(place[text] for text in texts), NOTHING], np.int64)[rows]

    def stream_rows(self, table: Table) -> Ints:
        """Of the column `stream`, a pointer each; without one all are of the default."""
        streams, wrong = table.checked("stream", 0)
        self._note("streams that are no whole number", wrong)
        pointers, place = grouped(streams)
        rows = [
            self.streams.setdefault(int(pointer), len(self.streams))
            for pointer in pointers.tolist()
        ]
        return _of_rows(rows, place)

    def pool_rows(self, table: Table, column_name: str) -> Ints:
        """Of a column of pairs; NOTHING where there is none, or none that a pool has."""
        first, second, wrong = table.pair(column_name)
        self._note("pools that are no two whole numbers", wrong)
        if first is None or second is None:
            return constant(NOTHING, len(table))
        (of_first, a), (of_second, b) = grouped(first), grouped(second)
        width = max(1, len(of_second))
        if len(of_first) == len(of_second) == 1:
            pairs, place = np.zeros(1, np.int64), constant(0, len(table))
        else:
            pairs, place = grouped(a.astype(np.int64) * width + b)
        ids = zip(of_first[pairs // width], of_second[pairs % width], strict=True)
        rows = [
            self.pools.setdefault((int(owner), int(other)), len(self.pools))
            if owner >= 0 and other >= 0
            else NOTHING
            for owner, other in ids
        ]
        return _of_rows(rows, place)


def _readable(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{key}={entry}" for key, entry in value.items())
    return "" if value is None else str(value)


def _of_rows(rows: list[int], place: Ints) -> Ints:
    """The row at each place; where there is but one it takes no memory."""
    if len(rows) == 1:
        return constant(rows[0], len(place))
    return np.array(rows, np.int32)[place]
