"""Stack and memo of the machine that reads pickles, within bounds."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.tb_plugin.worker.errors import RefusedError
from memboard.tb_plugin.worker.limits import MIB, SNAPSHOT, memory_of, memory_remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.formats.snapshots.window import Window

    Numbers = npt.NDArray[Any]


_SHARE: Final = 0.5
"""Of what a worker may take: what everything but events takes, as it is estimated."""
_MAX_BATCH: Final = 1 << 20
"""Entries between a mark and its end; Python's picklers write a thousand."""
MAX_STACK: Final = 4 << 20
"""Entries that wait for the end of theirs."""


class StackMachine:
    """Where a pickle is being read, what waits on its stack, and what that has cost."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._data = window.data
        self._at = 0
        """Where in the window's data."""
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._fence = 0
        """The last mark: what lies below is out of reach."""
        self._spent = 0
        self._most = int(_SHARE * memory_of(window.num_bytes, SNAPSHOT))
        """Bytes that objects take, and may take."""

    def _bytes(self, number: int) -> bytes:
        start = self._at
        self._at += number
        if self._at > len(self._data):
            raise RefusedError("the pickle ends too early", self._at)
        return self._data[start : self._at]

    def _unsigned(self, width: int) -> int:
        return int.from_bytes(self._bytes(width), "little")

    def _spend(self, num_bytes: int) -> None:
        self._spent += num_bytes
        if self._spent > self._most:
            raise self._too_much()

    def _too_much(self) -> RefusedError:
        return RefusedError(
            f"its objects need more than {self._most / MIB:,.0f} MiB, which a file of its"
            " size may take here",
            self._at,
            remedy=memory_remedy(SNAPSHOT),
        )

    def _push(self, value: Any, num_bytes: int = 0) -> None:
        """`num_bytes`: what it takes beside its place on the stack."""
        self._spent += num_bytes
        if self._spent > self._most:
            raise self._too_much()
        self._stack.append(value)

    def _pop(self) -> Any:
        if len(self._stack) <= self._fence:
            raise RefusedError("an opcode lacks what it works on", self._at)
        return self._stack.pop()

    def _top(self) -> Any:
        if len(self._stack) <= self._fence:
            raise RefusedError("an opcode lacks what it works on", self._at)
        return self._stack[-1]

    def _from_mark(self) -> list[Any]:
        if not self._marks:
            raise RefusedError("a list or dict ends that was never begun", self._at)
        mark = self._marks.pop()
        self._fence = self._marks[-1] if self._marks else 0
        items = self._stack[mark:]
        if len(items) > _MAX_BATCH:
            raise RefusedError("a list or dict is too long", self._at)
        del self._stack[mark:]
        return items


NOTHING: Final = -1
"""The code of an entry that nothing may refer to: an event's own dict."""
FIRST_TEXT: Final = -2
"""The code of the first of `texts`; that of the next is two less."""
FIRST_PAIR: Final = -3  # The same of `pairs`
_MAX_ENTRIES: Final = 1 << 31
_MAX_NAMES: Final = 1 << 16
"""Texts whose entries are known by name; a snapshot's keys come early."""


class StackNumber(int):
    """What an entry is whose list of frames is known as a stack."""

    __slots__ = ()


class FrameNumber(int):
    """What an entry is that is a frame: its number among `Frames`."""

    __slots__ = ()


class Memo:
    """Numbers are given out in order, as every pickler of Python does."""

    def __init__(self) -> None:
        self.count = 0
        self.texts: Sequence[str] = ()
        self.pairs: list[tuple[int, int]] = []
        self.fetched: set[int] = set()
        """Ids of lists and dicts that were referred to: they must not change any more."""
        self.pending: Callable[[int, int], Any] = _nothing
        """What an entry is that was skipped and has no code yet; else None."""
        self._objects: dict[int, Any] = {}
        self._entry_of_text: dict[str, int] = {}
        self._starts: list[int] = []
        self._codes: list[Numbers] = []
        """Of runs of entries; `_starts` are the runs' first ones."""
        self._frame_entries = array("I")
        self._frames = array("i")
        """Entries that are frames, in ascending order, and which frames they are."""

    def add(self, value: Any, offset: int) -> int:
        """Keep an object under the next number."""
        number = self.skip(1, offset)
        self._objects[number] = value
        if type(value) is str and len(self._entry_of_text) < _MAX_NAMES:
            self._entry_of_text.setdefault(value, number)
        return number

    def skip(self, num_entries: int, offset: int) -> int:
        """Count entries whose codes `add_codes` is given later; returns the first."""
        first = self.count
        self.count += num_entries
        if self.count > _MAX_ENTRIES:
            raise RefusedError("more entries than any snapshot has", offset)
        return first

    def add_codes(self, first: int, codes: Numbers) -> None:
        """The codes of a run of entries, in ascending order of runs."""
        least, most = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
        narrow = next(
            t
            for t in (np.int8, np.int16, np.int32)
            if np.iinfo(t).min <= least and most <= np.iinfo(t).max
        )
        self._starts.append(first)
        self._codes.append(codes.astype(narrow))

    def get(self, number: int, offset: int) -> Any:
        """The object; a `StackNumber` where it is the list of frames of an event.

        Raises:
            RefusedError: there is no such entry, or it was an event: torch writes each
                of them once.
        """
        value = self._objects.get(number)
        if value is None:
            code = self.code(number)
            value = (
                self.pending(number, offset) if code == NOTHING else self.of_code(code)
            )
        if value is None:
            value = self._frame(number)
        if value is None:
            reason = (
                "an event, which torch writes once"
                if number < self.count
                else "nothing"
            )
            raise RefusedError(f"refers to entry {number}, which is {reason}", offset)
        if type(value) in (list, dict):
            self.fetched.add(id(value))
        return value

    def of_code(self, code: int) -> Any:
        """What a code stands for."""
        if code >= 0:
            return StackNumber(code)
        number, is_pair = divmod(FIRST_TEXT - code, 2)
        return self.pairs[number] if is_pair else self.texts[number]

    def code(self, number: int) -> int:
        """The code of an entry that is no object."""
        run = bisect_right(self._starts, number) - 1
        if run < 0 or number - self._starts[run] >= len(self._codes[run]):
            return NOTHING
        return int(self._codes[run][number - self._starts[run]])

    def stacks(self, numbers: Numbers) -> Numbers:
        """The stacks kept under some numbers, `NOTHING` where there is none."""
        stack_codes = np.full(len(numbers), NOTHING, np.int64)
        if not self._starts:
            return stack_codes
        runs = np.searchsorted(self._starts, numbers, side="right") - 1
        for run in np.unique(runs).tolist():
            if run >= 0:
                rows = np.flatnonzero(runs == run)
                codes = self._codes[run]
                places = numbers[rows] - self._starts[run]
                rows = rows[places < len(codes)]
                stack_codes[rows] = codes[numbers[rows] - self._starts[run]]
        return np.maximum(stack_codes, NOTHING)

    def add_frame(self, number: int, frame: int) -> None:
        """An entry, later than all others of frames, is a frame."""
        self._frame_entries.append(number)
        self._frames.append(frame)

    def frames(self, numbers: Numbers) -> Numbers:
        """The frames kept under some numbers, `NOTHING` where there is none."""
        if not self._frames:
            return np.full(len(numbers), NOTHING, np.int32)
        entries = np.frombuffer(self._frame_entries, np.uint32)
        places = np.searchsorted(entries, numbers.astype(np.uint32))
        places[places == len(entries)] = 0
        frames = np.frombuffer(self._frames, np.int32)[places]
        return np.where(entries[places] == numbers, frames, np.int32(NOTHING))

    def _frame(self, number: int) -> FrameNumber | None:
        entries = self._frame_entries
        place = bisect_left(entries, number)
        if place == len(entries) or entries[place] != number:
            return None
        return FrameNumber(self._frames[place])

    def reference_to(self, text: str) -> bytes | None:
        """The opcode by which a pickle refers to a text it wrote before."""
        number = self._entry_of_text.get(text)
        if number is None:
            return None
        if number < 256:  # what a byte holds
            return b"h" + bytes([number])
        return b"j" + number.to_bytes(4, "little")

    def forget(self, number: int) -> None:
        """An object that became a row: nothing may refer to it any more."""
        self._objects.pop(number, None)

    def replace(self, number: int, value: StackNumber) -> None:
        """A stack that stands for the same list from now on."""
        # The list may be gone soon, and its id be another's.
        self.fetched.discard(id(self._objects.get(number)))
        self._objects[number] = value


def _nothing(_number: int, _at: int) -> None: ...
