"""Notes on their way to the file, and those that every digest repeats."""

from __future__ import annotations

from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from memboard.collector.format.records import Note

_REPEATED: Final = {"source": 256, "epoch": 512, "phase": 512, "mark": 512, "span": 256}
_REPEATED_OTHERS: Final = 64
"""Newest notes of a kind that a digest repeats: it must stay small."""

_SPREAD: Final = {"clock": 128}
"""Kinds whose notes concern the time between them: what a digest repeats of many
reaches from the start to the end."""

_KINDS: Final = 64
"""Kinds of notes with a limit of their own; a program that invents more shares one."""


class NoteQueue:
    """Notes in the order they came. `pending` may be repeated; `commit` empties it."""

    def __init__(self) -> None:
        self._pending: list[Note] = []
        self._newest: dict[str, deque[tuple[int, Note]]] = {}
        self._spread: dict[str, _Spread] = {}
        self._count = 0

    def __len__(self) -> int:
        """Notes that are not on disk yet."""
        return len(self._pending)

    def add(self, note: Note) -> None:
        self._pending.append(note)

    def pending(self) -> list[Note]:
        """Notes that are not on disk yet."""
        return list(self._pending)

    def commit(self) -> None:
        """The pending notes are on disk."""
        for note in self._pending:
            self._count += 1
            numbered = self._count, note
            if note.kind in _SPREAD:
                spread = self._spread.setdefault(note.kind, _Spread(_SPREAD[note.kind]))
                spread.add(numbered)
                continue
            has_place = note.kind in self._newest or len(self._newest) < _KINDS
            kind = note.kind if has_place else ""
            limit = _REPEATED.get(kind, _REPEATED_OTHERS)
            self._newest.setdefault(kind, deque(maxlen=limit)).append(numbered)
        self._pending = []

    def repeated(self) -> list[Note]:
        """What a digest repeats, in the order it came."""
        numbered = [pair for notes in self._newest.values() for pair in notes]
        for spread in self._spread.values():
            numbered += spread.notes
        return [note for _, note in sorted(numbered, key=itemgetter(0))]


class _Spread:
    """At most so many notes, evenly spread, and the newest one."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stride = 1
        self._number = -1
        self.notes: list[tuple[int, Note]] = []

    def add(self, numbered: tuple[int, Note]) -> None:
        """Take the newest one; the one before it goes where it is not on the grid."""
        if self._number % self._stride:
            self.notes.pop()
        self._number += 1
        self.notes.append(numbered)
        if len(self.notes) >= self._limit and self._number % self._stride == 0:
            self._stride *= 2
            newest = self.notes[-1:] if self._number % self._stride else []
            self.notes = self.notes[::2] + newest
