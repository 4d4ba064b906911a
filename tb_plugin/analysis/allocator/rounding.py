"""Sizes that torch's caching allocator gives to requests, and when it splits a block.

The rules are those that torch documents for `PYTORCH_CUDA_ALLOC_CONF` and states in
`c10/core/CachingDeviceAllocator.h`: a request becomes a multiple of 512 bytes, or with
`roundup_power2_divisions` the next of so many equal steps between two powers of two.
Blocks of up to 1 MiB are of the small pool. What is left of a free block after a request
stays free, except in the large pool where it is at most 1 MiB, or where the request is
of `max_split_size` or more: then the request has the whole block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.snapshots.snapshot import INACTIVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot


MIB: Final = 1 << 20

MIN_BLOCK_BYTES: Final = 512
SMALL_BYTES: Final = MIB
"""The largest block of the small pool; the largest rest in the large one that is not
split off."""
SMALL_SEGMENT_BYTES: Final = 2 * MIB
LARGE_SEGMENT_BYTES: Final = 20 * MIB
OWN_SEGMENT_BYTES: Final = 10 * MIB
"""Requests from here on get a segment of their own size, rounded up to 2 MiB."""
MAX_NON_SPLIT_REST_BYTES: Final = 20 * MIB
"""A block of `max_split_size` or more may exceed its request by less than this; torch
does not record when it is set to something else."""

_FIRST_INTERVAL_LOG2: Final = 20
_NUM_INTERVALS: Final = 16
"""Of `roundup_power2_divisions`: from 1 MiB on, by powers of two."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """How an allocator was configured, as far as it changes sizes."""

    divisions: tuple[int, ...] = (0,) * _NUM_INTERVALS
    max_split_bytes: int | None = None
    """None: every block may be split."""
    expandable: bool = False
    is_known: bool = False
    """Whether the snapshot says it; else torch's defaults are assumed."""

    def sizes(self, requested: Ints) -> Ints:
        """The size of the block that each request gets, before what is not split off."""
        wanted = np.maximum(requested, 1).astype(np.int64)
        # A power of two: of millions of requests four times as fast as by division.
        plain: Ints = (wanted + MIN_BLOCK_BYTES - 1) & -MIN_BLOCK_BYTES
        if max(self.divisions) <= 1:
            return plain
        # frexp's exponent is one more than the position of the highest bit.
        log2 = np.frexp(wanted.astype(np.float64))[1].astype(np.int64) - 1
        interval = np.clip(log2 - _FIRST_INTERVAL_LOG2, 0, _NUM_INTERVALS - 1)
        divisions = np.maximum(np.array(self.divisions, np.int64)[interval], 1)
        step = np.maximum((np.int64(1) << log2) // divisions, 1)
        stepped = -(-wanted // step) * step
        is_stepped = (divisions > 1) & (wanted > MIN_BLOCK_BYTES * divisions)
        return np.where(is_stepped, stepped, plain)

    def size(self, requested: int) -> int:
        """The size of the block that a request gets."""
        return int(self.sizes(np.array([requested]))[0])

    def segment_size(self, size: int) -> int:
        """What is reserved for a block that no free one can serve."""
        if size <= SMALL_BYTES:
            return SMALL_SEGMENT_BYTES
        if size < OWN_SEGMENT_BYTES or self.expandable:
            return -(-size // LARGE_SEGMENT_BYTES) * LARGE_SEGMENT_BYTES
        return -(-size // SMALL_SEGMENT_BYTES) * SMALL_SEGMENT_BYTES

    def has_whole(self, size: Ints) -> npt.NDArray[np.bool_]:
        """Whether blocks of these sizes are never split for being too large."""
        if self.max_split_bytes is None:
            return np.zeros(len(size), np.bool_)
        return size >= self.max_split_bytes

    def lends(self, block_bytes: Ints, size: int) -> npt.NDArray[np.bool_]:
        """Whether free blocks of a request's pool and stream may serve it."""
        fits: npt.NDArray[np.bool_] = block_bytes >= size
        limit = self.max_split_bytes
        if limit is None:
            return fits
        if size < limit:
            return fits & (block_bytes < limit)
        return fits & (block_bytes < size + MAX_NON_SPLIT_REST_BYTES)


def rounding_of(settings: Mapping[str, Any]) -> Rounding:
    """The rules under `allocator_settings`; torch's defaults for what they do not say."""
    limit = settings.get("max_split_size")
    divisions_by_size = settings.get("roundup_power2_divisions")
    divisions = [0] * _NUM_INTERVALS
    for key, value in (
        divisions_by_size.items() if isinstance(divisions_by_size, dict) else ()
    ):
        place = _interval(key)
        if place is not None and _is_count(value) and value & (value - 1) == 0:
            divisions[place] = int(value)
    return Rounding(
        divisions=tuple(divisions),
        max_split_bytes=limit if isinstance(limit, int) and limit > 0 else None,
        expandable=settings.get("expandable_segments") is True,
        is_known=bool(settings),
    )


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """Of some allocations: the blocks that they are in."""

    size: Ints
    """Bytes, as recorded at the end, else as the allocator rounds the request; what was
    not split off behind it is only in a recorded one."""
    requested: Ints
    is_recorded: Flags
    """Whether the block lives at the end, and the snapshot shows it."""


def block_sizes(
    device: DeviceSnapshot, lives: Lifetimes, rounding: Rounding
) -> BlockSizes:
    """The blocks of all or some allocations of a device.

    Of pinned host memory events write the sizes of blocks: there nothing is rounded.
    """
    blocks = device.blocks.take(np.flatnonzero(device.blocks.state != INACTIVE))
    is_open = np.flatnonzero(lives.gone == len(device.events))
    row = device.active_blocks().rows_at(lives.addr[is_open])
    is_shown = row != NOTHING
    recorded, row = is_open[is_shown], row[is_shown]
    requested = lives.size.astype(np.int64)
    requested[recorded] = blocks.requested_size[row]
    size = requested.copy() if device.is_host else rounding.sizes(requested)
    size[recorded] = blocks.size[row]
    is_recorded = np.zeros(len(lives), np.bool_)
    is_recorded[recorded] = True
    return BlockSizes(size, requested, is_recorded)


def _interval(key: Any) -> int | None:
    """Of `"64"`, the megabytes at which an interval begins."""
    if not (isinstance(key, str) and key.isdecimal() and len(key) < 6):
        return None
    place = int(key).bit_length() - 1
    return place if 0 <= place < _NUM_INTERVALS and int(key) == 1 << place else None


def _is_count(value: Any) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and 0 <= value < 1 << 48
