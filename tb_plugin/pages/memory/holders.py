"""The route of holders: what each stack holds in every column of a tile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.allocator.groups import FOLDED
from tb_plugin.analysis.allocator.holders import holders
from tb_plugin.analysis.allocator.stacking import band_bytes, pending_bytes, seen
from tb_plugin.api.allocations import AllocationHoldersResponse
from tb_plugin.contract.wire import f64, i32, u16
from tb_plugin.pages.histories.asked import of_history
from tb_plugin.pages.memory.allocations import WindowQuery, columns_of

if TYPE_CHECKING:
    from tb_plugin.jobs.open_history import OpenHistory

MAX_STACKS: Final = 256
OTHERS: Final = -2
"""Stands for all other stacks in the column of stacks."""


@of_history("allocation_holders", WindowQuery)
def allocation_holders(
    history: OpenHistory, query: WindowQuery
) -> AllocationHoldersResponse:
    """Live bytes by stack at the columns of a tile, as changes.

    Raises:
        NotFoundError: the history has no such device, stream or pool.
    """
    device = history.device(query.device)
    shown = device.shown(query.stream, query.pool)
    at = columns_of(device, shown, query).at
    lives = device.lives
    # Once for all sums below: of a long history most is in no column.
    rows = shown.rows(seen(lives, at).rows)
    lives = lives.take(rows)
    # Row 0 is for what has no stack, so that it has a slot like any other.
    held = holders(
        lives, lives.stack + 1, len(history.snapshot.stacks) + 1, at, MAX_STACKS
    )
    category = device.categories.of_life[rows]
    by_category = band_bytes(lives, category, len(FOLDED), at)
    occurring = np.unique(lives.stack)
    return AllocationHoldersResponse(
        device=device.number,
        moment=i32(at),
        stack=i32(np.append(held.group - 1, OTHERS)),
        column=u16(held.column),
        slot=u16(held.slot),
        change=f64(held.delta),
        num_others=len(occurring) - len(held.group),
        categories=FOLDED,  # type: ignore[arg-type]  # these words
        category_bytes=f64(by_category),
        allocated=f64(held.total - pending_bytes(lives, at)),
    )
