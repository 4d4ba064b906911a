"""The route of allocator events: a piece of the history as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, get_args

import numpy as np

from tb_plugin.analysis.allocator.lifetimes import ACTIONS, ANNOTATE, OOM, SNAPSHOT
from tb_plugin.analysis.allocator.versions import versions
from tb_plugin.analysis.snapshots.snapshot import NOTHING
from tb_plugin.api.segments import AllocatorAction, AllocatorEventsResponse
from tb_plugin.contract.wire import f64, i32, u8
from tb_plugin.pages.histories.asked import HistoryQuery, of_history
from tb_plugin.server.parameters import Moment, Whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.jobs.open_history import OpenDevice, OpenHistory

DEFAULT_COUNT: Final = 200
MAX_COUNT: Final = 2_000

WORDS: Final = (*ACTIONS, "unknown")
_WITHOUT_ADDRESS: Final = (OOM, SNAPSHOT, ANNOTATE)
_US_PER_MS: Final = 1e3


class Actions(tuple[str, ...]):
    """Some actions of the allocator; of none at all every one is meant."""

    __slots__ = ()

    EXPECTED: ClassVar = "some of " + ", ".join(get_args(AllocatorAction))

    @classmethod
    def parse(cls, text: str) -> Actions:
        """Names with commas between them.

        Raises:
            ValueError: one of them is no action.
        """
        found = cls(filter(None, text.split(",")))
        if not set(found) <= set(get_args(AllocatorAction)):
            raise ValueError(f"not {cls.EXPECTED}")
        return found


class EventsQuery(HistoryQuery, frozen=True):
    """Events of a device: `count` rows from row `e0`, and around a moment."""

    device: Whole | None = None
    moment: Moment | None = None
    e0: Whole | None = None
    count: Whole | None = None
    actions: Actions = Actions()


@of_history("allocator_events", EventsQuery)
def allocator_events(
    history: OpenHistory, query: EventsQuery
) -> AllocatorEventsResponse:
    """Events of a device, one after the other.

    Raises:
        NotFoundError: the history has no such device.
    """
    device = history.device(query.device)
    events, num = device.replay.device.events, device.num_events
    count = min(query.count or DEFAULT_COUNT, MAX_COUNT)
    moment = num - 1 if query.moment is None else query.moment
    if query.actions:
        known = _rows_of(events.action, query.actions)
        num_rows, last = len(known), int(np.searchsorted(known, moment, "right")) - 1
    else:
        known, num_rows, last = None, num, min(moment, num - 1)
    first = max(0, min(query.e0 or 0, num_rows - 1))
    rows = np.arange(first, min(first + count, num_rows))
    if known is not None:
        rows = known[rows]
    action = events.action[rows].astype(np.int64)
    life = _lives(device, rows)
    version = np.full(len(rows), NOTHING)
    version[life >= 0] = versions(device.lives, life[life >= 0])
    is_oom = action == OOM
    free = events.device_free[rows]
    no_address = np.isin(action, _WITHOUT_ADDRESS)
    address = events.addr[rows].astype(np.int64).view(np.uint64).astype(np.float64)
    times = np.full(len(rows), np.nan)
    if events.time_us is not None:
        times = events.time_us[rows] / _US_PER_MS
    return AllocatorEventsResponse(
        device=device.number,
        e0=first,
        num_events=num,
        num_rows=num_rows,
        row_of_moment=last,
        event=i32(rows),
        actions=WORDS,
        action=u8(np.where(action < 0, len(ACTIONS), action)),
        address=f64(np.where(no_address, np.nan, address)),
        version=i32(version),
        bytes=f64(events.size[rows]),
        stream=i32(events.stream[rows]),
        stack=i32(events.stack[rows]),
        life=i32(life),
        active=f64(device.active.at(rows)),
        reserved=f64(device.reserved.at(rows)),
        device_free=f64(np.where(is_oom & (free >= 0), free, np.nan)),
        time_ms=f64(times),
    )


def _rows_of(action: Ints, words: Sequence[str]) -> Ints:
    """Events of these actions; those that have no name here are `unknown`."""
    codes = [ACTIONS.index(word) if word in ACTIONS else NOTHING for word in words]
    return np.flatnonzero(np.isin(action, codes))


def _lives(device: OpenDevice, rows: Ints) -> Ints:
    """By event: the allocation that it begins or ends; NOTHING: none."""
    lives = device.lives
    found = np.full(len(rows), NOTHING, np.int64)
    if not len(rows):
        return found
    for column in (lives.gone, lives.freed, lives.born):
        near = np.flatnonzero((column >= rows[0]) & (column <= rows[-1]))
        place = np.searchsorted(rows, column[near])
        there = rows[place] == column[near]
        found[place[there]] = near[there]
    return found
