"""The route of segments: where every block is at a moment, what is free and for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from memboard.collector.format.sizes import agreeing, counted
from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS, OOM
from memboard.tb_plugin.analysis.allocator.listing.segments import (
    blocks_of,
    listed_rows,
    num_alike,
)
from memboard.tb_plugin.analysis.allocator.moment.arenas import (
    arenas,
    free_sizes,
    releasable,
)
from memboard.tb_plugin.analysis.allocator.moment.pins import pins
from memboard.tb_plugin.analysis.arrays import numbered, picked, sums
from memboard.tb_plugin.analysis.categories.frames import stack_label, stacks_by_line
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.analysis.snapshots.snapshot import ALLOCATED
from memboard.tb_plugin.api.base import f64, i32, u8
from memboard.tb_plugin.api.memory.histories import HistoryOddity
from memboard.tb_plugin.api.memory.segments import (
    SegmentBlocks,
    SegmentPins,
    SegmentSort,
    SegmentsResponse,
    SizeClass,
)
from memboard.tb_plugin.api.memory.segments import SegmentRows as ApiSegmentRows
from memboard.tb_plugin.facts.histories.description import moment_of, moment_words
from memboard.tb_plugin.facts.histories.opening import MomentQuery
from memboard.tb_plugin.pages.memory.blocks import allocation_groups, is_large
from memboard.tb_plugin.pages.memory.segment_tables import (
    arena_table,
    free_size_table,
    pinner_table,
)
from memboard.tb_plugin.pages.memory.unusable_memory import request_at, why_of
from memboard.tb_plugin.server.views.history import of_device

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.moment.pins import Pins
    from memboard.tb_plugin.analysis.allocator.segments import SegmentRows, SegmentState
    from memboard.tb_plugin.analysis.allocator.selection import Selection
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.api.memory.segments import AllocatorAction
    from memboard.tb_plugin.jobs.open_history import OpenDevice

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
    device: OpenDevice, _shown: Selection, query: SegmentsQuery
) -> SegmentsResponse:
    """Segments and blocks of a device just after an event."""
    moment = moment_of(device, query.moment, default_moment(device))
    state = device.replay.at(moment)
    of_all = state.segments
    ordered = listed_rows(
        of_all, query.sort, query.stream, query.pool, is_large(query.size_class)
    )
    in_sight = state if len(ordered) == len(of_all) else state.only(ordered)
    shown, blocks = in_sight.segments, in_sight.blocks
    has_live = shown.num_active > 0
    action, num_bytes = _event(device, moment)
    # Stacks of one line are one: the first of them stands for all.
    of_line = stacks_by_line(device.history.snapshot.stacks)
    life_stack = picked(of_line, device.lives.stack)
    pinned, pinners = pins(in_sight, life_stack, MAX_PINS)
    of_query = (query.request, query.stream, query.pool)
    request = request_at(device, moment, *of_query)
    why = why_of(device, state, in_sight, pinners, request, life_stack)
    request_bytes = (
        None if request is None else device.replay.rounding.size(request.num_bytes)
    )
    pinned_bytes = int((shown.free_size - releasable(in_sight))[has_live].sum())
    is_live = blocks.state == ALLOCATED
    groups = device.groups("category")
    category = groups.of_life[blocks.life[is_live]]
    of_category = sums(category, blocks.size[is_live], len(groups.groups))
    return SegmentsResponse(
        device=device.number,
        moment=moment_words(device, moment),
        action=action,
        action_bytes=num_bytes,
        num_segments=len(ordered),
        reserved_bytes=float(shown.total_size.sum()),
        allocated_bytes=float(shown.allocated_size.sum()),
        pending_bytes=float(shown.pending_size.sum()),
        free_bytes=float(shown.free_size.sum()),
        whole_bytes=float(shown.free_size[~has_live].sum()),
        pinned_bytes=float(pinned_bytes),
        **_drawn(device, state, ordered[:MAX_SEGMENTS]),
        categories=allocation_groups(groups, of_category.tolist()),
        free_sizes=free_size_table(free_sizes(in_sight), request_bytes),
        arenas=arena_table(device, arenas(state)),
        why=why,
        pins=_pin_texts(device, pinned),
        pinners=pinner_table(pinners, pinned_bytes),
        oddities=tuple(
            HistoryOddity(oddity, count) for oddity, count in state.oddities.items()
        ),
    )


def default_moment(device: OpenDevice) -> int:
    """The first out-of-memory error, else the peak of reserved bytes."""
    failed = device.replay.device.events.of_action(OOM)
    return int(failed[0]) if len(failed) else device.reserved.peak[1]


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
    segments_shown, blocks = state.segments, state.blocks
    kinds, kind = _kinds(device, segments_shown.take(rows))
    of_segments = blocks_of(state, rows, MAX_BLOCKS)
    block = of_segments.block
    life = blocks.life[block]
    groups = device.groups("category")
    category = picked(groups.of_life, life, len(groups.groups))
    return {
        "kinds": kinds,
        "segments": ApiSegmentRows(
            address=f64(segments_shown.address[rows]),
            total_bytes=f64(segments_shown.total_size[rows]),
            allocated_bytes=f64(segments_shown.allocated_size[rows]),
            pending_bytes=f64(segments_shown.pending_size[rows]),
            free_bytes=f64(segments_shown.free_size[rows]),
            requested_bytes=f64(segments_shown.requested_size[rows]),
            largest_free_bytes=f64(segments_shown.largest_free[rows]),
            num_active=i32(segments_shown.num_active[rows]),
            kind=i32(kind),
            num_alike=i32(num_alike(kind, segments_shown.take(rows))),
            opened=i32(segments_shown.opened[rows]),
            stack=i32(segments_shown.stack[rows]),
            first_block=i32(of_segments.first),
            num_blocks=i32(of_segments.num),
        ),
        "blocks": SegmentBlocks(
            offset=f64(
                blocks.address[block] - segments_shown.address[blocks.segment[block]]
            ),
            size=f64(blocks.size[block]),
            state=u8(blocks.state[block]),
            life=i32(life),
            stack=i32(picked(device.lives.stack, life)),
            category=u8(category),
        ),
    }


def _kinds(
    device: OpenDevice, segment_rows: SegmentRows
) -> tuple[tuple[str, ...], Ints]:
    """What kinds of segments there are, and by row which: `large · expandable`."""
    history = device.history
    pools, streams = history.pool_labels, history.stream_labels
    first, kind = numbered(
        segment_rows.pool,
        segment_rows.stream,
        segment_rows.is_large,
        segment_rows.is_expandable,
    )
    texts = []
    for row in first.tolist():
        pool, stream = int(segment_rows.pool[row]), int(segment_rows.stream[row])
        parts = ["large" if segment_rows.is_large[row] else "small"]
        parts += ["expandable"] * bool(segment_rows.is_expandable[row])
        parts += [f"pool {pools[pool]}"] * (pool > 0)
        parts += ["pool not recorded"] * (pool < 0 and len(pools) > 1)
        if len(streams) > 1:
            parts.append(f"stream {streams[stream] if stream >= 0 else '?'}")
        texts.append(" · ".join(parts))
    return tuple(texts), kind


def _pin_texts(device: OpenDevice, pinned: Pins) -> SegmentPins:
    """`pinned by one block of 135 MiB, train.py:118 step`, by address."""
    stacks = device.history.snapshot.stacks
    columns = (pinned.live_bytes, pinned.num_live, pinned.stack)
    texts = []
    for live_bytes, num, stack in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        blocks = agreeing(num, "one block", counted(num, "block"))
        mostly = "" if num == 1 else "mostly "
        at_line = "" if stack < 0 else f", {mostly}{stack_label(stacks, stack)}"
        texts.append(f"pinned by {blocks} of {size_text(live_bytes)}{at_line}")
    return SegmentPins(tuple(pinned.address.astype(float).tolist()), tuple(texts))
