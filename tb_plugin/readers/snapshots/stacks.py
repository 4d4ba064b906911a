"""The distinct stacks of a snapshot, by number, however the pickle spells them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from tb_plugin.readers.snapshots.errors import RefusedError

if TYPE_CHECKING:
    from tb_plugin.readers.snapshots.memo import Memo

Frame = dict[str, Any]

MAX_FRAMES: Final = 10_000
"""Of one stack: Python gives up at a thousand."""

_BINGET: Final = ord("h")


class Stacks:
    """Frames are shared objects of the memo: a stack is told by their identity."""

    def __init__(self, memo: Memo) -> None:
        self.lists: list[list[Frame]] = []
        """One list of frames per stack, by number."""
        self._memo = memo
        self._by_raw: dict[bytes, int] = {}
        self._by_list: dict[int, int] = {}
        self._by_frames: dict[tuple[int, ...], int] = {}
        self.num_frames = 0
        """Of all stacks together."""

    def number_of(self, frames: Any, at: int) -> int:
        """The number of a list of frames."""
        number = self._by_list.get(id(frames))
        if number is not None:
            return number
        if type(frames) is not list or not all(type(f) is dict for f in frames):
            raise RefusedError("an event's frames are no list of frames", at)
        number = self._by_frames.get(key := tuple(map(id, frames)))
        if number is None:
            number = self._add(key, frames, at)
        # Held by the memo, or it would be one of `lists` already: its id stays its own.
        if frames is self.lists[number]:
            self._by_list[id(frames)] = number
        return number

    def number_of_raw(self, raw: bytes, at: int) -> int:
        """The number of the stack that a list of references into the memo makes."""
        number = self._by_raw.get(raw)
        if number is None:
            frames = [self._memo.get(entry, at) for entry in _references(raw)]
            number = self._by_raw[raw] = self.number_of(frames, at)
        return number

    def _add(self, key: tuple[int, ...], frames: list[Frame], at: int) -> int:
        if len(frames) > MAX_FRAMES:
            raise RefusedError(f"a stack has {len(frames)} frames", at)
        number = self._by_frames[key] = len(self.lists)
        self.lists.append(frames)
        self.num_frames += len(frames)
        return number


def _references(raw: bytes) -> array[int]:
    """Memo entries of `] MEMOIZE ( h? j???? ... e`, of its form for one, or for none."""
    found = array("q")
    place = 2
    end = len(raw) - 1 if len(raw) > 2 else 2  # the closing opcode
    if raw[place : place + 1] == b"(":
        place += 1
    while place < end:
        if raw[place] == _BINGET:
            found.append(raw[place + 1])
            place += 2
        else:
            found.append(int.from_bytes(raw[place + 1 : place + 5], "little"))
            place += 5
    return found
