"""From a snapshot to a capture of kind `history`: bounds, tensors' names, tables.

torch hands out a structure of dicts that nobody else holds. Cutting a long history short and
naming tensors happen at once, on the caller's thread. Making tables takes two microseconds
per event, which is for the writer's: `LaterTables` looks like the tables and makes them when
the writer first reads them.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.clock.process_clock import now_ns
from memboard.collector.core.calls import LaterTables
from memboard.collector.format.capture import size_of
from memboard.collector.format.records import Capture
from memboard.collector.format.snapshots.encode import tables_of
from memboard.collector.history.tensors import TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.collector.core.calls import Sink
    from memboard.collector.format.records import CaptureTable
    from memboard.collector.history.recording import HistoryRecording
    from memboard.collector.history.tensors import Tensors

KIND: Final = "history"

MAX_WAITING_ROWS: Final = 1_000_000
"""Events and blocks that wait to be encoded, at 700 bytes each: with more, the caller
encodes its own."""


ROW_BYTES: Final = 96
"""Approximate size of an event or block in the tables."""

MAX_EVENTS: Final = 2_000_000
"""Of one capture: what its tables may hold; see `memboard.collector.format.capture`."""


class Keeper:
    """Makes captures of the snapshots of one recording, for one recorder."""

    def __init__(
        self, sink: Sink, recording: HistoryRecording, *, max_entries: int
    ) -> None:
        """`max_entries`: of each device, what is kept of a program's endless history."""
        self._sink = sink
        self._recording = recording
        self._max_entries = max_entries
        self._waiting: weakref.WeakSet[LaterTables] = weakref.WeakSet()

    def put(
        self,
        snapshot: dict[str, Any],
        step: int | None,
        tensors: Tensors | None,
        *,
        phase: str,
        function: str,
        iteration: int,
        context: str = "",
        label: str = "",
        **more: Any,
    ) -> bool:
        """Queue the capture of a snapshot, which is the keeper's own from now on.

        `tensors`: what was at which address, where that is known; `more`: further meta.
        Whether it was queued.
        """
        most = min(
            self._max_entries * max(1, len(snapshot.get("device_traces", ()))),
            MAX_EVENTS,
        )
        num_dropped = keep_last(snapshot, most)
        num_dropped += keep_last_pinned(snapshot, self._max_entries)
        meta: dict[str, Any] = {
            "device_type": self._recording.allocator.device_type,
            "recording": self.whose(),
            "num_segments": len(snapshot.get("segments", ())),
            "num_blocks": num_blocks(snapshot),
            "num_events": num_events(snapshot),
            "num_pinned_events": num_pinned_events(snapshot),
            "num_events_dropped": num_dropped,
            **more,
        }
        beside: dict[str, CaptureTable] = {}
        if tensors is not None:
            beside[TABLE] = tensors.table()
            meta["num_tensors"] = len(tensors.address)
            meta["num_tensors_dropped"] = tensors.num_dropped
        tables = later_tables(snapshot, beside)
        self._make_room(tables)
        capture = Capture(
            kind=KIND,
            time_ns=now_ns(),
            step=step,
            phase=phase,
            function=function,
            iteration=iteration,
            context=context,
            label=label,
            meta=meta,
            tables=tables,
        )
        return self._sink.put_capture(capture)

    def whose(self) -> str:
        """Whose recording the events are from: ours, program or off."""
        if self._recording.is_ours:
            return "ours"
        return "program" if self._recording.allocator.is_recording() else "off"

    def _make_room(self, tables: LaterTables) -> None:
        """Of too much that waits, the caller makes its own tables."""
        waiting = sum(0 if t.is_made else t.num_rows for t in self._waiting)
        if waiting + tables.num_rows > MAX_WAITING_ROWS and waiting:
            tables.made()  # a slow disk must not fill the memory
        else:
            self._waiting.add(tables)


def later_tables(
    snapshot: Any, beside: Mapping[str, CaptureTable] | None = None
) -> LaterTables:
    """The tables of a snapshot; `beside`: tables that are there already."""
    there = dict(beside or {})
    num_rows = num_events(snapshot) + num_pinned_events(snapshot)
    num_rows += num_blocks(snapshot)
    return LaterTables(
        lambda: {**tables_of(snapshot), **there},
        num_rows * ROW_BYTES + size_of(there),
        num_rows,
    )


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


def keep_last_pinned(snapshot: dict[str, Any], most: int) -> int:
    """Leave pinned host memory its last events; how many went."""
    before = num_pinned_events(snapshot)
    if before <= most:
        return 0
    snapshot["host_traces"] = snapshot["host_traces"][before - most :]
    return before - most


def num_pinned_events(snapshot: Any) -> int:
    """Events of pinned host memory, which are one list."""
    return len(_lists(snapshot, "host_traces"))


def num_events(snapshot: Any) -> int:
    return sum(map(len, _lists(snapshot, "device_traces")))


def num_blocks(snapshot: Any) -> int:
    """Blocks of all segments, those of pinned host memory too."""
    segments = [*_lists(snapshot, "segments"), *_lists(snapshot, "host_segments")]
    return sum(
        len(segment.get("blocks", ()))
        for segment in segments
        if isinstance(segment, dict)
    )


def _lists(snapshot: Any, key: str) -> list[Any]:
    lists = snapshot.get(key) if isinstance(snapshot, dict) else None
    return lists if isinstance(lists, list) else []
