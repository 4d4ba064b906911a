"""Segments and parts of them as lives, so that they are drawn as allocations are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
from memboard.tb_plugin.analysis.allocator.selection import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.allocator.segment_spans import Spans
    from memboard.tb_plugin.analysis.allocator.segments import SegmentRows
    from memboard.tb_plugin.analysis.arrays import Flags, Ints


@dataclass(frozen=True, slots=True, eq=False)
class SegmentLives:
    """Spans by when they were opened: a segment, or a part of an expandable one."""

    lives: Lifetimes
    """From the event that brought each to the one that took it back."""
    row: Ints
    """By life its row of `Spans`."""
    kinds: Sequence[tuple[int, bool]]
    """Pools, by their rows, and whether segments are large: what occurs."""
    kind: Ints
    """By life its place in `kinds`."""
    passes: Flags
    """By life, whether it is of the chosen stream, pool and size class."""

    def bands(self, *, are_one: bool) -> Ints:
        """Bands of a picture: one of all, or one of each kind."""
        return np.where(self.passes, 0 if are_one else self.kind, HIDDEN)

    def bytes_at(self, moment: int) -> list[float]:
        """Bytes of each kind at a moment, of what passes."""
        lives = self.lives
        there = (lives.born <= moment) & (lives.gone > moment) & self.passes
        num_bytes = np.zeros(max(len(self.kinds), 1), np.int64)
        np.add.at(num_bytes, self.kind[there], lives.size[there])
        return [float(value) for value in num_bytes.tolist()]


def segment_lives(
    spans: Spans, stream: int | None, pool: int | None, is_large: bool | None
) -> SegmentLives:
    """All spans of a device; None: of any stream, pool or size class."""
    order = np.argsort(spans.opened, kind="stable")
    rows = spans.take(order, pool=np.maximum(spans.pool[order], 0))
    keys = np.stack([rows.pool, rows.is_large], axis=1).astype(np.int64)
    kinds, kind = np.unique(keys, axis=0, return_inverse=True)
    return SegmentLives(
        lives=Lifetimes(
            addr=rows.address,
            size=rows.size,
            stack=rows.stack,
            born=rows.opened,
            freed=rows.closed,
            gone=rows.closed,
            num_lost=spans.num_lost,
        ),
        row=order,
        kinds=[(pool_row, bool(large)) for pool_row, large in kinds.tolist()],
        kind=kind.reshape(-1),
        passes=passing(rows, stream, pool, is_large),
    )


def passing(
    rows: Spans | SegmentRows,
    stream: int | None,
    pool: int | None,
    is_large: bool | None,
) -> Flags:
    """By row, whether it is of a stream, a pool and a size class; None: of any."""
    keep = np.ones(len(rows), np.bool_)
    if stream is not None:
        keep &= rows.stream == stream
    if pool is not None:
        keep &= rows.pool == pool
    if is_large is not None:
        keep &= rows.is_large == is_large
    return keep
