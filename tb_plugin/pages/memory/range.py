"""The route of a range of events: what was allocated in it, and what became of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.allocator.groups import FOLDED
from tb_plugin.analysis.allocator.live import born_in, heaviest_groups, range_sums
from tb_plugin.api.allocations import AllocationRangeResponse
from tb_plugin.contract.wire import f64, i32, u8
from tb_plugin.pages.histories.asked import of_history
from tb_plugin.pages.memory.allocations import WindowQuery
from tb_plugin.pages.memory.moments import moment_words

if TYPE_CHECKING:
    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.jobs.open_history import OpenDevice, OpenHistory, Shown

MAX_STACKS: Final = 20_000


@of_history("allocation_range", WindowQuery)
def allocation_range(
    history: OpenHistory, query: WindowQuery
) -> AllocationRangeResponse:
    """What the events `e0` up to, without, `e1` allocated; all, where none are named.

    Raises:
        NotFoundError: the history has no such device, stream or pool.
    """
    device = history.device(query.device)
    shown = device.shown(query.stream, query.pool)
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
        stack=i32(stack[order]),
        stack_category=u8(
            heaviest_groups(
                lives, rows, stack[order], device.categories.of_life, len(FOLDED)
            )
        ),
        categories=FOLDED,  # type: ignore[arg-type]  # these words
        stack_allocated_bytes=f64(sums.allocated.num_bytes[order]),
        stack_num_allocated=i32(sums.allocated.num[order]),
        stack_freed_bytes=f64(sums.freed.num_bytes[order]),
        stack_num_freed=i32(sums.freed.num[order]),
        stack_live_bytes=f64(sums.live.num_bytes[order]),
        stack_num_live=i32(sums.live.num[order]),
    )


def _gone_earlier(device: OpenDevice, start: int, last: int) -> Ints:
    """Rows of what went in the range and was born before it."""
    lives = device.lives
    born = int(np.searchsorted(lives.born, start, "left"))
    gone = lives.gone[:born]
    return np.flatnonzero((gone >= start) & (gone <= last))


def _highest(shown: Shown, start: int, stop: int) -> tuple[int, int]:
    """The highest known bytes in a range, and where; before it, if it is empty."""
    if stop <= start:
        at = np.array([min(start, len(shown.level.after)) - 1])
        return int(shown.known_at(at)[0]), int(at[0])
    moment = start + int(np.argmax(shown.level.after[start:stop]))
    return int(shown.known_at(np.array([moment]))[0]), moment
