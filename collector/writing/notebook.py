"""Notes on their way to the file, and those that every digest repeats."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collector.format.records import Note

_KEPT: Final = {"source": 256, "epoch": 512, "phase": 512, "mark": 512, "span": 256}
_KEPT_OTHERS: Final = 64
"""How many notes of a kind, the newest, a digest repeats: it must stay small."""

_THINNED: Final = {"clock": 128}
"""Kinds whose notes say something of the time between them: what a digest repeats of
many reaches from the start to the end."""

_KINDS: Final = 64
"""Kinds of notes that are told apart; a program that invents more shares one."""


class _Thinned:
    """At most so many notes, evenly spread, and the newest one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stride = 1
        self._number = -1
        self.kept: list[tuple[int, Note]] = []

    def add(self, numbered: tuple[int, Note]) -> None:
        """Take the newest one; the one before it goes where it is not on the grid."""
        if self._number % self._stride:
            self.kept.pop()
        self._number += 1
        self.kept.append(numbered)
        if len(self.kept) >= self._limit and self._number % self._stride == 0:
            self._stride *= 2
            newest = self.kept[-1:] if self._number % self._stride else []
            self.kept = self.kept[::2] + newest


class Notebook:
    """Notes in the order they came. `take` may be repeated; `commit` forgets."""

    def __init__(self) -> None:
        self._pending: list[Note] = []
        self._kept: dict[str, deque[tuple[int, Note]]] = {}
        self._thinned: dict[str, _Thinned] = {}
        self._count = 0

    def __len__(self) -> int:
        """Notes that are not on disk yet."""
        return len(self._pending)

    def add(self, note: Note) -> None:
        """Take a note."""
        self._pending.append(note)

    def pending(self) -> list[Note]:
        """Notes that are not on disk yet."""
        return list(self._pending)

    def commit(self) -> None:
        """The pending notes are on disk."""
        for note in self._pending:
            known = note.kind in self._kept or len(self._kept) < _KINDS
            kind = note.kind if known else ""
            limit = _KEPT.get(kind, _KEPT_OTHERS)
            self._count += 1
            if kind in _THINNED:
                self._thinned.setdefault(kind, _Thinned(_THINNED[kind])).add(
                    (self._count, note)
                )
                continue
            self._kept.setdefault(kind, deque(maxlen=limit)).append((self._count, note))
        self._pending = []

    def kept(self) -> tuple[Note, ...]:
        """What a digest repeats, in the order it came."""
        numbered = [pair for notes in self._kept.values() for pair in notes]
        for thinned in self._thinned.values():
            numbered += thinned.kept
        return tuple(note for _, note in sorted(numbered, key=lambda pair: pair[0]))
