"""Tables that grow while a trace is read, and what is numbered on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tb_plugin.formats.traces.details import clean

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.formats.traces.details import Columns

    Ints: TypeAlias = npt.NDArray[Any]


class Growing:
    """A table whose rows come some at a time."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Ints]] = {}
        self._num = 0

    def __len__(self) -> int:
        return self._num

    def add(self, columns: Columns) -> None:
        """More rows; the same columns each time."""
        num = 0
        for name, column in columns.items():
            self._parts.setdefault(name, []).append(column)
            num = len(column)
        self._num += num

    def take(self, name: str, kind: Any = np.int64) -> Ints:
        """A whole column, which the table has no longer."""
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.empty(0, kind)

    def peek(self, name: str) -> Ints:
        """A whole column, which the table keeps."""
        column = self.take(name)
        self._parts[name] = [column]
        return column

    def names(self) -> list[str]:
        """Of the columns."""
        return list(self._parts)


class Tracks(dict[tuple[Any, Any], int]):
    """Threads by the ids of process and thread, numbered as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[tuple[str, str]] = []

    def __missing__(self, key: tuple[Any, Any]) -> int:
        pid, tid = (clean(id_text(one)) for one in key)
        number = self.get((pid, tid))
        if number is None:
            number = self[pid, tid] = len(self.ids)
            self.ids.append((pid, tid))
        self[key] = number
        return number


class Problems:
    """What was wrong, how often, and where first."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.first: dict[str, str] = {}

    def note(self, what: str, count: int, where: str = "") -> None:
        """So many of one kind."""
        if count:
            self.counts[what] = self.counts.get(what, 0) + count
            self.first.setdefault(what, where)


def text_of(value: Any) -> str:
    """A name as text; empty where there is none."""
    return "" if value is None else str(value)


def id_text(value: Any) -> str:
    """An id as text: 7, 7.0 and "7" are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return text_of(value)
