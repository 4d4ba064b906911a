"""Whole events recognised at once.

A pickler writes events of the same keys alike: the same references for the keys, then
integers, references to texts, and a list of references to frames. From the first such
event that the machine carried out opcode by opcode, one regular expression is made that
matches the next ones as a whole; whatever differs in the least goes the slow way.
"""

from __future__ import annotations

import re
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tb_plugin.readers.snapshots.errors import RefusedError
from tb_plugin.readers.snapshots.events import NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tb_plugin.readers.snapshots.events import Column, Events
    from tb_plugin.readers.snapshots.memo import Memo
    from tb_plugin.readers.snapshots.stacks import Stacks

    Buffer = Any  # what `re` matches: a memory map
    Numbers = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

MAX_PATTERNS: Final = 8
"""Orders of keys that get an expression of their own."""

MAX_PAIRS: Final = 4096
"""Distinct pairs that are known by their bytes: pools are few."""

_INTEGER: Final = rb"K.|M..|J.{4}|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}|\x04.{4})"
_TEXT: Final = rb"h.|j.{4}|\x8c\x00\x94|\x8c\x03N/A\x94"
_FRAMES: Final = rb"h.|j.{4}|\]\x94(?:\((?:h.|j.{4})+e|(?:h.|j.{4})a)?"
_PAIR: Final = (
    rb"K.K.\x86\x94|(?:M..|J.{4})(?:K.|M..|J.{4})\x86\x94|K.(?:M..|J.{4})\x86\x94"
)
_VALUES: Final = {
    "int": _INTEGER,
    "uint": _INTEGER,
    "text": _TEXT,
    "stack": _FRAMES,
    "pair": _PAIR,
}

_WIDTHS: Final = {ord("K"): 2, ord("M"): 3, ord("J"): 5}
_RUN: Final = 4096
"""Events that are held as matches at once."""

_NONE: Final = np.empty(0, np.int64)
_first = itemgetter(0)

_LONGEST_PLAIN: Final = 5
"""Bytes of BININT, the first with a sign."""
_SIGN: Final = 0x80
_INLINE_TEXT: Final = 0x8C
_LIST: Final = ord("]")


class Key(NamedTuple):
    """A key of an event: how the pickle refers to it, and its column."""

    reference: bytes
    name: str
    column: Column


class Pattern:
    """The events of one order of keys."""

    def __init__(self, keys: Sequence[Key]) -> None:
        """Raises KeyError where a column's kind has no expression."""
        parts = [rb"\}\x94\("]
        for key in keys:
            value = _VALUES[key.column.kind]
            parts.append(re.escape(key.reference) + rb"(" + value + rb")")
        self.keys = tuple(keys)
        self.expression = re.compile(b"".join(parts) + b"u", re.DOTALL)


class EventReader:
    """Reads runs of events that a pattern knows."""

    def __init__(self, memo: Memo, stacks: Stacks, events: Events) -> None:
        self._memo = memo
        self._stacks = stacks
        self._events = events
        self._patterns: list[Pattern] = []
        self._shapes: set[tuple[bytes, ...]] = set()
        self._texts: dict[bytes, int] = {}
        self._pairs: dict[bytes, tuple[int, int]] = {}

    def learn(self, keys: Sequence[Key]) -> None:
        """Make a pattern of an event's keys, if there is none yet."""
        shape = tuple(key.reference for key in keys)
        if shape in self._shapes or len(self._patterns) >= MAX_PATTERNS:
            return
        self._shapes.add(shape)
        try:
            self._patterns.append(Pattern(keys))
        except KeyError:
            return  # such events go the slow way

    def read(self, data: Buffer, at: int, most: int) -> tuple[int, int]:
        """Read up to `most` events at an offset: where they end, and how many."""
        num_events = 0
        while num_events < most:
            for pattern in self._patterns:
                end, count = self._run(pattern, data, at, most - num_events)
                if count:
                    break
            else:
                break
            at, num_events = end, num_events + count
        return at, num_events

    def _run(
        self, pattern: Pattern, data: Buffer, at: int, most: int
    ) -> tuple[int, int]:
        if any(key.column.kind not in _VALUES for key in pattern.keys):
            return at, 0
        next_event = pattern.expression.scanner(data, at).match  # type: ignore[attr-defined]
        found = list(islice(iter(next_event, None), min(most, _RUN)))
        if not found:
            return at, 0
        self._events.pad()
        columns = list(zip(*[match.groups() for match in found], strict=True))
        self._take(pattern, columns, len(found), at)
        self._events.num_rows += len(found)
        return found[-1].end(), len(found)

    def _take(
        self,
        pattern: Pattern,
        columns: Sequence[Sequence[bytes]],
        num_events: int,
        at: int,
    ) -> None:
        """Append a run's raw values to their columns."""
        num_entries = np.ones(num_events, np.int64)  # the dict's own
        stacks: tuple[Column, Sequence[bytes], Numbers] | None = None
        for key, raws in zip(pattern.keys, columns, strict=True):
            column = key.column
            if column.kind == "text":
                self._append_texts(column, raws, at)
                num_entries += _are(raws, _INLINE_TEXT)
            elif column.kind == "stack":
                stacks = column, raws, num_entries.copy()
                num_entries += _are(raws, _LIST)
            elif column.kind == "pair":
                self._append_pairs(column, raws)
                num_entries += 1
            else:
                self._append_integers(column, raws)
        if stacks is None:
            self._memo.add_run(int(num_entries.sum()), _NONE, _NONE, at)
        else:
            self._append_stacks(*stacks, num_entries, at)

    def _append_stacks(
        self,
        column: Column,
        raws: Sequence[bytes],
        entries_before: Numbers,
        num_entries: Numbers,
        at: int,
    ) -> None:
        """A list is entered into the memo first: the next event may refer to it."""
        number_of = self._stacks.number_of_raw
        are_lists = _are(raws, _LIST)
        places = np.flatnonzero(are_lists)
        numbers = np.empty(len(raws), np.int64)
        numbers[places] = [number_of(raws[place], at) for place in places.tolist()]
        starts = np.cumsum(num_entries) - num_entries
        self._memo.add_run(
            int(num_entries.sum()),
            (starts + entries_before)[places],
            numbers[places],
            at,
        )
        others = np.flatnonzero(~are_lists)
        if len(others):
            raws_there = [raws[place] for place in others.tolist()]
            numbers[others] = self._referred(raws_there, at)
        column.values.frombytes(numbers.astype(np.int32).tobytes())

    def _append_texts(self, column: Column, raws: Sequence[bytes], at: int) -> None:
        known = self._texts
        for raw in set(raws):
            if raw not in known:
                known[raw] = self._events.text(self._text(raw, at))
        column.values.extend(map(known.__getitem__, raws))

    def _text(self, raw: bytes, at: int) -> str:
        if raw[0] == _INLINE_TEXT:
            return raw[2:-1].decode()
        text = self._memo.get(_reference(raw), at)
        if type(text) is not str:
            raise RefusedError("an event's text is something else", at)
        return text

    def _append_integers(self, column: Column, raws: Sequence[bytes]) -> None:
        column.values.frombytes(_integers(raws).tobytes())

    def _append_pairs(self, column: Column, raws: Sequence[bytes]) -> None:
        for raw in raws:
            pair = self._pairs.get(raw)
            if pair is None:
                width = _WIDTHS[raw[0]]
                pair = _integer(raw[:width]), _integer(raw[width:-2])
                if len(self._pairs) < MAX_PAIRS:
                    self._pairs[raw] = pair
            column.values.append(pair[0])
            column.second.append(pair[1])

    def _referred(self, raws: Sequence[bytes], at: int) -> Numbers:
        """Stacks of lists of frames that were written before."""
        entries = _integers(raws, head=1)
        stacks = self._memo.stacks(entries)
        for place in np.flatnonzero(stacks == NOTHING).tolist():
            frames = self._memo.get(int(entries[place]), at)
            stacks[place] = self._stacks.number_of(frames, at)
        return stacks


def _are(raws: Sequence[bytes], opcode: int) -> Flags:
    """Which of the raw values begin with an opcode."""
    firsts = bytes(map(_first, raws))
    flags: Flags = np.frombuffer(firsts, np.uint8) == opcode
    return flags


def _reference(raw: bytes) -> int:
    return int.from_bytes(raw[1:], "little")


def _integer(raw: bytes) -> int:
    return int(_integers([raw])[0])


def _integers(raws: Sequence[bytes], head: int = 0) -> Numbers:
    """Integers of raw values: opcode, its `head` of bytes, then the number's own.

    Every opcode has its own length, so no opcode need be looked at: 2, 3 and 5 bytes
    are BININT1, BININT2 and BININT, longer ones LONG1, which has its length in front.
    References (`head` 1) have no sign.
    """
    lengths = np.fromiter(map(len, raws), np.int64, len(raws))
    data = np.frombuffer(b"".join(raws), np.uint8)
    starts = np.cumsum(lengths) - lengths
    found = np.empty(len(raws), np.int64)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        before = head or (1 if length <= _LONGEST_PLAIN else 2)
        digits = data[starts[rows, None] + np.arange(before, length)]
        wide = np.zeros((len(rows), 8), np.uint8)
        wide[:, : length - before] = digits
        if not head and length >= _LONGEST_PLAIN:
            wide[digits[:, -1] >= _SIGN, length - before :] = 0xFF
        found[rows] = wide.view("<i8")[:, 0]
    return found
