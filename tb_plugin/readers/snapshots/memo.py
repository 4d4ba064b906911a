"""What a pickle may refer back to, by number.

Pickle numbers every dict, list and text it writes, several per event: most of them are
never referred to again, but nothing says which. Objects are kept as they are; the lists
of frames of events that were read as columns are kept as the number of their stack, and
what belongs to the event alone not at all.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tb_plugin.readers.snapshots.errors import RefusedError

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

NO_STACK: Final = -1
_MAX_ENTRIES: Final = 1 << 31
_MAX_NAMES: Final = 1 << 16
"""Texts whose entries are known by name; a snapshot's keys come early."""


class Memo:
    """Numbers are given out in order, as every pickler of Python does."""

    def __init__(self) -> None:
        self.count = 0
        self._objects: dict[int, Any] = {}
        self._entry_of_text: dict[str, int] = {}
        self._single: dict[int, int] = {}
        """Stacks by entry, of events that were read one by one."""
        self._starts: list[int] = []
        self._entries: list[Numbers] = []
        self._stacks: list[npt.NDArray[np.int32]] = []
        """Stacks by entry, of runs of events; `_starts` are the runs' first entries."""

    def add(self, value: Any, at: int) -> int:
        """Keep an object under the next number."""
        number = self._next(1, at)
        self._objects[number] = value
        if type(value) is str and len(self._entry_of_text) < _MAX_NAMES:
            self._entry_of_text.setdefault(value, number)
        return number

    def add_run(
        self, num_entries: int, entries: Numbers, stacks: Numbers, at: int
    ) -> None:
        """Count the entries of a run of events; `entries` hold these `stacks`.

        Entries count from the run's first, ascending.
        """
        first = self._next(num_entries, at)
        if len(entries):
            self._starts.append(first)
            self._entries.append((entries + first).astype(np.int64))
            self._stacks.append(stacks.astype(np.int32))

    def get(self, number: int, at: int) -> Any:
        """The object; an `int` where it is the stack of an event.

        Raises:
            RefusedError: there is no such entry, or it was an event.
        """
        found = self._objects.get(number)
        if found is None:
            found = self.stack(number)
            if found == NO_STACK:
                raise RefusedError(f"refers to entry {number}, which is nothing", at)
        return found

    def stack(self, number: int) -> int:
        """The stack kept under a number, or `NO_STACK`."""
        found = self._single.get(number)
        if found is not None:
            return found
        run = bisect_right(self._starts, number) - 1
        if run < 0:
            return NO_STACK
        entries = self._entries[run]
        place = int(np.searchsorted(entries, number))
        if place == len(entries) or int(entries[place]) != number:
            return NO_STACK
        return int(self._stacks[run][place])

    def stacks(self, numbers: Numbers) -> Numbers:
        """The stacks kept under some numbers, `NO_STACK` where there is none."""
        found = np.full(len(numbers), NO_STACK, np.int64)
        runs = np.searchsorted(self._starts, numbers, side="right") - 1
        for run in np.unique(runs).tolist():
            if run >= 0:
                rows = np.flatnonzero(runs == run)
                entries, stacks = self._entries[run], self._stacks[run]
                places = np.minimum(
                    np.searchsorted(entries, numbers[rows]), len(entries) - 1
                )
                there = entries[places] == numbers[rows]
                found[rows[there]] = stacks[places[there]]
        for row in np.flatnonzero(found == NO_STACK).tolist():
            found[row] = self._single.get(int(numbers[row]), NO_STACK)
        return found

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

    def as_stack(self, number: int, stack: int) -> None:
        """A list of frames that is known as a stack from now on."""
        self._objects.pop(number, None)
        self._single[number] = stack

    def _next(self, num_entries: int, at: int) -> int:
        first = self.count
        self.count += num_entries
        if self.count > _MAX_ENTRIES:
            raise RefusedError("more entries than any snapshot has", at)
        return first
