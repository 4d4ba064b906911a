"""The orders of keys in which a pickle writes its events: most files have few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.tb_plugin.formats.snapshots.events import Column
    from memboard.tb_plugin.formats.snapshots.pickles.stack import Memo


KINDS: Final = frozenset(
    ("int", "uint", "float", "bool", "text", "pair", "stack", "value")
)
"""Of values that are recognised; events with others are read one by one."""
MAX_SHAPES: Final = 8

HEAD: Final = b"}\x94("
"""An empty dict, into the memo, a mark."""


class Key(NamedTuple):
    """A key of an event."""

    reference: bytes
    """How the pickle refers to it."""
    name: str
    kind: str


class Shape(NamedTuple):
    """The events of one order of keys."""

    keys: tuple[Key, ...]

    @property
    def head(self) -> bytes:
        """What such an event begins with."""
        return HEAD + self.keys[0].reference


class Shapes:
    def __init__(self, memo: Memo, columns: Mapping[str, Column]) -> None:
        self.known: list[Shape] = []
        self._memo = memo
        self._columns = columns
        self._seen: set[tuple[str, ...]] = set()

    def learn(self, names: Iterable[str]) -> bool:
        """Learn the order of an event's keys; whether it is a new one."""
        order = tuple(names)
        if order in self._seen or len(self.known) >= MAX_SHAPES or not order:
            return False
        keys = []
        for key_text in order:
            reference = self._memo.reference_to(key_text)
            kind = self._columns[key_text].kind
            if reference is None or kind not in KINDS:
                return False
            keys.append(Key(reference, key_text, kind))
        self._seen.add(order)
        self.known.append(Shape(tuple(keys)))
        return True

    def forget(self) -> None:
        """The kinds of columns changed: learn anew."""
        self.known.clear()
        self._seen.clear()
