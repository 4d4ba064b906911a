"""Where a device's memory is at a moment: entries that add up to what is used.

    device used = live + rounding + pending_free + inactive_split + free_segments
                  + private_pools + non_torch + residual

All up to `private_pools` add up to reserved bytes exactly. `non_torch` is what no
allocator knows of: CUDA contexts, communication libraries, other processes. Measured on
its own, it leaves a residual; otherwise it is what the device's own figures leave for it.
What is not known is None, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.allocator.free_blocks import is_private
from tb_plugin.analysis.arrays import NOTHING
from tb_plugin.analysis.snapshots.snapshot import ALLOCATED, INACTIVE, PENDING_FREE

if TYPE_CHECKING:
    from tb_plugin.analysis.allocator.replay import Replay
    from tb_plugin.analysis.allocator.segments import SegmentState

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

KEYS: Final = (*RESERVED_KEYS, "non_torch")

NO_TOTAL: Final = "the size of the device was not recorded"
NO_FREE: Final = "what the device had free was not recorded at this moment"
LEFT_OVER: Final = "what the device's figures leave; not measured on its own"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One part of what is used."""

    key: str
    num_bytes: int | None
    caveat: str
    """Why it is not known, or what to know of it; empty: nothing."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where a device's memory is at a moment."""

    moment: int
    entries: tuple[LedgerEntry, ...]
    """By `KEYS`, in this order."""
    reserved_bytes: int
    device_total_bytes: int | None
    device_used_bytes: int | None
    residual_bytes: int | None
    """What is used and in no entry; None where it cannot be told."""


def ledger(
    replay: Replay,
    moment: int,
    *,
    device_total: int | None = None,
    device_free: int | None = None,
    outside: int | None = None,
) -> Ledger:
    """The ledger of a device just after an event.

    Args:
        replay: of the device.
        moment: the event.
        device_total: size of the device.
        device_free: what it had free then; of an oom event the event itself says it.
        outside: what was measured to be used by all but the allocator.
    """
    state = replay.at(moment)
    if device_free is None and moment >= 0:
        told = int(replay.device.events.device_free[moment])
        device_free = None if told == NOTHING else told
    entries = _reserved_entries(state)
    reserved = state.reserved_bytes
    used = residual = non_torch = None
    caveat = NO_TOTAL if device_total is None else NO_FREE
    if device_total is not None and device_free is not None:
        used, caveat = device_total - device_free, LEFT_OVER
        non_torch = used - reserved
        if non_torch < 0:
            caveat = "the device's figures and the allocator's contradict each other"
    if outside is not None:
        non_torch, caveat = outside, ""
        residual = None if used is None else used - reserved - outside
    entries.append(LedgerEntry("non_torch", non_torch, caveat))
    return Ledger(moment, tuple(entries), reserved, device_total, used, residual)


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
        LedgerEntry(key, num_bytes[key], caveats.get(key, "")) for key in RESERVED_KEYS
    ]


def _caveats(state: SegmentState) -> dict[str, str]:
    found = {}
    missing = state.oddities.get("live blocks in no segment", 0)
    if missing:
        found["live"] = f"{missing} live blocks lie in no known segment: not counted"
    assumed = state.oddities.get("rests of blocks from before that are not known", 0)
    if assumed:
        found["rounding"] = (
            f"of {assumed} blocks from before the recording up to 1 MiB each may be"
            " counted as free"
        )
    unknown = int(np.count_nonzero(state.segments.pool == NOTHING))
    if unknown:
        found["private_pools"] = (
            f"the pool of {unknown} segment{'s' * (unknown != 1)} was not recorded:"
            " counted as not private"
        )
    return found
