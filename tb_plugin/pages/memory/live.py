"""The routes of what lives: at a moment, over a range, in the columns of a tile; and stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.allocator.groups import FOLDED
from memboard.tb_plugin.analysis.allocator.live import (
    born_in,
    by_stack,
    heaviest_groups,
    holders,
    live_rows,
    live_totals,
    range_sums,
    summed,
)
from memboard.tb_plugin.analysis.allocator.moment.ledger import ledger
from memboard.tb_plugin.analysis.allocator.stacking import pending_bytes, seen
from memboard.tb_plugin.api.blocks import (
    AllocationCategory,
    AllocationHoldersResponse,
    AllocationLiveResponse,
    AllocationRangeResponse,
    StacksResponse,
)
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.contract.wire import f64, finite, i32, u8, u16
from memboard.tb_plugin.facts.histories.description import moment_of, moment_words
from memboard.tb_plugin.facts.histories.opening import (
    HistoryQuery,
    MomentQuery,
    of_device,
    of_history,
)
from memboard.tb_plugin.pages.memory.blocks import WindowQuery, columns_of, group_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.allocator.live import RangeSums
    from memboard.tb_plugin.analysis.allocator.selection import Selection
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.jobs.open_history import OpenDevice, OpenHistory

MAX_STACKS: Final = 20_000
MAX_LIVE_STACKS: Final = 4_000
"""Further ones are narrower than a pixel: they are summed up."""

MAX_HOLDERS: Final = 256
OTHERS: Final = -2
"""Stands for all other stacks in the column of stacks."""
MAX_LISTED: Final = 200_000
MAX_FRAMES: Final = 4_000_000
_MAX_TEXT: Final = 1000


@of_device("allocation_live", MomentQuery)
def allocation_live(
    device: OpenDevice, shown: Selection, query: MomentQuery
) -> AllocationLiveResponse:
    """What lives just after an event; at the peak, where none is asked for."""
    moment = moment_of(device, query.moment, shown.level.peak[1])
    lives = device.lives
    rows = shown.rows(live_rows(lives, moment))
    totals = live_totals(lives, rows, moment)
    categories = device.groups("category")
    num = len(categories.groups)
    sums = summed(lives, rows, categories.of_life, num)
    freed = rows[lives.freed[rows] <= moment]
    pending = summed(lives, freed, categories.of_life, num).num_bytes
    stacks = by_stack(lives, rows)
    is_all = shown.is_selected is None
    step, phase = device.step(moment)
    shown_stacks = stacks.stack[:MAX_LIVE_STACKS]
    capacity = device.history.capacity_of(device.number)
    return AllocationLiveResponse(
        device=device.number,
        moment=moment,
        time_ms=device.time_ms(moment),
        step=step,
        phase=phase,
        active_bytes=float(totals.active_bytes),
        allocated_bytes=float(totals.allocated_bytes),
        reserved_bytes=finite(shown.reserved(np.array([moment]))[0]),
        num_blocks=totals.num,
        categories=tuple(
            AllocationCategory(
                **group_fields(group, live_bytes),
                num_blocks=blocks,
                pending_bytes=float(waiting),
            )
            for group, live_bytes, blocks, waiting in zip(
                categories.groups,
                sums.num_bytes.tolist(),
                sums.num.tolist(),
                pending.tolist(),
                strict=True,
            )
        ),
        stack=i32(_cut(stacks.stack, [OTHERS])),
        stack_bytes=f64(_cut(stacks.num_bytes)),
        stack_blocks=i32(_cut(stacks.num)),
        stack_category=u8(
            heaviest_groups(lives, rows, shown_stacks, categories.of_life, num)
        ),
        ledger=ledger(
            device.replay, moment, None if capacity is None else int(capacity)
        )
        if is_all
        else None,
        pinned_host_bytes=device.history.pinned_bytes(device, moment),
    )


def _cut(values: Ints, rest: Sequence[int] | None = None) -> Ints:
    """Of the largest stacks, then that of all others."""
    first, others = values[:MAX_LIVE_STACKS], values[MAX_LIVE_STACKS:]
    return np.append(first, rest or others.sum()) if len(others) else first


@of_device("allocation_range", WindowQuery)
def allocation_range(
    device: OpenDevice, shown: Selection, query: WindowQuery
) -> AllocationRangeResponse:
    """What the events `e0` up to, without, `e1` allocated; all, where none are named."""
    num = device.num_events
    start = min(query.e0 or 0, num)
    stop = min(num if query.e1 is None else query.e1, num)
    last = stop - 1
    lives = device.lives
    rows = shown.rows(born_in(lives, start, last))
    # Rows of stacks among those that occur, so that few are summed however many exist.
    stack, place = np.unique(lives.stack[rows], return_inverse=True)
    group = np.full(len(lives), len(stack), np.int64)
    group[rows] = place.reshape(-1)
    sums = range_sums(lives, start, last, group, len(stack) + 1)
    order = np.lexsort((-sums.allocated.num_bytes[:-1], -sums.live.num_bytes[:-1]))
    order = order[:MAX_STACKS]
    earlier = shown.rows(_gone_earlier(device, start, last))
    highest, moment = _highest(shown, start, stop)
    category = heaviest_groups(
        lives, rows, stack[order], device.categories.of_life, len(FOLDED)
    )
    return AllocationRangeResponse(
        device=device.number,
        e0=start,
        e1=stop,
        first=moment_words(device, min(start, num - 1)),
        last=moment_words(device, last),
        allocated_bytes=float(sums.allocated.num_bytes[:-1].sum()),
        num_allocated=int(sums.allocated.num[:-1].sum()),
        freed_bytes=float(sums.freed.num_bytes[:-1].sum()),
        num_freed=int(sums.freed.num[:-1].sum()),
        live_bytes=float(sums.live.num_bytes[:-1].sum()),
        num_live=int(sums.live.num[:-1].sum()),
        earlier_freed_bytes=float(lives.size[earlier].sum()),
        num_earlier_freed=len(earlier),
        highest_bytes=float(highest),
        highest_moment=moment,
        table=_range_table(sums, order, stack[order], category),
    )


_RANGE: Final = (
    Column(
        "allocated_bytes",
        "Allocated",
        unit="bytes",
        help="Of all allocations of the range",
        bar="row",
    ),
    Column("num_allocated"),
    Column(
        "freed_bytes",
        "Freed",
        unit="bytes",
        help="Of those freed before its end",
        bar="row",
    ),
    Column("num_freed"),
    Column(
        "live_bytes",
        "Still live",
        unit="bytes",
        help="Of those that live at its end",
        bar="row",
    ),
    Column("num_live"),
    Column(
        "allocated_at",
        "Allocated at",
        unit="stack",
        help="The line of your own code in the stack; click to light its blocks",
        bar="row",
    ),
)


def _range_table(
    sums: RangeSums, order: Ints, stack: Ints, category: Ints
) -> TableRows:
    allocated = sums.allocated.num_bytes[order]
    longest = {"longest": float(allocated.max(initial=0))}
    bars = [column.key for column in _RANGE if column.unit == "bytes"]
    rows = table_of(
        _RANGE,
        {
            "allocated_bytes": allocated,
            "num_allocated": sums.allocated.num[order],
            "freed_bytes": sums.freed.num_bytes[order],
            "num_freed": sums.freed.num[order],
            "live_bytes": sums.live.num_bytes[order],
            "num_live": sums.live.num[order],
            "allocated_at": stack,
        },
        usual="live_bytes",
        more=dict.fromkeys(bars, longest),
        colours=tuple(FOLDED[row] for row in category.tolist()),
    )
    return titled(
        rows,
        "Allocations of the range by stack",
        empty="Nothing was allocated in this range.",
    )


def _gone_earlier(device: OpenDevice, start: int, last: int) -> Ints:
    """Rows of what went in the range and was born before it."""
    lives = device.lives
    born = int(np.searchsorted(lives.born, start, "left"))
    gone = lives.gone[:born]
    return np.flatnonzero((gone >= start) & (gone <= last))


def _highest(shown: Selection, start: int, stop: int) -> tuple[int, int]:
    """The highest active bytes in a range, and where; before it, if it is empty."""
    if stop <= start:
        moment = min(start, len(shown.level.after)) - 1
    else:
        moment = start + int(np.argmax(shown.level.after[start:stop]))
    return int(shown.level.at(np.array([moment]))[0]), moment


@of_device("allocation_holders", WindowQuery)
def allocation_holders(
    device: OpenDevice, shown: Selection, query: WindowQuery
) -> AllocationHoldersResponse:
    """Live bytes by stack at the columns of a tile, as changes."""
    events = columns_of(device, shown, query).at
    # Once for all sums below: of a long history most is in no column.
    rows = shown.rows(seen(device.lives, events).rows)
    lives = device.lives.take(rows)
    categories = device.groups("category")
    # Row 0 is for what has no stack, so that it has a slot like any other.
    top_holders = holders(
        lives,
        lives.stack + 1,
        len(device.history.snapshot.stacks) + 1,
        events,
        MAX_HOLDERS,
    )
    return AllocationHoldersResponse(
        device=device.number,
        moment=i32(events),
        stack=i32(np.append(top_holders.group - 1, OTHERS)),
        column=u16(top_holders.column),
        slot=u16(top_holders.slot),
        change=f64(top_holders.delta),
        category=u8(
            heaviest_groups(
                lives,
                np.arange(len(rows)),
                top_holders.group - 1,
                categories.of_life[rows],
                len(categories.groups),
            )
        ),
        allocated=f64(top_holders.total - pending_bytes(lives, events)),
    )


@of_history("stacks", HistoryQuery)
def stacks(history: OpenHistory, _query: HistoryQuery) -> StacksResponse:
    """All stacks, as far as they are not too many."""
    all_stacks = history.snapshot.stacks
    within = int(np.searchsorted(all_stacks.start, MAX_FRAMES, "right")) - 1
    num_stacks = max(0, min(len(all_stacks), MAX_LISTED, within))
    num_frames = int(all_stacks.start[num_stacks]) if len(all_stacks.start) else 0
    place: dict[str, int] = {}
    names = [place.setdefault(text[:_MAX_TEXT], len(place)) for text in all_stacks.name]
    files = [
        place.setdefault(text[:_MAX_TEXT], len(place)) for text in all_stacks.filename
    ]
    modules = history.modules
    labels = [place.setdefault(text[:_MAX_TEXT], len(place)) for text in modules.labels]
    of_label = np.array([*labels, -1], np.int64)  # the last: where none looks
    return StacksResponse(
        strings=tuple(place),
        name=i32(names),
        filename=i32(files),
        line=i32(all_stacks.line),
        kind=u8(all_stacks.kinds),
        start=i32(all_stacks.start[: num_stacks + 1]),
        frame=i32(all_stacks.frame[:num_frames]),
        user_frame=i32(all_stacks.user_frame[:num_stacks]),
        module=i32(of_label[modules.of_stack[:num_stacks]]),
        num_stacks=len(all_stacks),
    )
