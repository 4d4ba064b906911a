"""The history of an allocator, as torch keeps it: a ring of what it did, and when.

An entry is eight integers in one flat array, so that millions fit. What torch would call
its frames is a **site**: a number that whoever drives the allocator sets before each
call (see `sites`); one call of the allocator's is one **capture**, whose entries
share one list of frames.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.simulate.allocator.blocks import DEFAULT_POOL, NO_SITE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulate.allocator.blocks import Arena, PoolId

ALLOC: Final = 0
FREE_REQUESTED: Final = 1
FREE_COMPLETED: Final = 2
SEGMENT_ALLOC: Final = 3
SEGMENT_FREE: Final = 4
SEGMENT_MAP: Final = 5
SEGMENT_UNMAP: Final = 6
SNAPSHOT: Final = 7
OOM: Final = 8

ACTIONS: Final = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
)
"""torch's names of the actions above."""

STARTED_US: Final = 1_767_603_600_000_000
"""2026-01-05 09:00 UTC: simulated histories are the same on every day."""

_WIDTH: Final = 8
_CHUNK_ENTRIES: Final = 1 << 14


class Annotation(NamedTuple):
    """A range of the program began or ended: an entry of `external_annotations`."""

    stage: str
    name: str
    time_us: int


class History:
    """The last `max_entries` things an allocator did, at least.

    Attributes:
        site: the site of what is done next; `NO_SITE` where none is recorded.
        captured: number of the present capture.
        num_recorded: how many entries there were, kept or not.
        now_us: the clock; set it forward to let time pass.
        annotations: ranges of the program, in the order of time.
    """

    def __init__(self, max_entries: int | None = None) -> None:
        """`max_entries`: None keeps all."""
        self.max_entries = max_entries
        self.now_us = STARTED_US
        self.site = NO_SITE
        self.captured = 0
        self.num_recorded = 0
        self.annotations: list[Annotation] = []
        self.pool_ids: list[PoolId] = [DEFAULT_POOL]
        self._pool_index: dict[PoolId, int] = {DEFAULT_POOL: 0}
        self._old: deque[array[int]] = deque()
        self._rows = array("q")

    def __len__(self) -> int:
        """Number of entries kept."""
        return min(
            self._num_held(),
            sys.maxsize if self.max_entries is None else self.max_entries,
        )

    def capture(self) -> None:
        """A call of the allocator's begins."""
        self.captured += 1

    def record(self, action: int, address: int, size_bytes: int, arena: Arena) -> None:
        """Append an entry of the present capture and site, a microsecond after the last."""
        pool_id = arena.pool_id
        self._append(
            action,
            address,
            size_bytes,
            arena.stream,
            self.captured,
            self.site,
            0 if pool_id is DEFAULT_POOL else self._index_of(pool_id),
        )

    def record_snapshot(self, active_bytes: int) -> None:
        """Append what torch appends when a snapshot is taken: it has no frames."""
        self._append(SNAPSHOT, 0, active_bytes, 0, 0, NO_SITE, 0)

    def annotate(self, stage: str, name: str) -> None:
        """A range of the program begins (START) or ends (END) now."""
        self.now_us += 1
        self.annotations.append(Annotation(stage, name, self.now_us))

    def rows(self) -> Iterator[Sequence[int]]:
        """The kept entries, oldest first, as plain numbers.

        Action, address (of an OOM: the bytes the device had left), bytes, stream,
        microseconds since the Unix epoch, of which no two have the same, capture (from 1
        on; 0: none), site, and index into `pool_ids`.
        """
        skip = self._num_held() - len(self)
        for chunk in (*self._old, self._rows):
            numbers = iter(chunk[skip * _WIDTH :])
            yield from zip(*[numbers] * _WIDTH, strict=True)
            skip = max(0, skip - len(chunk) // _WIDTH)

    def _append(
        self,
        action: int,
        address: int,
        size_bytes: int,
        stream: int,
        capture: int,
        site: int,
        pool: int,
    ) -> None:
        self.now_us = now = self.now_us + 1
        self.num_recorded += 1
        rows = self._rows
        rows.extend((action, address, size_bytes, stream, now, capture, site, pool))
        if len(rows) >= _CHUNK_ENTRIES * _WIDTH:
            self._turn()

    def _turn(self) -> None:
        """Begin another chunk, and drop the oldest where the others hold enough."""
        self._old.append(self._rows)
        self._rows = array("q")
        if self.max_entries is not None:
            oldest = len(self._old[0]) // _WIDTH
            if self._num_held() - oldest >= self.max_entries:
                self._old.popleft()

    def _num_held(self) -> int:
        return (sum(map(len, self._old)) + len(self._rows)) // _WIDTH

    def _index_of(self, pool_id: PoolId) -> int:
        index = self._pool_index.get(pool_id)
        if index is None:
            index = self._pool_index[pool_id] = len(self.pool_ids)
            self.pool_ids.append(pool_id)
        return index
