"""The distinct stacks of a snapshot, by number, however the pickle spells them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

Frame = dict[str, Any]

MAX_FRAMES: Final = 10_000
"""Of one stack: Python gives up at a thousand."""
MAX_ALL_FRAMES: Final = 8_000_000
"""Of all distinct stacks together, each of which takes 16 bytes."""

NO_STACK: Final = -1
"""Index of what is no list of references to frames."""

_MAX_RAW: Final = 5 * MAX_FRAMES
_BINGET: Final = ord("h")
_LONG_BINGET: Final = ord("j")
_MARK: Final = ord("(")


class RawStack(NamedTuple):
    """A list of references to frames as the pickle spells it."""

    entries: array[int]
    """Of the memo."""
    last: int
    """The largest of them; -1 where there are none."""


class Stacks:
    """Frames are shared objects of the memo: a stack is told by their identity."""

    def __init__(self) -> None:
        self.lists: list[list[Frame]] = []
        """One list of frames per stack, by number."""
        self._by_list: dict[int, int] = {}
        self._by_frames: dict[bytes, int] = {}
        self._num_frames = 0

    def number_of(self, frames: Any, at: int) -> int:
        """The number of a list of frames."""
        number = self._by_list.get(id(frames))
        if number is not None:
            return number
        if type(frames) is not list or not all(type(f) is dict for f in frames):
            raise RefusedError("an event's frames are no list of frames", at)
        key = array("Q", map(id, frames)).tobytes()
        number = self._by_frames.get(key)
        if number is None:
            number = self._add(key, frames, at)
        # Held by `lists`: its id stays its own.
        if frames is self.lists[number]:
            self._by_list[id(frames)] = number
        return number

    def _add(self, key: bytes, frames: list[Frame], at: int) -> int:
        self._num_frames += len(frames)
        if len(frames) > MAX_FRAMES or self._num_frames > MAX_ALL_FRAMES:
            raise RefusedError("more frames than the stacks of a program have", at)
        number = self._by_frames[key] = len(self.lists)
        self.lists.append(frames)
        return number


def raw_stack(raw: bytes) -> RawStack | None:
    """What `] MEMOIZE ( GET... APPENDS` refers to, or its form for one frame, or none.

    None: it is something else.
    """
    entries = array("q")
    place, end, closing = 2, len(raw), b""
    if raw[place : place + 1]:
        several = raw[place] == _MARK
        place += several
        closing = b"e" if several else b"a"
        end -= 1
    while place < end:
        opcode = raw[place]
        if opcode == _BINGET:
            width = 1
        elif opcode == _LONG_BINGET:
            width = 4
        else:
            return None
        digits = raw[place + 1 : place + 1 + width]
        entries.append(int.from_bytes(digits, "little"))
        place += 1 + width
    if place != end or raw[end:] != closing or (closing == b"a") > (len(entries) == 1):
        return None
    return RawStack(entries, max(entries, default=-1))


class RawStacks:
    """Raw lists of frames by number, and the stacks that they are once they are looked up."""

    def __init__(self, stacks: Stacks, get: Callable[[int, int], Any]) -> None:
        """`get`: the object of a memo entry, for one that is at some offset."""
        self.numbers: dict[bytes, int] = {}
        """By spelling."""
        self._stacks = stacks
        self._get = get
        self._raws: list[RawStack] = []
        self._num_entries = 0

    def number(self, raw: bytes, at: int) -> int:
        """The number of a spelling that was not met before."""
        found = raw_stack(raw) if len(raw) <= _MAX_RAW else None
        if found is None:
            return NO_STACK
        number = self.numbers[raw] = len(self._raws)
        self._raws.append(found)
        self._num_entries += len(found.entries)
        if self._num_entries > MAX_ALL_FRAMES:
            raise RefusedError("more frames than the stacks of a program have", at)
        return number

    def __len__(self) -> int:
        return len(self._raws)

    def last_entry(self, number: int) -> int:
        """The largest entry that the spelling refers to."""
        return self._raws[number].last

    def stack(self, number: int, at: int) -> int:
        """The stack that the spelling stands for."""
        frames = [self._get(entry, at) for entry in self._raws[number].entries]
        return self._stacks.number_of(frames, at)
