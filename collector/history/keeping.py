"""From a snapshot to a capture of kind `history`: bounds, tensors' names, pickles.

What several who take snapshots have in common. Cutting a long history short and naming
tensors happen at once, on the caller's thread; tables and pickles are made on the
writer's.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from collector.clock.process_clock import now_ns
from collector.core.warn_once import remedy_for, warn
from collector.format.records import Capture
from collector.history.captures import (
    MAX_EVENTS,
    LaterTables,
    keep_last,
    num_blocks,
    num_events,
)
from collector.history.pickles import pickle_name, write_pickle
from collector.history.tensors import TABLE

if TYPE_CHECKING:
    from collector.format.records import CaptureTable
    from collector.functions.contract import Sink
    from collector.history.recording import Recording
    from collector.history.tensors import Tensors

KIND: Final = "history"

MAX_WAITING_ROWS: Final = 1_000_000
"""Events and blocks that wait to be encoded, at 700 bytes each: with more, the caller
encodes its own."""


class Keeper:
    """Makes captures of the snapshots of one recording, for one recorder."""

    def __init__(
        self, sink: Sink, recording: Recording, *, max_entries: int, keep_pickle: bool
    ) -> None:
        """`max_entries`: of each device, what is kept of a program's endless history."""
        self._sink = sink
        self._recording = recording
        self._max_entries = max_entries
        self._keep_pickle = keep_pickle
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

        Args:
            snapshot: as torch gives it.
            step: the training step under way.
            tensors: what was at which address, where that is known.
            phase: see `Capture`, as the following four.
            function: see there.
            iteration: see there.
            context: see there.
            label: see there.
            **more: further meta.

        Returns:
            Whether it was queued.
        """
        most = min(self._max_entries * _num_devices(snapshot), MAX_EVENTS)
        num_dropped = keep_last(snapshot, most)
        meta: dict[str, Any] = {
            "device_type": self._recording.allocator.device_type,
            "recording": self.whose(),
            "num_segments": len(snapshot.get("segments", ())),
            "num_blocks": num_blocks(snapshot),
            "num_events": num_events(snapshot),
            "num_events_dropped": num_dropped,
            **more,
        }
        beside: dict[str, CaptureTable] = {}
        if tensors is not None:
            beside[TABLE] = tensors.table()
            meta["num_tensors"] = len(tensors.address)
            meta["num_tensors_dropped"] = tensors.num_dropped
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
            tables=LaterTables(
                snapshot, lambda taken: self._keep(taken, capture, meta), beside
            ),
        )
        self._make_room(capture)
        return self._sink.put_capture(capture)

    def whose(self) -> str:
        """Whose recording the events are from: ours, program or off."""
        if self._recording.is_ours:
            return "ours"
        return "program" if self._recording.allocator.is_recording() else "off"

    def _make_room(self, capture: Capture) -> None:
        """Of too much that waits, the caller makes its own tables."""
        tables = capture.tables
        if isinstance(tables, LaterTables):
            waiting = sum(0 if t.is_made else t.num_rows for t in self._waiting)
            if waiting + tables.num_rows > MAX_WAITING_ROWS and waiting:
                tables.made()  # a slow disk must not fill the memory
            else:
                self._waiting.add(tables)

    def _keep(self, snapshot: Any, capture: Capture, meta: dict[str, Any]) -> None:
        """Leave the raw pickle where it is wanted; on the writer's thread."""
        if not self._keep_pickle:
            return
        folder = self._sink.artifact_dir()
        if folder is None:
            return
        path = folder / pickle_name(
            self._sink.rank,
            capture.function,
            capture.step or 0 if capture.label else capture.iteration,
            phase=capture.phase,
            context="" if capture.label else capture.context,
            label=capture.label,
        )
        try:
            write_pickle(snapshot, path)
            meta["pickle"] = path.name
            self._sink.mirror("snapshots", path)
        except Exception as error:  # noqa: BLE001  # the capture itself is still good
            meta["pickle_failed"] = f"{type(error).__name__}: {error}"
            remedy = remedy_for(error) if isinstance(error, OSError) else ""
            warn("no pickle at %s: %s. %s", path, error, remedy)


def _num_devices(snapshot: dict[str, Any]) -> int:
    return max(1, len(snapshot.get("device_traces", ())))
