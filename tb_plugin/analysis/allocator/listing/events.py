"""Events of the allocator, one after the other, with the allocations they begin or end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS, OOM, SNAPSHOT
from memboard.tb_plugin.analysis.allocator.live import versions
from memboard.tb_plugin.analysis.arrays import NOTHING, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.arrays import Floats, Ints

_WITHOUT_ADDRESS: Final = (OOM, SNAPSHOT)


@dataclass(frozen=True, slots=True, eq=False)
class EventRows(Table):
    """Some events of a device, in order; columns of equal length."""

    event: Ints
    action: Ints
    """Index in `ACTIONS`; their number: unknown."""
    address: Floats
    """NaN of events that have none."""
    version: Ints
    """Earlier allocations at the address; NOTHING where it is no allocation's event."""
    size: Ints
    stream: Ints
    stack: Ints
    life: Ints
    """The allocation that it begins or ends; NOTHING: none."""
    device_free: Floats
    """Of an out-of-memory error, where it is known."""
    time_us: Floats


class EventPage(NamedTuple):
    """A part of the events of a device."""

    rows: EventRows
    first: int
    """Place of the first one among those of the chosen actions."""
    num_rows: int
    """All events of these actions in the history."""
    row_of_moment: int
    """Place of the last one up to the moment; -1: none."""


def event_page(
    replay: Replay,
    actions: Sequence[str],
    first: int,
    count: int,
    moment: int,
) -> EventPage:
    """At most `count` events from place `first` on, of some actions.

    Args:
        replay: the device's.
        actions: names; `unknown` for those that have none. Empty: all.
        first: place among the events of these actions.
        count: events at most.
        moment: whose place is looked up.
    """
    events, num = replay.device.events, replay.num_events
    chosen = None if not actions else _rows_of(events.action, actions)
    if chosen is None:
        num_rows, last = num, min(moment, num - 1)
    else:
        num_rows = len(chosen)
        last = int(np.searchsorted(chosen, moment, "right")) - 1
    first = max(0, min(first, num_rows - 1))
    rows = np.arange(first, min(first + count, num_rows))
    if chosen is not None:
        rows = chosen[rows]
    action = events.action[rows].astype(np.int64)
    life = _lives_at(replay.lives, rows)
    version = np.full(len(rows), NOTHING)
    version[life >= 0] = versions(replay.lives, life[life >= 0])
    free = events.device_free[rows]
    address = events.addr[rows].astype(np.int64).view(np.uint64).astype(np.float64)
    times = np.full(len(rows), np.nan)
    if events.time_us is not None:
        times = events.time_us[rows].astype(np.float64)
    page_rows = EventRows(
        event=rows,
        action=np.where(action < 0, len(ACTIONS), action),
        address=np.where(np.isin(action, _WITHOUT_ADDRESS), np.nan, address),
        version=version,
        size=events.size[rows],
        stream=events.stream[rows],
        stack=events.stack[rows],
        life=life,
        device_free=np.where((action == OOM) & (free >= 0), free, np.nan),
        time_us=times,
    )
    return EventPage(page_rows, first, num_rows, last)


def _rows_of(action: Ints, names: Sequence[str]) -> Ints:
    codes = [
        ACTIONS.index(action) if action in ACTIONS else NOTHING for action in names
    ]
    return np.flatnonzero(np.isin(action, codes))


def _lives_at(lives: Lifetimes, rows: Ints) -> Ints:
    """By event: the allocation that it begins or ends."""
    life = np.full(len(rows), NOTHING, np.int64)
    if not len(rows):
        return life
    for column in (lives.gone, lives.freed, lives.born):
        near = np.flatnonzero((column >= rows[0]) & (column <= rows[-1]))
        place = np.searchsorted(rows, column[near])
        there = rows[place] == column[near]
        life[place[there]] = near[there]
    return life


def block_of(replay: Replay, life: int) -> tuple[int, bool]:
    """Bytes of the block of an allocation, and whether only those are known."""
    block = replay.block_sizes(np.array([life]))
    is_rounded = bool(block.is_recorded[0]) and int(replay.lives.born[life]) < 0
    return int(block.size[0]), is_rounded
