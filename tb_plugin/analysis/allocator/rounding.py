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

from memboard.tb_plugin.analysis.allocator.lifetimes import BEFORE, by_address
from memboard.tb_plugin.analysis.allocator.segment_spans import SpanIndex
from memboard.tb_plugin.analysis.arrays import NOTHING, Table, picked, places_in
from memboard.tb_plugin.analysis.snapshots.snapshot import INACTIVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.allocator.segment_spans import Spans
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

MAX_LOOKUPS: Final = 20_000_000
"""Addresses looked at behind blocks of a history; real ones need a few per block."""

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
class Rests(Table):
    """What was not split off behind blocks: only allocations that have, or may have, any."""

    life: Ints  # Rows of `Lifetimes`, ascending
    num_bytes: Ints
    """NOTHING: of a block from before the recording nothing shows whether there is one."""

    def of(self, rows: Ints) -> Ints:
        """By allocation: bytes; 0 where there are none, NOTHING where it is unknown."""
        return picked(self.num_bytes, places_in(self.life, rows), 0)


NO_RESTS: Final = Rests(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """Of some allocations: the blocks that they are in."""

    size: Ints
    """Bytes, as recorded at the end, else as the allocator rounds the request, with what
    it did not split off behind it."""
    requested: Ints
    is_recorded: Flags
    """Whether the block lives at the end, and the snapshot shows it."""
    is_unsure: Flags
    """Whether something may not have been split off, and nothing shows it."""


def block_sizes(
    device: DeviceSnapshot, lives: Lifetimes, rounding: Rounding, rest: Ints
) -> BlockSizes:
    """The blocks of all or some allocations of a device, and the `rest` behind each.

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
    size += np.maximum(rest, 0)
    size[recorded] = blocks.size[row]
    is_recorded = np.zeros(len(lives), np.bool_)
    is_recorded[recorded] = True
    return BlockSizes(size, requested, is_recorded, (rest < 0) & ~is_recorded)


def rests(
    device: DeviceSnapshot, lives: Lifetimes, spans: Spans, rounding: Rounding
) -> Rests:
    """What the allocator did not split off behind each block.

    A block of the large pool reaches to what lives next behind it, or to its segment's
    end, where that is at most `SMALL_BYTES` away: free blocks of this pool are larger at
    any moment, so that whatever lives there while it does shows it. Small pools and
    expandable segments split off everything.
    """
    whole = spans.take(np.flatnonzero(spans.is_large & ~spans.is_expandable))
    if device.is_host or rounding.expandable or not len(whole):
        return NO_RESTS
    sizes = rounding.sizes(lives.size)
    uses = _Uses(lives, np.flatnonzero(sizes > SMALL_BYTES), len(device.events))
    size = sizes[uses.life]
    end = uses.addr + size
    span = SpanIndex(whole, len(device.events)).rows(uses.addr, uses.born)
    room = (whole.address + whole.size)[span] - end
    has_room = (span != NOTHING) & (room > 0)
    is_whole = rounding.has_whole(size) | (room <= SMALL_BYTES)
    rest = np.where(is_whole, room, NOTHING)
    rest[~has_room] = 0
    reach = np.where(is_whole, room, SMALL_BYTES)
    rows = np.flatnonzero(has_room)
    gap = uses.gaps(rows, end[rows], reach[rows])
    rest[rows] = np.where(gap == NOTHING, rest[rows], gap)
    rest[(rest == NOTHING) & (uses.born != BEFORE)] = 0
    kept = np.flatnonzero(rest)
    kept = kept[np.argsort(uses.life[kept])]
    return Rests(uses.life[kept], rest[kept])


class _Uses:
    """Some allocations by address, and at each address by birth."""

    def __init__(self, lives: Lifetimes, rows: Ints, num_events: int) -> None:
        order, is_first = by_address(lives.addr[rows])  # by birth they are already
        self.life = rows[order]
        self.addr = lives.addr[self.life]
        self.born = lives.born[self.life].astype(np.int64)
        self._gone = lives.gone[self.life].astype(np.int64)
        self._address = np.append(self.addr[is_first], np.iinfo(np.int64).max)
        self._place = np.cumsum(is_first) - 1
        self._step = num_events + 2
        self._keys = self._place * self._step + self.born + 1

    def gaps(self, rows: Ints, end: Ints, reach: Ints) -> Ints:
        """From the end of some to what next behind them lived while they did.

        NOTHING where that is more than `reach` bytes away.
        """
        gap = np.full(len(rows), NOTHING, np.int64)
        place = np.searchsorted(self._address[:-1], end)
        born, gone = self.born[rows], self._gone[rows]
        waiting, num_lookups = np.arange(len(rows)), 0
        while len(waiting) and num_lookups < MAX_LOOKUPS:
            distance = self._address[place[waiting]] - end[waiting]
            waiting = waiting[distance <= reach[waiting]]
            # The last one at that address that was born before this one went.
            latest = place[waiting] * self._step + gone[waiting] + 1
            use = np.searchsorted(self._keys, latest) - 1
            lived = self._place[use] == place[waiting]
            lived &= self._gone[use] > born[waiting]
            near = waiting[lived]
            gap[near] = self._address[place[near]] - end[near]
            waiting = waiting[~lived]
            place[waiting] += 1
            num_lookups += len(lived)
        return gap


def _interval(key: Any) -> int | None:
    """Of `"64"`, the megabytes at which an interval begins."""
    if not (isinstance(key, str) and key.isdecimal() and len(key) < 6):
        return None
    place = int(key).bit_length() - 1
    return place if 0 <= place < _NUM_INTERVALS and int(key) == 1 << place else None


def _is_count(value: Any) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and 0 <= value < 1 << 48
