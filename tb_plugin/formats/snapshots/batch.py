"""All events of a window at once, side by side in numpy.

Where an event begins can be seen, so all of them are taken apart together: the first key
of every one, its value, then the second, and so on. Nothing is believed by that: an event
counts only where every byte is as its shape says, up to the next event's beginning, and
only from an event that the machine came to on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.tb_plugin.formats.snapshots.pickles.shapes import HEAD
from memboard.tb_plugin.formats.snapshots.stacks import NO_STACK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.formats.snapshots.pickles.shapes import Key, Shape
    from memboard.tb_plugin.formats.snapshots.stacks import RawStacks

    Numbers = npt.NDArray[Any]

NO_ENTRY: Final = -1
ABSENT: Final = -(1 << 63)

REFERRED: Final = frozenset(("text", "pair", "stack", "value"))
"""Kinds of values that an event may refer to, rather than spell out."""

PADDING: Final = 32
"""Bytes at a window's end in which no event is looked for."""

_SET_ITEMS: Final = ord("u")
_NEXT_ITEMS: Final = np.frombuffer(b"e(", np.uint8)
_BYTE_INT, _SHORT_INT, _INT, _LONG = ord("K"), ord("M"), ord("J"), 0x8A
_BYTE_GET, _LONG_GET, _INLINE_TEXT = ord("h"), ord("j"), 0x8C
_MEMOIZE: Final = 0x94
_NEW_LIST: Final = _MEMOIZE << 8 | ord("]")
_TUPLE2: Final = 0x86
_TRUE, _FALSE = 0x88, 0x89
_NONE: Final = ord("N")
_FLOAT: Final = ord("G")
_MAX_ALIKE: Final = 16
"""Different texts that are looked for in all events at once."""
_MAX_WALK: Final = 1000
"""Frames of a list that is followed by other keys."""

_INT_BYTES: Final = np.zeros(256, np.int64)
_INT_BYTES[[_BYTE_INT, _SHORT_INT, _INT]] = 1, 2, 4
_GET_BYTES: Final = np.zeros(256, np.int64)
_GET_BYTES[[_BYTE_GET, _LONG_GET]] = 1, 4
_MASKS: Final = np.array([(1 << (8 * n)) - 1 for n in range(8)] + [-1], np.int64)

PLAIN: Final = (None, True, False)
"""Values of an opcode each, by the number that stands for them."""


class Field:
    """One key's values, by event."""

    def __init__(self, kind: str, num_events: int) -> None:
        self.kind = kind
        self.numbers = np.zeros(num_events, np.int64)
        """Integers; of texts and stacks: the number of the spelling; of floats their
        bits; of values the place in `PLAIN`."""
        self.second = np.zeros(num_events if kind == "pair" else 0, np.int64)
        num_entries = num_events if kind in REFERRED else 0
        self.entries = np.full(num_entries, NO_ENTRY, np.int64)
        """Memo entries of what was written before."""
        self.own = np.zeros(num_events, np.int64)
        """Which entry of the event this value is; 0: none, that is the dict."""


class Batch:
    """The events that begin within some bytes."""

    def __init__(
        self,
        data: bytes,
        offset: int,
        shapes: Sequence[Shape],
        text: Callable[[bytes], int],
        stacks: RawStacks,
    ) -> None:
        """`text`: the number of a text's UTF-8, -1 where it is none."""
        self.at = offset
        self.end = len(data)
        self.starts = _starts(data, offset, shapes)
        number = len(self.starts)
        self.ends = np.zeros(number, np.int64)
        self.shape = np.full(number, -1, np.int64)
        """Which of the shapes each has; -1: none."""
        self.num_entries = np.ones(number, np.int64)
        """That each adds to the memo."""
        self.fields: dict[str, Field] = {}
        self.shapes = tuple(shapes)
        following = np.append(self.starts[1:], 0)
        for place, shape in enumerate(shapes):
            rows = np.flatnonzero(self.shape < 0)
            if len(rows):
                reading = _Reading(data, self.starts[rows], following[rows])
                reading.text, reading.stacks, reading.at = text, stacks, offset
                self._read(place, shape, rows, reading)
        self._link(data, following)

    def chain(self, offset: int) -> tuple[int, int]:
        """The events from `offset` on that follow each other: from, to."""
        first = int(np.searchsorted(self.starts, offset))
        if first == len(self.starts) or self.starts[first] != offset:
            return 0, 0
        if self.shape[first] < 0:
            return 0, 0
        return first, int(self._breaks[np.searchsorted(self._breaks, first)]) + 1

    def _read(self, place: int, shape: Shape, rows: Numbers, reading: _Reading) -> None:
        """Those of the events that have this shape."""
        pairs = [(key, reading.value(key, shape)) for key in shape.keys]
        reading.expect(_SET_ITEMS)
        # What was held back at the data's end may be read wrongly: the machine will.
        good = np.flatnonzero(reading.fits & (reading.at_byte < reading.last))
        there = rows[good]
        self.shape[there] = place
        self.ends[there] = reading.at_byte[good]
        self.num_entries[there] = reading.num_entries[good]
        for key, value in pairs:
            field = self.fields.get(key.name)
            if field is None:
                field = self.fields[key.name] = Field(key.kind, len(self.starts))
            for attribute in ("numbers", "second", "entries", "own"):
                column, values = getattr(field, attribute), getattr(value, attribute)
                if len(column) and len(values):
                    column[there] = values[good]

    def _link(self, data: bytes, following: Numbers) -> None:
        """Find where one event does not lead to the next."""
        bytes_ = np.frombuffer(data, np.uint8)
        last = len(data) - 1
        closes = bytes_[np.minimum(self.ends, last)] == _NEXT_ITEMS[0]
        closes &= bytes_[np.minimum(self.ends + 1, last)] == _NEXT_ITEMS[1]
        leads = (self.shape >= 0) & (self.ends + 2 * closes == following)
        leads[:-1] &= self.shape[1:] >= 0
        leads[-1:] = False
        self._breaks = np.flatnonzero(~leads)
        self.closes = closes & leads
        """Where a batch of the list's items ends and the next one begins."""


def _starts(data: bytes, offset: int, shapes: Sequence[Shape]) -> Numbers:
    """Where events of any of the shapes begin."""
    raw = np.frombuffer(data, np.uint8, offset=offset)
    last = len(raw) - PADDING
    if last <= 0:
        return np.empty(0, np.int64)
    starts = np.flatnonzero(raw[:last] == HEAD[0])
    for place in range(1, len(HEAD)):
        starts = starts[raw[starts + place] == HEAD[place]]
    if shapes:
        of_any = np.zeros(len(starts), np.bool_)
        for head in {shape.head for shape in shapes}:
            of_this = np.ones(len(starts), np.bool_)
            for place in range(len(HEAD), len(head)):
                of_this &= raw[starts + place] == head[place]
            of_any |= of_this
        starts = starts[of_any]
    return starts + offset


class _Reading:
    """Many events, all at the same key. Those that do not fit are read on and not used."""

    text: Callable[[bytes], int]
    stacks: RawStacks
    at: int

    def __init__(self, data: bytes, starts: Numbers, following: Numbers) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, np.uint8)
        # Eight bytes from any place on.
        self._words = np.ndarray((len(data) - 7,), "<i8", data, strides=(1,))
        self.last = len(data) - 8  # Where `at_byte` stops
        self._following = following
        self.at_byte = starts + len(HEAD)
        self.fits = np.ones(len(starts), np.bool_)
        self.num_entries = np.ones(len(starts), np.int64)

    def value(self, key: Key, shape: Shape) -> Field:
        """The values of a key."""
        for byte in key.reference:
            self.expect(byte)
        field = Field(key.kind, len(self.at_byte))
        if key.kind in ("int", "uint"):
            field.numbers = self._integers()
            self.fits &= field.numbers != ABSENT
            if key.kind == "uint":
                self.fits &= field.numbers >= 0
        elif key.kind == "bool":
            self._bools(field)
        elif key.kind == "text":
            self._texts(field)
        elif key.kind == "float":
            self._floats(field)
        elif key.kind == "pair":
            self._pairs(field)
        elif key.kind == "value":
            self._plain(field)
        else:
            self._stacks(field, is_last=key is shape.keys[-1])
        return field

    def expect(self, byte: int) -> None:
        """The next byte must be this one."""
        self.fits &= self._bytes[self.at_byte] == byte
        self.at_byte = np.minimum(self.at_byte + 1, self.last)

    def _advance(self, num_bytes: Numbers | int) -> None:
        self.at_byte = np.minimum(self.at_byte + num_bytes, self.last)

    def _integers(self) -> Numbers:
        opcodes = self._bytes[self.at_byte]
        is_long = opcodes == _LONG
        if is_long.all():
            lengths = self._bytes[self.at_byte + 1].astype(np.int64)
            self._advance(2)
        else:
            given_lengths = self._bytes[self.at_byte + 1]
            lengths = np.where(is_long, given_lengths, _INT_BYTES[opcodes])
            self._advance(np.where(is_long, 2, 1))
        fits = (lengths >= 1) & (lengths <= 8)
        self.fits &= fits
        lengths[~fits] = 1
        packed = self._words[self.at_byte]
        self._advance(lengths)
        shifts = 64 - 8 * lengths
        signed = (packed << shifts) >> shifts
        plain = (opcodes == _BYTE_INT) | (opcodes == _SHORT_INT)
        numbers: Numbers = signed
        if plain.any():
            numbers = np.where(plain, packed & _MASKS[lengths], signed)
        return numbers

    def _bools(self, field: Field) -> None:
        opcodes = self._bytes[self.at_byte]
        field.numbers = (opcodes == _TRUE).astype(np.int64)
        self.fits &= (opcodes == _TRUE) | (opcodes == _FALSE)
        self._advance(1)

    def _floats(self, field: Field) -> None:
        self.expect(_FLOAT)
        field.numbers = self._words[self.at_byte].byteswap()
        # What is no number is no float to the columns either.
        self.fits &= ~np.isnan(field.numbers.view(np.float64))
        self._advance(8)

    def _plain(self, field: Field) -> None:
        """What a byte says, or what was written before."""
        widths = self._references(field)
        opcodes = self._bytes[self.at_byte]
        has_width = widths > 0
        for place, opcode in enumerate((_NONE, _TRUE, _FALSE)):
            here = opcodes == opcode
            field.numbers[here] = place
            has_width |= here
        self.fits &= has_width
        self._advance(1 + widths)

    def _pairs(self, field: Field) -> None:
        widths = self._references(field)
        refers = widths > 0
        start, fits = self.at_byte, self.fits.copy()
        if not refers.all():
            field.numbers, field.second = self._integers(), self._integers()
            self.fits &= (field.numbers != ABSENT) & (field.second != ABSENT)
            self.expect(_TUPLE2)
            self.expect(_MEMOIZE)
            field.own = np.where(refers, 0, self.num_entries)
            self.num_entries += ~refers
        if refers.any():
            self.fits = np.where(refers, fits, self.fits)
            self.at_byte = np.where(refers, start, self.at_byte)
            self._advance(np.where(refers, 1 + widths, 0))

    def _references(self, field: Field) -> Numbers:
        """Note what events refer to; how long the references are, 0 where none is."""
        packed = self._words[self.at_byte]
        widths: Numbers = _GET_BYTES[packed & 0xFF]
        refers = widths > 0
        field.entries = np.where(refers, (packed >> 8) & _MASKS[widths], NO_ENTRY)
        return widths

    def _texts(self, field: Field) -> None:
        widths = self._references(field)
        packed = self._words[self.at_byte]
        is_inline = (packed & 0xFF) == _INLINE_TEXT
        self.fits &= is_inline | (widths > 0)
        if is_inline.any():
            field.numbers = self._inline(packed, is_inline)
            widths = np.where(is_inline, 2 + ((packed >> 8) & 0xFF), widths)
            field.own = np.where(is_inline, self.num_entries, 0)
            self.num_entries += is_inline
        self._advance(1 + widths)

    def _inline(self, packed: Numbers, is_inline: npt.NDArray[np.bool_]) -> Numbers:
        """The numbers of texts that stand in the events; most are alike."""
        numbers = np.full(len(packed), -1, np.int64)
        lengths = (packed >> 8) & 0xFF
        ends = np.minimum(self.at_byte + 2 + lengths, self.last)
        self.fits &= ~is_inline | (self._bytes[ends] == _MEMOIZE)
        left = np.flatnonzero(is_inline & self.fits)
        # Of six bytes and less, the word is all there is to tell them apart.
        alike = packed & _MASKS[np.minimum(lengths + 2, 8)]
        some, rest = left[lengths[left] <= 6], left[lengths[left] > 6]
        for _ in range(_MAX_ALIKE):
            if not len(some):
                break
            same = alike[some] == alike[some[0]]
            numbers[some[same]] = self._text(int(some[0]), int(ends[some[0]]))
            some = some[~same]
        rest = np.concatenate((rest, some))
        data, text, number_by_text = self._data, self.text, dict[bytes, int]()
        for row, start, end in zip(
            rest.tolist(),
            (self.at_byte[rest] + 2).tolist(),
            ends[rest].tolist(),
            strict=True,
        ):
            raw = data[start:end]
            number = number_by_text.get(raw)
            if number is None:
                number = number_by_text[raw] = text(raw)
            numbers[row] = number
        self.fits &= ~is_inline | (numbers >= 0)
        return numbers

    def _text(self, row: int, end: int) -> int:
        return self.text(self._data[int(self.at_byte[row]) + 2 : end])

    def _stacks(self, field: Field, *, is_last: bool) -> None:
        widths = self._references(field)
        is_list = (self._words[self.at_byte] & 0xFFFF) == _NEW_LIST
        self.fits &= is_list | (widths > 0)
        rows = np.flatnonzero(is_list & self.fits)
        starts = self.at_byte[rows]
        ends = self._event_ends(rows) if is_last else self._walked(starts)
        numbers = np.array(self._spellings(starts, ends), np.int64)
        self.fits[rows] &= numbers != NO_STACK
        field.numbers[rows] = numbers
        field.own[rows] = self.num_entries[rows]
        self.num_entries[rows] += 1
        self._advance(1 + widths)
        self.at_byte[rows] = np.minimum(ends, self.last)

    def _spellings(self, starts: Numbers, ends: Numbers) -> list[int]:
        data, number_of_raw = self._data, self.stacks.numbers.get
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        numbers = [number_of_raw(data[start:end]) for start, end in places]
        if None in numbers:
            places = zip(starts.tolist(), ends.tolist(), strict=True)
            numbers = [
                self._spelling(data[start:end]) if number is None else number
                for number, (start, end) in zip(numbers, places, strict=True)
            ]
        return numbers  # type: ignore[return-value]

    def _spelling(self, raw: bytes) -> int:
        number = self.stacks.numbers.get(raw)
        return self.stacks.number(raw, self.at) if number is None else number

    def _event_ends(self, rows: Numbers) -> Numbers:
        """Where the lists end, by where the next events begin."""
        following = self._following[rows]
        # Of the last event nobody knows; an end before its start is no list.
        is_closed = self._bytes[np.maximum(following - 1, 0)] == _NEXT_ITEMS[1]
        ends: Numbers = np.maximum(following - 1 - 2 * is_closed, 0)
        return ends

    def _walked(self, starts: Numbers) -> Numbers:
        """Where the lists end, reference by reference."""
        ends: Numbers = np.minimum(starts + 2, self.last)
        opens = self._bytes[ends] == ord("(")
        ends = np.minimum(ends + opens, self.last)
        rows = np.arange(len(ends))
        for _ in range(_MAX_WALK):
            widths = _GET_BYTES[self._bytes[ends[rows]]]
            rows = rows[widths > 0]
            if not len(rows):
                break
            ends[rows] = np.minimum(ends[rows] + 1 + widths[widths > 0], self.last)
        closing = self._bytes[ends]
        ends += (closing == ord("e")) & opens
        ends += (closing == ord("a")) & ~opens
        return ends
