"""What a replayed history says of an out-of-memory error: the state at that event.

The end of a snapshot says nothing of it: by then the exception has let go of whatever
the step held. The allocator gave back all it could before it gave up, so what is free
at the event itself is what no rule allowed it to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.allocator.free_blocks import arenas, fit
from tb_plugin.analysis.allocator.lifetimes import ALLOC, BEFORE
from tb_plugin.analysis.allocator.live import live_rows
from tb_plugin.analysis.categories.passes import TRAINING
from tb_plugin.analysis.oom.error import (
    Elsewhere,
    FreeBlocks,
    OomFacts,
    PendingFrees,
    Place,
)
from tb_plugin.analysis.oom.growth_at import growth_at
from tb_plugin.analysis.snapshots.snapshot import MAX_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.allocator.replay import Replay
    from tb_plugin.analysis.allocator.segments import SegmentState
    from tb_plugin.analysis.oom.holders import Lines

    Ints: TypeAlias = npt.NDArray[Any]

MAX_NAMED: Final = 3
"""Streams and lines of pending frees that are named."""

LOST: Final = 0.05
"""Memory from before the first event is worth a word from this share of the live on."""


def facts_at(
    replay: Replay, event: int, lines: Lines, step: Ints | None = None
) -> OomFacts:
    """The facts at an oom event of a device.

    `step`: of each event, negative where it is not known; None: of none.
    """
    device = replay.device
    events, lives = device.events, replay.lives
    asked = int(events.size[event])
    free = int(events.device_free[event])
    state = replay.at(event)
    blocks, elsewhere = _free(replay, state, event, asked)
    before = live_rows(lives, event)
    before = before[lives.born[before] == BEFORE]
    active = int(replay.active.after[event])
    segments = state.segments
    private = segments.pool > 0
    others = private & (segments.pool != int(events.pool[event]))
    return OomFacts(
        requested_bytes=asked,
        device_free_bytes=free if 0 <= free <= MAX_BYTES else None,
        reserved_bytes=int(replay.reserved.levels.after[event]),
        allocated_bytes=int(replay.allocated.after[event]),
        active_bytes=active,
        private_pool_bytes=int(segments.total_size[private].sum()),
        private_free_bytes=int(segments.free_size[others].sum()),
        num_private_pools=len(np.unique(segments.pool[others])),
        pending=_pending(replay, event, lines),
        free=blocks,
        elsewhere=elsewhere,
        largest_before_bytes=_largest_before(replay, event),
        largest_here_bytes=_largest_here(replay, event, lines),
        most_reserved_bytes=max(
            replay.reserved.levels.first,
            int(replay.reserved.levels.after[: event + 1].max()),
        ),
        growth=growth_at(replay, event, lines, step),
        beginning_is_lost=int(lives.size[before].sum()) > LOST * max(1, active),
    )


def _free(
    replay: Replay, state: SegmentState, event: int, asked: int
) -> tuple[FreeBlocks, Elsewhere | None]:
    """Free blocks where the request belongs, and the largest that was kept from it."""
    events = replay.device.events
    pool, stream = max(0, int(events.pool[event])), int(events.stream[event])
    found = fit(state, replay.segments.rounding, asked, pool=pool, stream=stream)
    by_place = arenas(state)
    here = (np.maximum(by_place.pool, 0) == pool) & (by_place.stream == stream)
    here &= by_place.is_large == found.is_large
    free = FreeBlocks(
        num_bytes=found.free,
        largest_bytes=found.largest,
        num_blocks=int(by_place.num_blocks[here].sum()),
    )
    kept: list[tuple[int, Place]] = [
        (found.other_stream_largest, "stream"),
        (found.other_pool_largest, "pool"),
    ]
    if found.largest >= found.size and not found.fits:
        kept.append((found.largest, "split"))
    largest, place = max(kept, key=lambda one: one[0])
    return free, Elsewhere(largest, place) if largest else None


def _pending(replay: Replay, event: int, lines: Lines) -> PendingFrees:
    """What was freed and still waits for another stream."""
    lives = replay.lives
    rows = live_rows(lives, event)
    rows = rows[lives.freed[rows] <= event]
    size = lives.size[rows]
    streams = [
        (_stream(replay, stream), num_bytes)
        for stream, num_bytes in _largest(replay.stream[rows], size)
    ]
    groups = lines.groups(lives.stack[rows])
    labels = [
        lines.label(int(lives.stack[rows[groups == group][0]]))
        for group, _ in _largest(groups, size)
    ]
    return PendingFrees(
        num_bytes=int(size.sum()),
        num_blocks=len(rows),
        streams=tuple(streams),
        lines=tuple(label for label in labels if label),
    )


def _largest(group: Ints, size: Ints) -> list[tuple[int, int]]:
    """The groups with most bytes, and how many."""
    found, place = np.unique(group, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, place.reshape(-1), size)
    order = np.argsort(-sums, kind="stable")[:MAX_NAMED]
    return list(zip(found[order].tolist(), sums[order].tolist(), strict=True))


def _stream(replay: Replay, row: int) -> str:
    """A stream's name: the default one has no pointer."""
    if row < 0:
        return "a stream that was not recorded"
    pointer = replay.snapshot.streams[row]
    return "the default stream" if pointer == 0 else f"stream {pointer:#x}"


def _largest_before(replay: Replay, event: int) -> int | None:
    """The largest request served before; None where none is known."""
    events, lives = replay.device.events, replay.lives
    served = events.size[:event][events.action[:event] == ALLOC]
    early = lives.size[lives.born == BEFORE]
    sizes = [int(column.max()) for column in (served, early) if len(column)]
    return max(sizes, default=None)


def _largest_here(replay: Replay, event: int, lines: Lines) -> int | None:
    """The largest request that the same stack made before; None where it made none.

    Before the last backward or optimizer: each layer of the forward under way asks for
    as much at the same line.
    """
    events = replay.device.events
    stack = int(events.stack[event])
    if stack < 0:
        return None
    same = (events.action[:event] == ALLOC) & (events.stack[:event] == stack)
    trained = np.flatnonzero(
        lines.has(TRAINING)[events.stack[:event]] & (events.action[:event] == ALLOC)
    )
    same[int(trained[-1]) if len(trained) else 0 :] = False
    return int(events.size[:event][same].max()) if same.any() else None
