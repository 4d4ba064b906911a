"""The distinct stacks of a snapshot, by number, however the pickle spells them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.tb_plugin.formats.snapshots.frames import Frames, first_seen
from memboard.tb_plugin.formats.snapshots.pickles.stack import NOTHING, FrameNumber
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from memboard.tb_plugin.formats.snapshots.frames import Frame
    from memboard.tb_plugin.formats.snapshots.pickles.stack import Memo

    Numbers = npt.NDArray[Any]

MAX_FRAMES: Final = 10_000
"""Of one stack: Python gives up at a thousand."""
MAX_ALL_FRAMES: Final = 1 << 26
"""Of all distinct stacks together, each of which takes about 16 bytes."""

NO_STACK: Final = -1
"""Index of what is no list of references to frames."""

_MAX_RAW: Final = 5 * MAX_FRAMES
_BINGET: Final = ord("h")
_LONG_BINGET: Final = ord("j")
_MARK: Final = ord("(")


class Stacks:
    """Numbers of frames, one stack after the other."""

    def __init__(self) -> None:
        self.frames = Frames()
        self._frame_numbers = array("i")
        self._ends = array("q", [0])
        """Where each stack ends, after a 0."""
        self._by_frames: dict[bytes, int] = {}
        self._lists: dict[int, list[Frame]] = {}
        """Stacks that were needed as lists, by number."""

    def __len__(self) -> int:
        return len(self._ends) - 1

    def number_of(self, frames: Any, offset: int) -> int:
        """The number of a list of frames: dicts, or their numbers."""
        if type(frames) is not list:
            raise RefusedError("an event's frames are no list of frames", offset)
        numbers = array("i")
        number_of = self.frames.number_of
        for frame in frames:
            if type(frame) is FrameNumber:
                numbers.append(frame)
            elif type(frame) is dict:
                numbers.append(number_of(frame))
            else:
                raise RefusedError("an event's frames are no list of frames", offset)
        return self.number(numbers.tobytes(), offset)

    def number(self, key: bytes, offset: int) -> int:
        """The number of a stack of frames, by their numbers of four bytes each."""
        number = self._by_frames.get(key)
        if number is None:
            if (
                len(key) > 4 * MAX_FRAMES
                or self._ends[-1] + len(key) // 4 > MAX_ALL_FRAMES
            ):
                raise RefusedError(
                    "more frames than the stacks of a program have", offset
                )
            number = self._by_frames[key] = len(self)
            self._frame_numbers.frombytes(key)
            self._ends.append(len(self._frame_numbers))
        return number

    def frames_of(self, number: int) -> list[Frame]:
        """The frames of a stack, the same list every time."""
        frames = self._lists.get(number)
        if frames is None:
            start, end = self._ends[number : number + 2]
            frames = self._lists[number] = [
                self.frames.frame(frame) for frame in self._frame_numbers[start:end]
            ]
        return frames

    def unify(self) -> Numbers | None:
        """Give equal frames, and stacks that are equal by that, one number.

        Returns the new number of each stack, or None where all keep theirs.
        """
        if self.frames.is_distinct:
            return None
        self._by_frames, self._lists = {}, {}
        old = self.frames.unify()[np.frombuffer(self._frame_numbers, np.int32)]
        ends, self._ends = self._ends, array("q", [0])
        self._frame_numbers = array("i")
        numbers = np.empty(len(ends) - 1, np.int64)
        for place in range(len(numbers)):
            key = old[ends[place] : ends[place + 1]].tobytes()
            numbers[place] = self.number(key, 0)
        return numbers

    def columns(self) -> tuple[Numbers, Numbers, Numbers]:
        """How many frames each stack has; their places; the frames at these places.

        Places are given one stack after the other, frames in the order of first sight.
        """
        frame_numbers = np.frombuffer(self._frame_numbers, np.int32)
        order, places = first_seen(frame_numbers, len(self.frames))
        return np.diff(np.frombuffer(self._ends, np.int64)), places, order


def raw_stack(raw: bytes) -> array[int] | None:
    """Memo entries that `] MEMOIZE ( GET... APPENDS`, or its form for one frame, lists.

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
    return entries


class RawStacks:
    """Raw lists of frames by number, and the stacks that they are once they are looked up."""

    def __init__(
        self, stacks: Stacks, memo: Memo, get: Callable[[int, int], Any]
    ) -> None:
        """`get`: the object of a memo entry, for one that is at some offset."""
        self.numbers: dict[bytes, int] = {}
        self._stacks = stacks
        self._memo = memo
        self._get = get
        self._entries: dict[int, array[int]] = {}
        """Of the memo, by number, of those that were not looked up yet."""
        self._last_entry = array("q")
        """By number: the largest entry; -1 where there are none."""
        self._stack = array("q")
        """By number; `NO_STACK`: not looked up yet."""
        self._num_entries = 0

    def number(self, raw: bytes, offset: int) -> int:
        """The number of a spelling that was not met before."""
        entries = raw_stack(raw) if len(raw) <= _MAX_RAW else None
        if entries is None:
            return NO_STACK
        number = self.numbers[raw] = len(self._stack)
        self._entries[number] = entries
        self._last_entry.append(max(entries, default=-1))
        self._stack.append(NO_STACK)
        self._num_entries += len(entries)
        if self._num_entries > MAX_ALL_FRAMES:
            raise RefusedError("more frames than the stacks of a program have", offset)
        return number

    def last_entries(self, numbers: Numbers) -> Numbers:
        """The largest entry that each spelling refers to."""
        return np.frombuffer(self._last_entry, np.int64)[numbers]

    def stacks(self, numbers: Numbers, offset: int) -> Numbers:
        """The stacks that some spellings stand for."""
        stacks = np.frombuffer(self._stack, np.int64)
        missing = np.unique(numbers[stacks[numbers] == NO_STACK])
        if len(missing):
            del stacks
            self._look_up(missing.tolist(), offset)
            stacks = np.frombuffer(self._stack, np.int64)
        return stacks[numbers]

    def _look_up(self, numbers: list[int], offset: int) -> None:
        """All at once: a dict's place after the other would take most of the time."""
        spelled = [self._entries.pop(number) for number in numbers]
        ends = np.cumsum([len(entries) for entries in spelled]).tolist()
        entries = np.frombuffer(b"".join(spelled), np.int64)
        frames = self._memo.frames(entries)
        for place in np.flatnonzero(frames == NOTHING).tolist():
            frames[place] = self._frame(self._get(int(entries[place]), offset), offset)
        start = 0
        for number, end in zip(numbers, ends, strict=True):
            self._stack[number] = self._stacks.number(
                frames[start:end].tobytes(), offset
            )
            start = end

    def _frame(self, frame: Any, offset: int) -> int:
        if type(frame) is FrameNumber:
            return frame
        if type(frame) is not dict:
            raise RefusedError("an event's frames are no list of frames", offset)
        return self._stacks.frames.number_of(frame)
