"""A snapshot on its way to the file: taken on one thread, encoded on another.

torch hands out a structure of dicts that nobody else holds. Making it tables takes two
microseconds per event, which is for the writer's thread: `LaterTables` looks like the
tables and makes them when they are first asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from collector.format.capture import size_of
from collector.format.snapshots import tables_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.format.records import CaptureTable

ROW_BYTES: Final = 96
"""What an event or block takes in the tables, about."""

MAX_EVENTS: Final = 2_000_000
"""Of one capture: what its tables may hold; see `collector.format.capture`."""


class LaterTables(Mapping[str, "CaptureTable"]):
    """The tables of a snapshot, made when first asked for."""

    def __init__(
        self,
        snapshot: Any,
        then: Callable[[Any], None],
        beside: Mapping[str, CaptureTable] | None = None,
    ) -> None:
        """`then` is called with the snapshot when the tables are made; may not raise.

        `beside`: tables that are there already.
        """
        self.num_rows = num_events(snapshot) + num_blocks(snapshot)
        self._beside = dict(beside or {})
        self._snapshot = snapshot
        self._then = then
        self._tables: Mapping[str, CaptureTable] | None = None
        self._lock = threading.Lock()

    @property
    def is_made(self) -> bool:
        """Whether the snapshot itself has been let go."""
        return self._tables is not None

    @property
    def size_bytes(self) -> int:
        """What the tables take, about, without making them."""
        return self.num_rows * ROW_BYTES + size_of(self._beside)

    def made(self) -> Mapping[str, CaptureTable]:
        """The tables themselves."""
        with self._lock:
            if self._tables is None:
                self._then(self._snapshot)
                self._tables = {**tables_of(self._snapshot), **self._beside}
                self._snapshot = None
            return self._tables

    def __getitem__(self, name: str) -> CaptureTable:
        return self.made()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.made())

    def __len__(self) -> int:
        return len(self.made())

    # To be counted while it waits it must have a place in sets, unmade.

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def keep_last(snapshot: dict[str, Any], most: int) -> int:
    """Leave each device its last events, `most` of them in all; how many went."""
    traces = snapshot.get("device_traces")
    before = num_events(snapshot)
    if not isinstance(traces, list) or before <= most:
        return 0
    # What short traces do not need of their share is the longer ones'.
    room, left = most, len(traces)
    shares = [0] * len(traces)
    for place in sorted(range(len(traces)), key=lambda place: len(traces[place])):
        shares[place] = min(len(traces[place]), room // left)
        room -= shares[place]
        left -= 1
    snapshot["device_traces"] = [
        trace[len(trace) - share :] for trace, share in zip(traces, shares, strict=True)
    ]
    return before - num_events(snapshot)


def num_events(snapshot: Any) -> int:
    """Events on all devices."""
    return sum(map(len, _lists(snapshot, "device_traces")))


def num_blocks(snapshot: Any) -> int:
    """Blocks of all segments."""
    segments = _lists(snapshot, "segments")
    return sum(
        len(segment.get("blocks", ()))
        for segment in segments
        if isinstance(segment, dict)
    )


def _lists(snapshot: Any, key: str) -> list[Any]:
    found = snapshot.get(key) if isinstance(snapshot, dict) else None
    return found if isinstance(found, list) else []
