"""Allocator events as columns, while a pickle is read.

Columns appear when their key does; rows without it hold the kind's gap. Kinds are those
of `collector.format.snapshots`: a key whose values change their type is refused there
too, as `value`, and so it is here.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from collector.format.numeric import ABSENT
from collector.format.snapshots.plain_text import plain_text
from tb_plugin.readers.snapshots.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tb_plugin.readers.snapshots.stacks import Stacks

MAX_KEYS: Final = 64
"""Of an event: torch's have about ten."""

NOTHING: Final = -1
_GAPS: Final = {"int": ABSENT, "uint": ABSENT, "pair": ABSENT, "float": float("nan")}
_CODES: Final = {"int": "q", "uint": "q", "pair": "q", "float": "d", "bool": "b"}
_WRAP: Final = 2**64


class Column:
    """One key's values: numbers as they are, all else as numbers of texts or stacks."""

    __slots__ = ("kind", "optional", "second", "values")

    def __init__(self, kind: str, num_before: int) -> None:
        self.kind = kind
        self.optional = num_before > 0
        self.values: array[Any] = array(_CODES.get(kind, "i"))
        self.second: array[int] = array("q")
        """Of pairs; empty else."""
        self.pad(num_before)

    @property
    def gap(self) -> float:
        """What stands where a row lacks the key."""
        return _GAPS.get(self.kind, NOTHING)

    def pad(self, num_rows: int) -> None:
        """Fill up with gaps to so many rows."""
        missing = num_rows - len(self.values)
        if missing > 0:
            self.optional = True
            self.values.extend([self.gap] * missing)
            if self.kind == "pair":
                self.second.extend([ABSENT] * missing)


class Events:
    """All events of a snapshot, of every device, in the file's order."""

    def __init__(self, stacks: Stacks) -> None:
        self.columns: dict[str, Column] = {}
        self.num_rows = 0
        self.texts: dict[str, int] = {}
        """Every text of the columns, by number."""
        self._stacks = stacks

    def add(self, event: dict[str, Any], at: int) -> None:
        """Append a row."""
        for key, value in event.items():
            column = self.column(key, kind_of(key, value), at)
            column.pad(self.num_rows)
            self._append(column, key, value, at)
        self.num_rows += 1

    def column(self, key: str, kind: str, at: int) -> Column:
        """The column of a key; made where it is new."""
        column = self.columns.get(key)
        if column is None:
            if len(self.columns) >= MAX_KEYS:
                raise RefusedError("events have too many different keys", at)
            column = self.columns[key] = Column(kind, self.num_rows)
        return column

    def pad(self) -> None:
        """Bring all columns to the same length."""
        for column in self.columns.values():
            column.pad(self.num_rows)

    def text(self, text: str) -> int:
        """The number of a text."""
        return self.texts.setdefault(text, len(self.texts))

    def append_int(self, column: Column, number: int) -> None:
        """Append an integer of up to 64 bits, with or without a sign."""
        try:
            column.values.append(number)
        except OverflowError:
            if number < 0 or number >= _WRAP:
                raise
            column.kind = "uint"
            column.values.append(number - _WRAP)

    def _append(self, column: Column, key: str, value: Any, at: int) -> None:
        kind = kind_of(key, value)
        if kind != column.kind and (kind, column.kind) != ("int", "uint"):
            self._as_values(column)
        if column.kind in ("int", "uint"):
            try:
                self.append_int(column, value)
            except OverflowError:
                raise RefusedError("a number has more than 64 bits", at) from None
        elif column.kind == "stack":
            column.values.append(self._stacks.number_of(value, at))
        elif column.kind == "text":
            column.values.append(self.text(value))
        elif column.kind == "pair":
            column.values.append(value[0])
            column.second.append(value[1])
        elif column.kind == "value":
            column.values.append(self.text(plain_text(value)))
        else:
            column.values.append(value)

    def _as_values(self, column: Column) -> None:
        """The key's values change their type: keep them all as text from now on."""
        if column.kind == "value":
            return
        was = column.kind
        texts = list(self.texts)
        gap = column.gap
        held: Iterable[Any] = column.values
        if was == "pair":
            held = zip(column.values, column.second, strict=True)
        column.kind, column.values, column.second = "value", array("i"), array("q")
        for value in held:
            first = value[0] if was == "pair" else value
            if first == gap or first != first:  # noqa: PLR0124  # NaN
                column.values.append(NOTHING)
            else:
                column.values.append(self.text(self._plain(was, value, texts)))

    def _plain(self, kind: str, number: Any, texts: list[str]) -> str:
        if kind == "text":
            return plain_text(texts[number])
        if kind == "stack":
            return plain_text(self._stacks.lists[number])
        if kind == "uint":
            return plain_text(number % _WRAP)
        return plain_text(bool(number) if kind == "bool" else number)


def kind_of(key: str, value: Any) -> str:
    """The kind of column a value goes to."""
    if key == "frames" and type(value) is list:
        return "stack"
    if type(value) is tuple and len(value) == 2 and _are_small(value):
        return "pair"
    kinds = {int: "int", str: "text", bool: "bool", float: "float"}
    return kinds.get(type(value), "value")


def _are_small(pair: tuple[Any, Any]) -> bool:
    return all(type(number) is int and ABSENT < number < -ABSENT for number in pair)
