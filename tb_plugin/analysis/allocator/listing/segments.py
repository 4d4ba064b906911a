"""Segments of a moment in order, with their blocks, and equal ones counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.listing.segment_lives import passing
from memboard.tb_plugin.analysis.arrays import Table, begins, within

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.segments import SegmentRows, SegmentState
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.api.memory.segments import SegmentSort

LEAST_ALIKE: Final = 3
"""So many equal full segments are one line."""


def listed_rows(
    segments: SegmentRows,
    sort: SegmentSort,
    stream: int | None,
    pool: int | None,
    is_large: bool | None,
) -> Ints:
    """Rows of a stream, pool and size class; None: of any.

    Equal ones are in order of size, free bytes and address: the full ones together.
    """
    rows = np.flatnonzero(passing(segments, stream, pool, is_large))
    by = {
        "address": segments.address,
        "size": -segments.total_size,
        "free": -segments.free_size,
        "largest_free": -segments.largest_free,
        "age": segments.opened,
    }[sort]
    keys = (-segments.free_size, -segments.total_size, by)
    return rows[np.lexsort([key[rows] for key in keys])]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentBlockRows(Table):
    """Which blocks each of some segments has."""

    first: Ints
    """Place in `block` of a segment's first one."""
    num: Ints
    """0 of segments whose blocks are left out."""
    block: Ints
    """Rows of `BlockRows`, by segment and then by address."""


def blocks_of(state: SegmentState, rows: Ints, most: int) -> SegmentBlockRows:
    """Blocks of some segments, in their order, as long as they are not more than `most`."""
    segments = state.segments
    ends = np.append(segments.first_block[1:], len(state.blocks))
    first = segments.first_block[rows]
    num = ends[rows] - first
    num = np.where(np.cumsum(num) <= most, num, 0)
    block = within(num) + np.repeat(first, num)
    return SegmentBlockRows(np.cumsum(num) - num, num, block)


def num_alike(kind: Ints, segments: SegmentRows) -> Ints:
    """By row: how many equal full segments begin there, three or more; else 1."""
    is_first = begins(kind) | begins(segments.total_size) | (segments.free_size > 0)
    is_first[1:] |= segments.free_size[:-1] > 0
    first = np.flatnonzero(is_first)
    counts = np.diff(first, append=len(kind))
    alike = np.ones(len(kind), np.int64)
    alike[first] = np.where(counts >= LEAST_ALIKE, counts, 1)
    return alike
