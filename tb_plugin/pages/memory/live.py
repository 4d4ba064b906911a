"""The route of what lives at one moment, exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.allocator.groups import FOLDED
from tb_plugin.analysis.allocator.ledger import ledger
from tb_plugin.analysis.allocator.live import (
    by_stack,
    heaviest_groups,
    largest,
    live_rows,
    live_totals,
    summed,
)
from tb_plugin.api.allocations import (
    AllocationCategory,
    AllocationLedger,
    AllocationLiveResponse,
    LedgerEntry,
)
from tb_plugin.contract.wire import f64, i32, u8
from tb_plugin.pages.histories.asked import MomentQuery, of_history
from tb_plugin.pages.memory.allocations import lives_of
from tb_plugin.pages.memory.moments import moment_of

if TYPE_CHECKING:
    from tb_plugin.jobs.open_history import OpenDevice, OpenHistory

MAX_STACKS: Final = 20_000
MAX_LARGEST: Final = 100


@of_history("allocation_live", MomentQuery)
def allocation_live(history: OpenHistory, query: MomentQuery) -> AllocationLiveResponse:
    """What lives just after an event; at the peak, where none is asked for.

    Raises:
        NotFoundError: the history has no such device, stream or pool.
    """
    device = history.device(query.device)
    shown = device.shown(query.stream, query.pool)
    moment = moment_of(device, query.moment, shown.level.peak[1])
    lives = device.lives
    rows = shown.rows(live_rows(lives, moment))
    totals = live_totals(lives, rows, moment)
    categories = device.categories
    sums = summed(lives, rows, categories.of_life, len(FOLDED))
    stacks = by_stack(lives, rows)
    is_all = shown.lives is None
    step, phase = device.step(moment)
    shown_stacks = stacks.stack[:MAX_STACKS]
    return AllocationLiveResponse(
        device=device.number,
        moment=moment,
        time_ms=device.time_ms(moment),
        step=step,
        phase=phase,
        active_bytes=float(totals.active_bytes),
        allocated_bytes=float(totals.allocated_bytes),
        reserved_bytes=_or_none(shown.reserved(np.array([moment]))[0]),
        num_blocks=totals.num,
        categories=tuple(
            AllocationCategory(
                category=name,  # type: ignore[arg-type]  # one of these words
                bytes=float(sums.num_bytes[at]),
                num_blocks=int(sums.num[at]),
            )
            for at, name in enumerate(FOLDED)
        ),
        stack=i32(shown_stacks),
        stack_bytes=f64(stacks.num_bytes[:MAX_STACKS]),
        stack_blocks=i32(stacks.num[:MAX_STACKS]),
        stack_category=u8(
            heaviest_groups(lives, rows, shown_stacks, categories.of_life, len(FOLDED))
        ),
        largest=lives_of(
            device, largest(lives, rows, MAX_LARGEST), categories, categories
        ),
        ledger=_ledger(device, moment) if is_all else None,
    )


def _ledger(device: OpenDevice, moment: int) -> AllocationLedger:
    capacity = device.history.capacity_of(device.number)
    found = ledger(
        device.replay,
        moment,
        device_total=None if capacity is None else int(capacity),
    )
    return AllocationLedger(
        entries=tuple(
            LedgerEntry(
                key=entry.key,
                bytes=None if entry.num_bytes is None else float(entry.num_bytes),
                caveat=entry.caveat,
            )
            for entry in found.entries
        ),
        reserved_bytes=float(found.reserved_bytes),
        device_used_bytes=_float_or_none(found.device_used_bytes),
        residual_bytes=_float_or_none(found.residual_bytes),
    )


def _float_or_none(value: int | None) -> float | None:
    return None if value is None else float(value)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
