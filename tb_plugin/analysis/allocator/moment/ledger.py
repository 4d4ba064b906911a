"""Ledger of a device's memory at a moment: entries that add up to the used memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.allocator.moment.arenas import is_private
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.snapshots.snapshot import (
    ALLOCATED,
    INACTIVE,
    PENDING_FREE,
)
from memboard.tb_plugin.api.memory.blocks import AllocationLedger, LedgerEntry

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.allocator.segments import SegmentState


RESERVED_KEYS: Final = (
    "live",
    "rounding",
    "pending_free",
    "inactive_split",
    "free_segments",
    "private_pools",
)
"""Entries that add up to reserved bytes: requests that live, what rounding adds to them,
blocks that wait for another stream, free blocks beside live ones, segments without any,
and free memory that only private pools may use."""

NO_TOTAL: Final = "the size of the device was not recorded"
NO_FREE: Final = "the device's free memory was not recorded at this moment"
LEFT_OVER: Final = "the remainder of the device's figures; not measured by itself"


def ledger(
    replay: Replay, moment: int, device_total: int | None = None
) -> AllocationLedger:
    """Where a device's memory is just after an event: entries that add up to what is used.

        device used = live + rounding + pending_free + inactive_split + free_segments
                      + private_pools + non_torch

    All up to `private_pools` add up to reserved bytes exactly. `non_torch` is what no
    allocator knows of: CUDA contexts, communication libraries, other processes; it is what
    the device's own figures leave for it. What is not known is None, and says why.

    Args:
        replay: of the device.
        moment: the event; one of running out of memory says what the device had free.
        device_total: size of the device.
    """
    state = replay.at(moment)
    free = int(replay.device.events.device_free[moment]) if moment >= 0 else NOTHING
    entries = _reserved_entries(state)
    reserved = state.reserved_bytes
    used = non_torch = None
    caveat = NO_TOTAL if device_total is None else NO_FREE
    if device_total is not None and free != NOTHING:
        used, caveat = device_total - free, LEFT_OVER
        non_torch = used - reserved
        if non_torch < 0:
            caveat = "the device's figures and the allocator's contradict each other"
    if not replay.device.is_host:
        entries.append(LedgerEntry("non_torch", _float(non_torch), caveat))
    return AllocationLedger(tuple(entries), float(reserved), _float(used))


def _reserved_entries(state: SegmentState) -> list[LedgerEntry]:
    segments, blocks = state.segments, state.blocks
    live = blocks.state == ALLOCATED
    free = blocks.state == INACTIVE
    private = is_private(segments.pool)[blocks.segment]
    is_whole = segments.num_active[blocks.segment] == 0
    requested = int(blocks.requested_size[live].sum())
    num_bytes = {
        "live": requested,
        "rounding": int(blocks.size[live].sum()) - requested,
        "pending_free": int(blocks.size[blocks.state == PENDING_FREE].sum()),
        "inactive_split": int(blocks.size[free & ~is_whole & ~private].sum()),
        "free_segments": int(blocks.size[free & is_whole & ~private].sum()),
        "private_pools": int(blocks.size[free & private].sum()),
    }
    caveats = _caveats(state)
    return [
        LedgerEntry(key, float(num_bytes[key]), caveats.get(key, ""))
        for key in RESERVED_KEYS
    ]


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _caveats(state: SegmentState) -> dict[str, str]:
    caveats = {}
    missing = state.oddities.get("live blocks in no segment", 0)
    if missing:
        caveats["live"] = (
            f"not counted: {counted(missing, 'live block')} in no known segment"
        )
    assumed = state.oddities.get(
        "remainders of unknown blocks from before the recording", 0
    )
    if assumed:
        caveats["rounding"] = (
            f"of {counted(assumed, 'block')} from before the recording up to 1 MiB each may"
            " be counted as free"
        )
    unknown = int(np.count_nonzero(state.segments.pool == NOTHING))
    if unknown:
        caveats["private_pools"] = (
            f"the pool of {counted(unknown, 'segment')} was not recorded: counted as not"
            " private"
        )
    return caveats
