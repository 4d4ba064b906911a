"""Answers that were cut short for want of time: whoever asks again gets a fuller one.

Of a run that is written no more nothing changes, so a page would be told for ever that
it holds the newest answer. The count kept here is part of the ETag instead: the next
poll is answered anew, with more time for it. Where that does not suffice the count
stops and the coarse answer stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from tb_plugin.budget import MOST_STRETCH

if TYPE_CHECKING:
    from tb_plugin.query import Query
    from tb_plugin.run import Run

MOST_AGAIN: Final = 3
"""So often in a row the same question is answered anew."""

_MOST_KEPT: Final = 64
"""Questions per run: every zoom asks another one."""


class CutShort:
    """How often each question was; hold the run's lock."""

    def __init__(self) -> None:
        self._counts: WeakKeyDictionary[
            Run, dict[tuple[str, Query], tuple[int, int]]
        ] = WeakKeyDictionary()

    def count(self, run: Run, name: str, query: Query) -> int:
        """How many answers of the run's present state were cut short, up to a limit."""
        version, count = self._counts.get(run, {}).get((name, query), (0, 0))
        return count if version == run.version else 0

    def stretch(self, run: Run, name: str, query: Query) -> int:
        """How many times longer the next answer's parts may take."""
        return min(MOST_STRETCH, 1 << self.count(run, name, query))

    def note(self, run: Run, name: str, query: Query) -> None:
        """An answer was cut short."""
        count = min(self.count(run, name, query) + 1, MOST_AGAIN)
        kept = self._counts.setdefault(run, {})
        kept.pop((name, query), None)  # the newest stands last
        kept[name, query] = (run.version, count)
        if len(kept) > _MOST_KEPT:
            del kept[next(iter(kept))]
