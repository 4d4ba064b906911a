"""What streams and calls waited for, where the profiler recorded it (`cuda_sync`).

CUPTI notes a wait of a stream for an event, and of a call for an event or a stream, with
the stream that is waited for and the call that recorded the event, if it knows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, places_in
from memboard.tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace

_OF_STREAM: Final = "Stream Wait Event"
_FOR_STREAM: Final = "Stream Sync"
_FOR_EVENT: Final = "Event Sync"


class LaunchedWork(NamedTuple):
    """(works,) columns of work whose call is recorded."""

    work: Ints  # Index in `WorkStarts`
    device: Ints
    stream: Ints
    called_ns: Ints
    end_ns: Ints


class AwaitedWork(NamedTuple):
    producer: dict[int, int]
    """By the index of a work the one that its stream waited for; the last to end of several."""
    of_call: dict[int, int]
    """By the row of a call the work that it waited for; NOTHING where nothing was launched."""


def awaited_work(trace: Trace, works: LaunchedWork) -> AwaitedWork:
    """Which work was waited for, by work and by calls."""
    table = trace.synchronisations
    if not len(table) or not len(works.work):
        return AwaitedWork({}, {})
    queues = _Queues(works)
    names = trace.slices.name[table.row]
    is_wait, for_stream, for_event = (
        are(trace.strings, names, kind.__eq__)
        for kind in (_OF_STREAM, _FOR_STREAM, _FOR_EVENT)
    )
    call, called = _calls(trace, table.correlation, trace.slices.starts(table.row))
    _, recorded = _calls(trace, table.event_correlation, called)
    awaited = queues.last_before(
        table.device,
        np.where(for_stream, table.stream, table.awaited_stream),
        np.where(for_stream, called, recorded),
    )
    consumer = queues.first_after(table.device, table.stream, called)
    of_stream = is_wait & (awaited != NOTHING) & (consumer != NOTHING)
    order = np.flatnonzero(of_stream)
    order = order[np.argsort(works.end_ns[awaited[order]], kind="stable")]
    pairs = works.work[consumer[order]], works.work[awaited[order]]
    return AwaitedWork(
        dict(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)),
        _of_calls(works, call, awaited, (for_stream | for_event) & (call != NOTHING)),
    )


def _of_calls(
    works: LaunchedWork, call: Ints, awaited: Ints, waits: Flags
) -> dict[int, int]:
    has_work = awaited != NOTHING
    index = np.where(has_work, works.work[awaited], NOTHING)
    return dict(zip(call[waits].tolist(), index[waits].tolist(), strict=True))


def _calls(trace: Trace, correlation: Ints, otherwise_ns: Ints) -> tuple[Ints, Ints]:
    """Rows of calls by their correlation, and their begins; else NOTHING, and a time."""
    launches = trace.launches
    has_correlation = launches.correlation > 0
    correlations, first = np.unique(
        launches.correlation[has_correlation], return_index=True
    )
    place = places_in(correlations, correlation)
    if not len(correlations):
        return np.full(len(correlation), NOTHING), otherwise_ns
    rows = launches.row[has_correlation][first][place]
    is_recorded = place != NOTHING
    begins = np.where(is_recorded, trace.slices.starts(rows), otherwise_ns)
    return np.where(is_recorded, rows, NOTHING), begins


class _Queues:
    """Work by its stream, in the order in which it was launched."""

    def __init__(self, works: LaunchedWork) -> None:
        self._base = int(works.called_ns.min())
        self._width = int(works.called_ns.max()) - self._base + 3
        streams = np.stack((works.device, works.stream), axis=1).astype(np.int64)
        self._streams, lane = np.unique(streams, axis=0, return_inverse=True)
        key = lane.ravel() * self._width + (works.called_ns - self._base) + 1
        self._order = np.argsort(key, kind="stable")
        self._keys = key[self._order]

    def last_before(self, device: Ints, stream: Ints, time_ns: Ints) -> Ints:
        """The work of a stream that was launched last until a time, or NOTHING."""
        lane, key = self._keys_of(device, stream, time_ns)
        place = np.searchsorted(self._keys, key, "right") - 1
        return self._of_lane(lane, place)

    def first_after(self, device: Ints, stream: Ints, time_ns: Ints) -> Ints:
        """The work of a stream that was launched first after a time, or NOTHING."""
        lane, key = self._keys_of(device, stream, time_ns)
        return self._of_lane(lane, np.searchsorted(self._keys, key, "left"))

    def _keys_of(self, device: Ints, stream: Ints, time_ns: Ints) -> tuple[Ints, Ints]:
        lane = np.full(len(device), NOTHING)
        for number, (own_device, own_stream) in enumerate(self._streams.tolist()):
            lane[(device == own_device) & (stream == own_stream)] = number
        inside = np.clip(time_ns - self._base + 1, 0, self._width - 1)
        return lane, lane * self._width + inside

    def _of_lane(self, lane: Ints, place: Ints) -> Ints:
        is_inside = (place >= 0) & (place < len(self._keys)) & (lane != NOTHING)
        place = np.where(is_inside, place, 0)
        is_inside &= self._keys[place] // self._width == lane
        return np.where(is_inside, self._order[place], NOTHING)
