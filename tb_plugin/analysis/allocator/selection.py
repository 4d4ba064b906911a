"""Allocations of one stream, one pool or both, or all: what a picture is drawn of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import levels

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.analysis.allocator.lifetimes import Levels
    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints

HIDDEN: Final = -1
"""The band of what is not in a picture."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Some allocations of a device, and the levels that they make up."""

    is_selected: Flags | None
    """By life; None: all are."""
    level: Levels
    """Their active bytes after each event, of blocks as torch counts them."""
    reserved: Callable[[Ints], Floats]
    """Bytes reserved for them at moments; NaN: not to be told."""

    def rows(self, rows: Ints) -> Ints:
        """Those of some rows of lives that are selected."""
        return rows if self.is_selected is None else rows[self.is_selected[rows]]

    def bands(self, group: Ints) -> Ints:
        """Bands of a picture by a column over all lives: `HIDDEN` what is not selected."""
        if self.is_selected is None:
            return group
        return np.where(self.is_selected, group.astype(np.int32), HIDDEN)

    def reserved_at(self, moment: int) -> float:
        """Bytes reserved for them at one moment; NaN: not to be told."""
        return float(self.reserved(np.array([moment]))[0])

    def highest_in(self, start: int, stop: int) -> tuple[int, int]:
        """The highest active bytes in a range, and where; before it, if it is empty."""
        moment = min(start, len(self.level.after)) - 1
        if stop > start:
            moment = start + int(np.argmax(self.level.after[start:stop]))
        return int(self.level.at(np.array([moment]))[0]), moment


def everything(replay: Replay) -> Selection:
    """All allocations of a device."""
    reserved = replay.reserved.levels
    return Selection(
        None,
        replay.active,
        lambda moments: reserved.at(moments).astype(np.float64),
    )


def selected(replay: Replay, stream: int | None, pool: int | None) -> Selection:
    """Those of a stream and a pool, rows of the snapshot's; None: of any."""
    is_selected = np.ones(len(replay.lives), np.bool_)
    if stream is not None:
        is_selected &= replay.stream == stream
    if pool is not None:
        is_selected &= replay.pool == pool
    rows = np.flatnonzero(is_selected)
    lives, num_bytes = replay.lives.take(rows), replay.block_sizes(rows).size
    level = levels(lives, num_bytes, replay.num_events, active=True)
    return Selection(is_selected, level, _reserved_for(replay, stream, pool))


def _reserved_for(
    replay: Replay, stream: int | None, pool: int | None
) -> Callable[[Ints], Floats]:
    """Segments are of a pool, and of a stream: what both have of them nobody knows."""
    if stream is not None and pool is not None:
        return lambda moments: np.full(len(moments), np.nan)
    if pool is not None:
        changes, row = replay.reserved_by_pool(), pool
    else:
        changes, row = replay.reserved_by_stream(), stream or 0
    events, after = changes.levels(row)
    steps = np.concatenate([changes.first[row : row + 1], after])

    def at(moments: Ints) -> Floats:
        place = np.searchsorted(events, moments, "right")
        return np.asarray(steps[place], np.float64)

    return at
