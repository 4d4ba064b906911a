"""The log of modules' forwards, and what each module has by it.

While training runs, each side of a forward is one entry: the module, how deep it lies, the
thread, the count of saved bytes there, a reading of the process's sizes. Entries lie end to
end in one list, as values of which each has its place: no object is made for an entry.
What that comes to by module is worked out on the writer's thread.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memboard.collector.format.memory import NPP_ATTRS, RSS_ATTRS
from memboard.collector.sources.host.rss import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

OUTSIDE: Final = -1
"""Stands for a module where there is none."""

ROOT: Final = 0

FOLD_AT: Final = 100_000
"""Values in a log's entries, five for each, before they are added up: some megabytes."""


class WatchedThread:
    """One thread, as the watch sees it."""

    __slots__ = ("__weakref__", "saved_bytes", "stack")

    def __init__(self) -> None:
        self.stack: list[int] = [OUTSIDE]
        """The modules that run, the innermost last; below them all, `OUTSIDE`."""
        self.saved_bytes = 0
        """MemProfiler's count of saved bytes, while any are counted."""


Entry: TypeAlias = "tuple[int, int, WatchedThread, int, Any]"
"""One side of a module's forward: the module's index, and of its end the index's
complement (`~index`); how many modules it is in, itself among them; the thread;
MemProfiler's count of saved bytes there; a reading of the process's sizes, or None."""


class ForwardLog:
    """Entries of all threads, for calls under way; the watch's hooks add them."""

    __slots__ = ("entries", "failed", "fold", "outer", "read")

    def __init__(
        self,
        read: Callable[[], Any],
        fold: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """`read`: makes a reading. `fold`: called where there are `FOLD_AT` values.

        `failed` is told why there are no more.
        """
        self.read = read
        self.fold = fold
        self.failed = failed
        self.entries: list[Any] = []
        """End to end: no object is made for an entry."""
        self.outer: list[Entry] = []
        """Those of the root, and those that nothing is around: few, and read first."""


class ForwardValues:
    """What an entry says in one call: values by names (before, after, difference)."""

    def __init__(self, thread: WatchedThread, saved_bytes: int | None) -> None:
        """`saved_bytes`: MemProfiler's count on `thread` when the call began.

        None: saved tensors are not counted.
        """
        self._thread = thread
        self._saved_before = saved_bytes

    def of(self, entry: Entry) -> Iterator[tuple[Sequence[str], int]]:
        """The values of one entry, each with the names it goes under."""
        _, _, thread, saved, reading = entry
        resident = None if reading is None else resident_bytes(reading)
        if resident is not None:
            yield RSS_ATTRS, resident
        before = self._saved_before
        if before is not None and thread is self._thread:
            yield NPP_ATTRS, saved - before


class ForwardColumns:
    """Values of every module in one call; NaN for those that did not run."""

    def __init__(self, num_modules: int, values: ForwardValues) -> None:
        self._values = values
        self._nothing = [math.nan] * num_modules
        self._columns: dict[str, list[float]] = {}

    def add(self, values: Sequence[Any]) -> None:
        """Put entries in their columns; they lie end to end."""
        value_iterator = iter(values)
        for entry in zip(
            value_iterator,
            value_iterator,
            value_iterator,
            value_iterator,
            value_iterator,
            strict=True,
        ):
            code = entry[0]
            index = ~code if code < 0 else code
            for names, now in self._values.of(entry):
                before, after, difference = (
                    self._columns.setdefault(attribute, self._nothing.copy())
                    for attribute in names
                )
                if code >= 0:
                    before[index] = now
                    continue
                change = now - before[index]
                adds_up = names is RSS_ATTRS and not math.isnan(difference[index])
                after[index] = now
                difference[index] = difference[index] + change if adds_up else change

    def column(self, attribute: str) -> list[float]:
        """One column; all NaN where nothing was found."""
        return self._columns.get(attribute, self._nothing)


def root_values(
    values: ForwardValues,
    outer: Sequence[Entry],
    names: Iterable[str],
    left: Mapping[str, float | None],
) -> dict[str, float | None]:
    """What the root has by `outer` entries, and what was `left` on it; None: nothing."""
    own = {attribute: _root_value(values, outer, attribute) for attribute in names}
    return {**own, **left}


def _root_value(
    values: ForwardValues, outer: Iterable[Entry], attribute: str
) -> float | None:
    root = ForwardColumns(1, values)
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for entry in outer:
        code, depth, *_ = entry
        if code in (ROOT, ~ROOT):
            root.add(entry)
        if depth == 1:
            for names, now in values.of(entry):
                if code < 0:
                    last[names[0]] = now
                else:
                    first.setdefault(names[0], now)
    own = root.column(attribute)[ROOT]
    if not math.isnan(own):
        return own
    names = RSS_ATTRS if attribute in RSS_ATTRS else NPP_ATTRS
    begun, ended = first.get(names[0]), last.get(names[0])
    if attribute == names[0]:
        return begun
    if attribute == names[1] or ended is None or begun is None:
        return ended
    return ended - begun
