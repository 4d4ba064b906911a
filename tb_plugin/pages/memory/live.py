"""The routes of what lives: at a moment, over a range, in the columns of a tile; and stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.allocator.groups import FOLDED
from memboard.tb_plugin.analysis.allocator.live import (
    born_in,
    by_stack,
    gone_in,
    heaviest_groups,
    live_rows,
    live_totals,
    range_by_stack,
    stack_holders,
    summed,
)
from memboard.tb_plugin.analysis.allocator.moment.ledger import ledger
from memboard.tb_plugin.analysis.allocator.stacking import pending_bytes, seen
from memboard.tb_plugin.api.base import f64, i32, u8, u16
from memboard.tb_plugin.api.memory.blocks import (
    AllocationCategory,
    AllocationHoldersResponse,
    AllocationLiveResponse,
    AllocationRangeResponse,
    StacksResponse,
)
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.histories.description import moment_of, moment_words
from memboard.tb_plugin.facts.histories.opening import HistoryQuery, MomentQuery
from memboard.tb_plugin.pages.memory.blocks import WindowQuery, columns_of, group_fields
from memboard.tb_plugin.server.views.history import of_device, of_history

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.live import RangeStacks
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
    """What lives just after an event; at the peak, where the query names none."""
    moment = moment_of(device, query.moment, shown.level.peak[1])
    lives = device.lives
    rows = shown.rows(live_rows(lives, moment))
    totals = live_totals(lives, rows, moment)
    categories = device.groups("category")
    num = len(categories.groups)
    sums = summed(lives, rows, categories.of_life, num)
    freed = rows[lives.freed[rows] <= moment]
    pending = summed(lives, freed, categories.of_life, num).num_bytes
    by_site = by_stack(lives, rows)
    listed = by_site.cut(MAX_LIVE_STACKS, OTHERS)
    is_all = shown.is_selected is None
    step, phase = device.step(moment)
    capacity = device.history.capacity_of(device.number)
    return AllocationLiveResponse(
        device=device.number,
        moment=moment,
        time_ms=device.time_ms(moment),
        step=step,
        phase=phase,
        active_bytes=float(totals.active_bytes),
        allocated_bytes=float(totals.allocated_bytes),
        reserved_bytes=finite(shown.reserved_at(moment)),
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
        stack=i32(listed.stack),
        stack_bytes=f64(listed.num_bytes),
        stack_blocks=i32(listed.num),
        stack_category=u8(
            heaviest_groups(
                lives,
                rows,
                by_site.stack[:MAX_LIVE_STACKS],
                categories.of_life,
                num,
            )
        ),
        ledger=ledger(
            device.replay, moment, None if capacity is None else int(capacity)
        )
        if is_all
        else None,
        pinned_host_bytes=device.history.pinned_bytes(device, moment),
    )


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
    by_stack = range_by_stack(lives, rows, start, last)
    allocated, freed, live = (
        by_stack.sums.allocated,
        by_stack.sums.freed,
        by_stack.sums.live,
    )
    earlier = shown.rows(gone_in(lives, start, last))
    highest, moment = shown.highest_in(start, stop)
    category = heaviest_groups(
        lives,
        rows,
        by_stack.stack[:MAX_STACKS],
        device.categories.of_life,
        len(FOLDED),
    )
    return AllocationRangeResponse(
        device=device.number,
        e0=start,
        e1=stop,
        first=moment_words(device, min(start, num - 1)),
        last=moment_words(device, last),
        allocated_bytes=float(allocated.num_bytes.sum()),
        num_allocated=int(allocated.num.sum()),
        freed_bytes=float(freed.num_bytes.sum()),
        num_freed=int(freed.num.sum()),
        live_bytes=float(live.num_bytes.sum()),
        num_live=int(live.num.sum()),
        earlier_freed_bytes=float(lives.size[earlier].sum()),
        num_earlier_freed=len(earlier),
        highest_bytes=float(highest),
        highest_moment=moment,
        table=_range_table(by_stack, category),
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


def _range_table(by_stack: RangeStacks, category: Ints) -> TableRows:
    """The first stacks; `category` by stack, as its place in `FOLDED`."""
    sums = by_stack.sums
    allocated = sums.allocated.num_bytes[:MAX_STACKS]
    longest = {"longest": float(allocated.max(initial=0))}
    bars = [column.key for column in _RANGE if column.unit == "bytes"]
    rows = table_of(
        _RANGE,
        {
            "allocated_bytes": allocated,
            "num_allocated": sums.allocated.num[:MAX_STACKS],
            "freed_bytes": sums.freed.num_bytes[:MAX_STACKS],
            "num_freed": sums.freed.num[:MAX_STACKS],
            "live_bytes": sums.live.num_bytes[:MAX_STACKS],
            "num_live": sums.live.num[:MAX_STACKS],
            "allocated_at": by_stack.stack[:MAX_STACKS],
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
    top_holders = stack_holders(
        lives, len(device.history.snapshot.stacks), events, MAX_HOLDERS
    )
    return AllocationHoldersResponse(
        device=device.number,
        moment=i32(events),
        stack=i32([*top_holders.group.tolist(), OTHERS]),
        column=u16(top_holders.column),
        slot=u16(top_holders.slot),
        change=f64(top_holders.delta),
        category=u8(
            heaviest_groups(
                lives,
                None,
                top_holders.group,
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
    num_stacks = max(
        0, min(len(all_stacks), MAX_LISTED, all_stacks.num_within(MAX_FRAMES))
    )
    num_frames = int(all_stacks.start[num_stacks]) if len(all_stacks.start) else 0
    place: dict[str, int] = {}
    names = [place.setdefault(text[:_MAX_TEXT], len(place)) for text in all_stacks.name]
    files = [
        place.setdefault(text[:_MAX_TEXT], len(place)) for text in all_stacks.filename
    ]
    modules = history.modules
    labels = [place.setdefault(text[:_MAX_TEXT], len(place)) for text in modules.labels]
    labels.append(-1)  # the last: where none looks
    return StacksResponse(
        strings=tuple(place),
        name=i32(names),
        filename=i32(files),
        line=i32(all_stacks.line),
        kind=u8(all_stacks.kinds),
        start=i32(all_stacks.start[: num_stacks + 1]),
        frame=i32(all_stacks.frame[:num_frames]),
        user_frame=i32(all_stacks.user_frame[:num_stacks]),
        module=i32([labels[row] for row in modules.of_stack[:num_stacks].tolist()]),
        num_stacks=len(all_stacks),
    )
