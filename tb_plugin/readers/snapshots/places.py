"""Which entry of a pickle's memo was which event, where the file refers to events again.

A script that filters, joins or doubles a history and pickles it anew may have one event's
dict in two places: the pickle then refers to it the second time. Such an event counts as
another one of the same content.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Final

PLACE_BYTES: Final = 8
"""Of each event."""


class Places:
    """Rows of events by their entries; both ascend, as events do not lie in each other."""

    def __init__(self) -> None:
        self._entries = array("i")
        self._rows = array("i")

    def add(self, entry: int, row: int) -> None:
        """The next event."""
        self._entries.append(entry)
        self._rows.append(row)

    def row(self, entry: int) -> int | None:
        """The event's row; None: the entry is no event."""
        place = bisect_left(self._entries, entry)
        if place == len(self._entries) or self._entries[place] != entry:
            return None
        return self._rows[place]
