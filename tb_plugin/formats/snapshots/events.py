"""Allocator events as columns, while a file is read.

Events come one by one, or many at once from `event_reader`; both fill rows that were
numbered in the file's order, and `settle` puts them into their columns. Columns appear
when their key does; rows without it hold the kind's gap. Kinds are those of
`memboard.collector.format.snapshots`: a key whose values change their type is kept as `value`
there too.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.snapshots.plain_text import plain_text
from memboard.tb_plugin.formats.snapshots.pickles.extent import Extent, is_container
from memboard.tb_plugin.formats.snapshots.pickles.packed import PackedNumbers
from memboard.tb_plugin.formats.snapshots.pickles.stack import StackNumber
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from memboard.tb_plugin.formats.snapshots.stacks import Stacks

    Numbers = npt.NDArray[Any]

MAX_KEYS: Final = 64
"""Of an event: torch's have about ten."""
MAX_TEXT_BYTES: Final = 128 << 20
"""Of all distinct texts of events, as objects."""

NOTHING: Final = -1
GAPS: Final[dict[str, float]] = {
    "int": ABSENT,
    "uint": ABSENT,
    "pair": ABSENT,
    "float": float("nan"),
}
_MAX_UNSETTLED: Final = 1 << 14
_MAX_VALUES: Final = 100_000
"""In a value of one key of an event."""
_WRAP: Final = 2**64
_TEXT: Final = 150
"""Bytes of a text's object and of its place among the texts."""


class Column:
    """One key's values: numbers as they are, all else as numbers of texts or stacks."""

    def __init__(self, kind: str, num_before: int) -> None:
        self.kind = kind
        self.has_negative = False
        self.make(kind)
        for packed in self.parts:
            packed.pad(self.gap, num_before)

    def make(self, kind: str) -> None:
        """Begin anew, as this kind."""
        self.kind = kind
        num_parts = 2 if kind == "pair" else 1
        self.parts = [PackedNumbers(is_float=kind == "float") for _ in range(num_parts)]
        """Settled rows; two of pairs."""
        self.rows = array("q")
        """Rows of values that came one by one and are not settled yet."""
        code = "d" if kind == "float" else "q"
        self.values: list[array[Any]] = [array(code) for _ in range(num_parts)]

    @property
    def gap(self) -> float:
        """What stands where a row lacks the key."""
        return GAPS.get(self.kind, NOTHING)

    def add(self, row: int, *values: float) -> None:
        self.rows.append(row)
        for column, value in zip(self.values, values, strict=True):
            column.append(value)

    def settle(
        self, first: int, count: int, rows: Numbers | None, values: tuple[Numbers, ...]
    ) -> None:
        """Fill `count` rows from `first` on: `rows` of them (None: all) with `values`."""
        if values and self.kind == "int":
            negative = (values[0] < 0) & (values[0] != ABSENT)
            self.has_negative = self.has_negative or bool(negative.any())
        for place, packed in enumerate(self.parts):
            if values and rows is None:
                packed.append(values[place])
                continue
            kind = np.float64 if self.kind == "float" else np.int64
            filled = np.full(count, self.gap, kind)
            if values:
                filled[rows] = values[place]
            if self.rows:
                places = np.frombuffer(self.rows, np.int64) - first
                filled[places] = np.frombuffer(self.values[place], kind)
            packed.append(filled)
        if self.rows:
            self.rows = array("q")
            self.values = [array(column.typecode) for column in self.values]


class Events:
    """All events of a snapshot, of every device, in the file's order."""

    def __init__(self, stacks: Stacks) -> None:
        self.columns: dict[str, Column] = {}
        self.num_rows = 0
        self.num_settled = 0
        self.texts: dict[str, int] = {}
        """The number of every text of the columns."""
        self.text_list: list[str] = []
        self.settle: Callable[[], None] = self.settle_singles
        """Settles all rows; whoever holds back rows of its own puts itself here."""
        self.kinds_changed: Callable[[], None] = _nobody
        """Called when a column holds another kind than before."""
        self._stacks = stacks
        self._text_bytes = 0

    def add(self, event: Mapping[str, Any], offset: int) -> None:
        """Append a row; a list of frames is given as its stack's number."""
        kinds = {key: kind_of(value) for key, value in event.items()}
        for key, kind in kinds.items():
            column = self.column(key, kind, offset)
            if kind != column.kind:
                self._reconcile(column, kind, event[key], offset)
        for key, value in event.items():
            self._add_value(self.columns[key], value, offset)
        self.num_rows += 1
        if self.num_rows - self.num_settled >= _MAX_UNSETTLED:
            self.settle()

    def column(self, key: str, kind: str, offset: int) -> Column:
        """The column of a key; made where it is new."""
        column = self.columns.get(key)
        if column is None:
            if len(self.columns) >= MAX_KEYS:
                raise RefusedError("events have too many different keys", offset)
            column = self.columns[key] = Column(kind, self.num_settled)
        return column

    def text(self, text: str, offset: int) -> int:
        """The number of a text."""
        number = self.texts.setdefault(text, len(self.texts))
        if number == len(self.text_list):
            self.text_list.append(text)
            self._text_bytes += _TEXT + len(text)
            if self._text_bytes > MAX_TEXT_BYTES:
                raise RefusedError("events have too many different texts", offset)
        return number

    def plain(self, value: Any, offset: int) -> int:
        """The number of the text of any value."""
        return self.text(_plain(value, offset), offset)

    def settle_singles(self) -> None:
        """Settle rows that came one by one, where there are no others."""
        self.settle_rows(None, {})

    def settle_rows(
        self, rows: Numbers | None, values: Mapping[str, tuple[Numbers, ...]]
    ) -> None:
        """Settle all rows; `values` by key for some of them, or for all (None)."""
        first, count = self.num_settled, self.num_rows - self.num_settled
        if not count:
            return
        if rows is not None:
            rows = rows - first
        for key, column in self.columns.items():
            column.settle(first, count, rows, values.get(key, ()))
        self.num_settled = self.num_rows

    def _add_value(self, column: Column, value: Any, offset: int) -> None:
        row = self.num_rows
        if column.kind in ("int", "uint"):
            if value < 0:
                column.has_negative = True
            column.add(row, value if value < -ABSENT else value - _WRAP)
        elif column.kind == "stack":
            column.add(row, value)
        elif column.kind == "text":
            column.add(row, self.text(value, offset))
        elif column.kind == "pair":
            column.add(row, *value)
        elif column.kind == "value":
            if type(value) is StackNumber:
                value = self._stacks.frames_of(value)
            column.add(row, self.plain(value, offset))
        else:
            column.add(row, value)

    def _reconcile(self, column: Column, kind: str, value: Any, offset: int) -> None:
        """Make the column one that takes a value of another kind as well."""
        if column.kind == "value" or (
            (kind, column.kind) == ("int", "uint") and value >= 0
        ):
            return
        self.settle()
        if (kind, column.kind) == ("uint", "int") and not column.has_negative:
            column.kind = "uint"
        else:
            # Numbers without sign are kept modulo 2**64, where a negative one would
            # look like another.
            self._as_values(column, offset)
        self.kinds_changed()

    def _as_values(self, column: Column, offset: int) -> None:
        """The key's values change their type: keep them all as text from now on."""
        kind, parts = column.kind, column.parts
        gap = column.gap
        column.make("value")
        for chunks in zip(*(part.chunks() for part in parts), strict=True):
            rows = np.stack(chunks)
            distinct, places = np.unique(rows, axis=1, return_inverse=True)
            numbers = np.empty(distinct.shape[1], np.int64)
            for place, values in enumerate(distinct.T.tolist()):
                first = values[0]
                if first == gap or first != first:  # noqa: PLR0124  # NaN
                    numbers[place] = NOTHING
                else:
                    plain = self._plain_of(kind, values, offset)
                    numbers[place] = self.text(plain, offset)
            column.parts[0].append(numbers[places.reshape(-1)])

    def _plain_of(self, kind: str, values: list[Any], offset: int) -> str:
        number = values[0]
        if kind == "text":
            return _plain(self.text_list[number], offset)
        if kind == "stack":
            return _plain(self._stacks.frames_of(number), offset)
        if kind == "pair":
            return _plain(tuple(values), offset)
        if kind == "uint":
            return _plain(number % _WRAP, offset)
        return _plain(bool(number) if kind == "bool" else number, offset)


def kind_of(value: Any) -> str:
    """The kind of column a value goes to."""
    if type(value) is int:
        if ABSENT < value < -ABSENT:
            return "int"
        return "uint" if -ABSENT < value < _WRAP else "value"
    if type(value) is StackNumber:
        return "stack"
    if is_pair(value):
        return "pair"
    kinds = {str: "text", bool: "bool", float: "float"}
    return "value" if value != value else kinds.get(type(value), "value")  # noqa: PLR0124  # NaN


def is_pair(value: Any) -> bool:
    """Whether a value is two integers that a column of pairs holds."""
    return (
        type(value) is tuple
        and len(value) == 2
        and all(type(number) is int and ABSENT < number < -ABSENT for number in value)
    )


def _plain(value: Any, offset: int) -> str:
    if is_container(value):
        Extent(_MAX_VALUES).check(value, offset)
    try:
        return plain_text(value)
    except (RecursionError, ValueError, UnicodeError) as error:
        raise RefusedError(
            f"an event holds what has no text: {error}", offset
        ) from error


def _nobody() -> None: ...
