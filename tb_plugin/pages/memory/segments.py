"""The route of segments: where every block is at a moment, what is free and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from msgspec import Meta

from tb_plugin.analysis.allocator.free_blocks import (
    arenas,
    fit,
    free_sizes,
    obstacle,
    pins,
)
from tb_plugin.analysis.allocator.groups import FOLDED
from tb_plugin.analysis.allocator.lifetimes import ACTIONS, OOM
from tb_plugin.analysis.arrays import NOTHING
from tb_plugin.analysis.categories.frames import stacks_by_line
from tb_plugin.api.histories import HistoryOddity
from tb_plugin.api.segments import (
    SegmentBlocks,
    SegmentRequest,
    SegmentSort,
    SegmentsResponse,
    SizeClass,
)
from tb_plugin.api.segments import SegmentRows as ApiSegmentRows
from tb_plugin.contract.wire import f64, i32, u8
from tb_plugin.pages.histories.asked import MomentQuery, of_device
from tb_plugin.pages.histories.history import moment_of, moment_words
from tb_plugin.pages.memory.blocks import passing

if TYPE_CHECKING:
    from tb_plugin.analysis.allocator.segments import SegmentRows, SegmentState
    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.api.segments import AllocatorAction
    from tb_plugin.jobs.open_history import OpenDevice, Shown

MAX_SEGMENTS: Final = 2_000
MAX_BLOCKS: Final = 200_000
MAX_PINS: Final = 200

_UNKNOWN: Final = "unknown"


class SegmentsQuery(MomentQuery, frozen=True):
    """Segments at a moment, and what would become of a `request` of bytes."""

    sort: SegmentSort = "size"
    size_class: SizeClass | None = None
    request: Annotated[int, Meta(ge=0, le=1 << 60)] | None = None


@of_device("segments", SegmentsQuery)
def segments(
    device: OpenDevice, _shown: Shown, query: SegmentsQuery
) -> SegmentsResponse:
    """Segments and blocks of a device just after an event."""
    moment = moment_of(device, query.moment, default_moment(device))
    state = device.replay.at(moment)
    of_all = state.segments
    chosen = np.flatnonzero(passing(query, of_all.stream, of_all.pool, of_all.is_large))
    found = chosen[_order(of_all, chosen, query.sort)]
    in_sight = state if len(chosen) == len(of_all) else state.only(chosen)
    action, num_bytes = _event(device, moment)
    # Stacks of one line are one: the first of them stands for all.
    of_line = np.append(stacks_by_line(device.history.snapshot.stacks), NOTHING)
    pinned, pinners = pins(in_sight, of_line[device.lives.stack], MAX_PINS)
    return SegmentsResponse(
        device=device.number,
        moment=moment_words(device, moment),
        action=action,
        action_bytes=num_bytes,
        num_segments=len(found),
        reserved_bytes=float(of_all.total_size[chosen].sum()),
        allocated_bytes=float(of_all.allocated_size[chosen].sum()),
        pending_bytes=float(of_all.pending_size[chosen].sum()),
        free_bytes=float(of_all.free_size[chosen].sum()),
        requested_bytes=float(of_all.requested_size[chosen].sum()),
        **_drawn(device, state, found[:MAX_SEGMENTS]),
        categories=FOLDED,  # type: ignore[arg-type]  # these words
        free_sizes=free_sizes(in_sight),
        arenas=arenas(state),
        request=_request(device, state, query, of_line),
        pins=pinned,
        pinners=pinners,
        oddities=tuple(
            HistoryOddity(what, count) for what, count in state.oddities.items()
        ),
    )


def default_moment(device: OpenDevice) -> int:
    """The first out-of-memory error, else the peak of reserved bytes."""
    failed = device.replay.device.events.of_action(OOM)
    return int(failed[0]) if len(failed) else device.reserved.peak[1]


def _order(found: SegmentRows, rows: Ints, sort: SegmentSort) -> Ints:
    """Rows of `rows`; equal ones by size, free bytes and address: the full ones together."""
    by = {
        "address": found.address,
        "size": -found.total_size,
        "free": -found.free_size,
        "largest_free": -found.largest_free,
        "age": found.opened,
    }[sort]
    return np.lexsort([one[rows] for one in (-found.free_size, -found.total_size, by)])


def _event(
    device: OpenDevice, moment: int
) -> tuple[AllocatorAction | None, float | None]:
    if moment < 0:
        return None, None
    events = device.replay.device.events
    action = int(events.action[moment])
    word = ACTIONS[action] if action >= 0 else _UNKNOWN
    return word, float(events.size[moment])  # type: ignore[return-value]  # these words


def _drawn(device: OpenDevice, state: SegmentState, rows: Ints) -> dict[str, Any]:
    """Segments with their blocks, as far as there is room for these."""
    found, blocks = state.segments, state.blocks
    ends = np.append(found.first_block[1:], len(blocks))
    first, counts = found.first_block[rows], ends[rows] - found.first_block[rows]
    counts = np.where(np.cumsum(counts) <= MAX_BLOCKS, counts, 0)
    below = np.cumsum(counts) - counts
    block = np.arange(int(counts.sum())) + np.repeat(first - below, counts)
    life = blocks.life[block]
    # -1 is the last row: that of free blocks.
    stack = np.append(device.lives.stack, NOTHING)[life]
    category = np.append(device.categories.of_life, len(FOLDED))[life]
    return {
        "segments": ApiSegmentRows(
            address=f64(found.address[rows]),
            total_bytes=f64(found.total_size[rows]),
            allocated_bytes=f64(found.allocated_size[rows]),
            pending_bytes=f64(found.pending_size[rows]),
            free_bytes=f64(found.free_size[rows]),
            requested_bytes=f64(found.requested_size[rows]),
            largest_free_bytes=f64(found.largest_free[rows]),
            num_active=i32(found.num_active[rows]),
            stream=i32(found.stream[rows]),
            pool=i32(found.pool[rows]),
            is_large=u8(found.is_large[rows]),
            is_expandable=u8(found.is_expandable[rows]),
            opened=i32(found.opened[rows]),
            stack=i32(found.stack[rows]),
            first_block=i32(below),
            num_blocks=i32(counts),
        ),
        "blocks": SegmentBlocks(
            offset=f64(blocks.address[block] - found.address[blocks.segment[block]]),
            size=f64(blocks.size[block]),
            state=u8(blocks.state[block]),
            life=i32(life),
            stack=i32(stack),
            category=u8(category),
        ),
    }


def _request(
    device: OpenDevice, state: SegmentState, query: SegmentsQuery, of_line: Ints
) -> SegmentRequest | None:
    """What was asked about, or else the request that failed at this event."""
    events, moment = device.replay.device.events, state.moment
    is_oom = moment >= 0 and int(events.action[moment]) == OOM
    stream, pool = query.stream or 0, query.pool or 0
    num_bytes, free = query.request, None
    if is_oom:
        said = int(events.device_free[moment])
        free = None if said < 0 else float(said)
        if num_bytes is None:
            num_bytes = int(events.size[moment])
            stream = int(events.stream[moment])
            pool = max(0, int(events.pool[moment]))
    if num_bytes is None:
        return None
    rounding = device.replay.segments.rounding
    found = fit(state, rounding, num_bytes, pool=pool, stream=stream)
    in_the_way = None
    if not found.fits:
        stacks = device.lives.stack
        in_the_way = obstacle(state, found, of_line[stacks], pool=pool, stream=stream)
    return SegmentRequest(
        is_oom=is_oom and query.request is None,
        requested_bytes=float(num_bytes),
        rounded_bytes=float(found.size),
        is_large=found.is_large,
        stream=stream,
        pool=pool,
        fits=found.fits,
        largest_free_bytes=float(found.largest),
        free_bytes=float(found.free),
        other_stream_largest_bytes=float(found.other_stream_largest),
        other_pool_largest_bytes=float(found.other_pool_largest),
        releasable_bytes=float(found.releasable_bytes),
        new_segment_bytes=float(found.new_segment_bytes),
        device_free_bytes=free,
        obstacle=in_the_way,
    )
