"""Places a request at a moment, and finds the blocks that stand in its way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.allocator.moment.arenas import releasable
from memboard.tb_plugin.analysis.allocator.rounding import SMALL_BYTES
from memboard.tb_plugin.analysis.arrays import NOTHING, grouped, sums
from memboard.tb_plugin.analysis.snapshots.snapshot import INACTIVE

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.rounding import Rounding
    from memboard.tb_plugin.analysis.allocator.segments import SegmentState
    from memboard.tb_plugin.analysis.arrays import Flags, Ints


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a request could be served at a moment, and if not, what was in the way."""

    requested_bytes: int
    size: int
    """As the allocator rounds it."""
    is_large: bool
    block: int
    """Row of `BlockRows`: the free block it would get; NOTHING: none fits."""
    largest: int
    """Largest free block of its arena."""
    free: int
    """All free blocks of its arena, in bytes."""
    other_stream_largest: int
    """Largest free block of the same pool and size class, of other streams."""
    other_pool_largest: int
    """The same of other memory pools, on any stream."""
    releasable_bytes: int
    """What giving free segments back would add to what the device has."""
    new_segment_bytes: int
    """What has to be reserved where no block fits."""

    @property
    def fits(self) -> bool:
        """A free block serves it; nothing need be reserved."""
        return self.block != NOTHING


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Neighbouring blocks whose live ones, freed, would make room for a request."""

    address: int
    size: int
    """Of live and free blocks."""
    lives: Ints
    """The live ones, the largest first."""
    live_bytes: int
    stack: int
    """That holds most of these; NOTHING: none."""


def fit(
    state: SegmentState,
    rounding: Rounding,
    requested_bytes: int,
    *,
    pool: int = 0,
    stream: int = 0,
) -> Fit:
    """Where a request of one pool and stream (rows of the snapshot's) would go.

    Segments whose pool is not recorded count as those of the ordinary one.
    """
    size = rounding.size(requested_bytes)
    is_large = size > SMALL_BYTES
    segments, blocks = state.segments, state.blocks
    free = np.flatnonzero(blocks.state == INACTIVE)
    segment = blocks.segment[free]
    num_bytes = blocks.size[free]
    same_class = segments.is_large[segment] == is_large
    same_pool = np.maximum(segments.pool[segment], 0) == pool
    same_stream = segments.stream[segment] == stream
    own = same_class & same_pool & same_stream
    serves = np.flatnonzero(own & rounding.lends(num_bytes, size))
    block = NOTHING
    if len(serves):  # the smallest, of equal ones the one at the lowest address
        block = int(free[serves[np.argmin(num_bytes[serves])]])

    def most(rows: Flags) -> int:
        return int(num_bytes[rows].max(initial=0))

    return Fit(
        requested_bytes=requested_bytes,
        size=size,
        is_large=is_large,
        block=block,
        largest=most(own),
        free=int(num_bytes[own].sum()),
        other_stream_largest=most(same_class & same_pool & ~same_stream),
        other_pool_largest=most(same_class & ~same_pool),
        releasable_bytes=int(releasable(state).sum()),
        new_segment_bytes=rounding.segment_size(size),
    )


def obstacle(
    state: SegmentState, fit: Fit, life_stack: Ints, *, pool: int, stream: int
) -> Obstacle | None:
    """The fewest live bytes between free blocks whose end would serve a request.

    Of all stretches of neighbouring blocks that are long enough, in segments that the
    request may use, the one with the fewest live bytes. None: no segment is as long.
    """
    segments, blocks = state.segments, state.blocks
    usable = (
        (segments.is_large == fit.is_large)
        & (np.maximum(segments.pool, 0) == pool)
        & (segments.stream == stream)
    )
    rows = np.flatnonzero(usable[blocks.segment])
    segment, size = blocks.segment[rows], blocks.size[rows]
    live = np.where(blocks.state[rows] == INACTIVE, 0, size)
    before, live_before = (np.append(0, np.cumsum(sizes)) for sizes in (size, live))
    first = np.arange(len(rows))
    end = np.searchsorted(before, before[:-1] + fit.size)
    inside = np.flatnonzero(end <= len(rows))
    inside = inside[segment[end[inside] - 1] == segment[inside]]
    if not len(inside):
        return None
    first, end = first[inside], end[inside]
    best = np.argmin(live_before[end] - live_before[first])
    chosen = np.arange(first[best], end[best])
    live_rows = rows[chosen[live[chosen] > 0]]
    stacks, which = grouped(life_stack[blocks.life[live_rows]])
    by_stack = sums(which, blocks.size[live_rows], len(stacks))
    return Obstacle(
        address=int(blocks.address[rows[chosen[0]]]),
        size=int(size[chosen].sum()),
        lives=blocks.life[
            live_rows[np.argsort(-blocks.size[live_rows], kind="stable")]
        ],
        live_bytes=int(blocks.size[live_rows].sum()),
        stack=int(stacks[np.argmax(by_stack)]) if len(live_rows) else NOTHING,
    )
