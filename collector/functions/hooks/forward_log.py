"""What the built-in hooks find around forwards, as it happened, and what it comes to.

While training runs, each side of a forward is one entry in a list; which columns that
makes is found on the writer's thread.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from collector.sources.host.rss import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from collector.functions.hooks.module_watch import Here

RSS: Final = ("rss_pre_forward", "rss_post_forward", "rss_diff")
"""Resident memory; its difference adds up over a module's forwards in one call."""

NPP: Final = ("npp_pre_forward", "npp_post_forward", "npp_diff")
"""MemProfiler's count of saved bytes in the call; its difference is the last forward's."""

_WIDTH: Final = 5
"""Values of an entry in a list where they lie end to end."""

FOLD_AT: Final = 20_000 * _WIDTH
"""Values that are kept before they are added up: some megabytes."""

ROOT: Final = 0

_OF_ROOT: Final = (ROOT, ~ROOT)

Entry: TypeAlias = "tuple[int, int, Here, int, Any]"
"""One side of a module's forward: the module's index, and of its end the index's
complement (`~index`); how many modules it is in, itself among them; the thread;
MemProfiler's count of saved bytes there; a reading of the process's sizes, or None."""


class ForwardLog:
    """Entries of all threads, for calls under way; the watch's hooks add them."""

    __slots__ = ("entries", "failed", "fold", "outer", "read")

    def __init__(
        self,
        read: Callable[[], Any] | None,
        fold: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """`read`: makes a reading. `fold`: called where there are `FOLD_AT` entries.

        `failed` is told why there are no more.
        """
        self.read = read
        self.fold = fold
        self.failed = failed
        self.entries: list[Any] = []
        """End to end: no object is made for an entry."""
        self.outer: list[Entry] = []
        """Those of the root, and those that nothing is around: few, and asked for first."""


class Found:
    """What entries say in one call: values by names (before, after, difference)."""

    def __init__(self, thread: Here, saved_bytes: int | None) -> None:
        """`saved_bytes`: MemProfiler's count on `thread` when the call began.

        None: saved tensors are not counted.
        """
        self._thread = thread
        self._saved_before = saved_bytes

    def values(self, entry: Entry) -> Iterator[tuple[Sequence[str], int]]:
        """The values of one entry, each with the names it goes under."""
        _, _, thread, saved, reading = entry
        resident = None if reading is None else resident_bytes(reading)
        if resident is not None:
            yield RSS, resident
        before = self._saved_before
        if before is not None and thread is self._thread:
            yield NPP, saved - before


class Columns:
    """Values of every module in one call; NaN for those that did not run."""

    def __init__(self, num_modules: int, found: Found) -> None:
        self._found = found
        self._nothing = [math.nan] * num_modules
        self._columns: dict[str, list[float]] = {}

    def add(self, values: Sequence[Any]) -> None:
        """Put entries in their columns; they lie end to end."""
        one = iter(values)
        for entry in zip(one, one, one, one, one, strict=True):
            code = entry[0]
            is_after = code < 0
            index = ~code if is_after else code
            for names, now in self._found.values(entry):
                self._put(names, index, is_after, now)

    def _put(
        self, names: Sequence[str], index: int, is_after: bool, now: float
    ) -> None:
        before, after, difference = (
            self._columns.setdefault(name, self._nothing.copy()) for name in names
        )
        if not is_after:
            before[index] = now
            return
        change = now - before[index]
        adds_up = names is RSS and not math.isnan(difference[index])
        after[index] = now
        difference[index] = difference[index] + change if adds_up else change

    def column(self, name: str) -> list[float]:
        """One column; all NaN where nothing was found."""
        return self._columns.get(name, self._nothing)


class RootValues:
    """The root's values in one call.

    Where the root itself does not run (a trainer calls what is inside it), they are those
    of the outermost modules that do: the first one's before, the last one's after.
    """

    def __init__(self, found: Found) -> None:
        self._found = found
        self._root = Columns(1, found)
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._waiting: list[Entry] = []

    def add(self, entries: Iterable[Entry]) -> None:
        """Take those of the root, and those that nothing is around; looked at later."""
        self._waiting += entries

    def _look(self) -> None:
        entries, self._waiting = self._waiting, []
        for entry in entries:
            code, depth, *_ = entry
            if code in _OF_ROOT:
                self._root.add(entry)
            if depth == 1:
                for names, now in self._found.values(entry):
                    if code < 0:
                        self._last[names[0]] = now
                    else:
                        self._first.setdefault(names[0], now)

    def value(self, name: str) -> float | None:
        """A value of the root's; None where nothing ran."""
        self._look()
        own = self._root.column(name)[ROOT]
        if not math.isnan(own):
            return own
        names = RSS if name in RSS else NPP
        first, last = self._first.get(names[0]), self._last.get(names[0])
        if name == names[0]:
            return first
        if name == names[1] or last is None or first is None:
            return last
        return last - first


def root_value(found: Found, outer: Iterable[Entry], name: str) -> float | None:
    """A value of the root's, of entries that are not in any `RootValues`."""
    root = RootValues(found)
    root.add(outer)
    return root.value(name)
