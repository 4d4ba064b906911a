"""A caching allocator that follows torch's: sizes, pools, splitting, merging, retries.

Requests are rounded to 512 bytes and served from two pools: requests of up to 1 MiB
from segments of 2 MiB, others from segments of 20 MiB or, from 10 MiB on, of the size
asked for rounded to 2 MiB. The smallest free block that fits is taken (the lowest
address among equals), split where the rest is worth keeping, and merged with its free
neighbours when it is freed. Segments stay reserved until the device is full: then the
wholly free ones are given back once (a retry) before the request fails.

The statistics mean what torch means: **allocated** is live blocks, **active** also the
blocks freed while another stream still uses them, **reserved** the segments,
**inactive_split** free blocks that share their segment, **requested** what was asked
for before rounding.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final

from collector.simulate.stats import (
    ACTIVE,
    ALLOCATED,
    INACTIVE_SPLIT,
    LARGE,
    REQUESTED,
    RESERVED,
    SMALL,
    ByteStats,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB: Final = 1 << 20

MIN_BLOCK_BYTES: Final = 512
SMALL_REQUEST_BYTES: Final = MIB
"""Largest request that the small pool serves."""
SMALL_SEGMENT_BYTES: Final = 2 * MIB
LARGE_SEGMENT_BYTES: Final = 20 * MIB
OWN_SEGMENT_BYTES: Final = 10 * MIB
"""Requests from here on get a segment of their own size ..."""
SEGMENT_GRAIN_BYTES: Final = 2 * MIB
"""... rounded up to this."""

_BASE_ADDRESS: Final = 0x7F00_0000_0000

DEFAULT_STREAM: Final = 0


class SimulatedOutOfMemoryError(Exception):
    """The modelled device cannot hold a request, even after a retry."""

    def __init__(self, requested_bytes: int, free_bytes: int) -> None:
        """`free_bytes`: what the device had left outside the reserved segments."""
        super().__init__(
            f"the simulated device has {free_bytes} bytes left outside its segments;"
            f" {requested_bytes} bytes were asked for"
        )
        self.requested_bytes = requested_bytes
        self.free_bytes = free_bytes


class Block:
    """A piece of a segment; neighbours in address order are linked."""

    __slots__ = (
        "address",
        "allocated",
        "next",
        "pending_streams",
        "pool",
        "previous",
        "requested_bytes",
        "size_bytes",
        "stream",
    )

    def __init__(self, address: int, size_bytes: int, pool: int, stream: int) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.pool = pool
        self.stream = stream
        self.requested_bytes = 0
        self.allocated = False
        self.pending_streams: set[int] | None = None
        self.previous: Block | None = None
        self.next: Block | None = None

    @property
    def is_split(self) -> bool:
        """Whether the segment holds other blocks too."""
        return self.previous is not None or self.next is not None

    @property
    def is_free(self) -> bool:
        """Neither live nor awaiting another stream."""
        return not self.allocated and not self.pending_streams


class Segment:
    """One allocation on the device, cut into blocks."""

    __slots__ = ("address", "first", "pool", "size_bytes", "stream")

    def __init__(self, first: Block) -> None:
        self.first = first
        self.address = first.address
        self.size_bytes = first.size_bytes
        self.pool = first.pool
        self.stream = first.stream

    def blocks(self) -> Iterator[Block]:
        """Its blocks in address order; they cover it without gap or overlap."""
        block: Block | None = self.first
        while block is not None:
            yield block
            block = block.next


class CachingAllocator:
    """Hands out blocks of a device of `capacity_bytes`."""

    def __init__(self, capacity_bytes: int) -> None:
        """`capacity_bytes`: what segments may take in all."""
        self.capacity_bytes = capacity_bytes
        self.stats = ByteStats()
        self.num_alloc_retries = 0
        self.num_ooms = 0
        self.segments: dict[int, Segment] = {}
        self._next_address = _BASE_ADDRESS
        # Free blocks by (pool, stream), sorted by (size, address).
        self._free: dict[tuple[int, int], list[tuple[int, int, Block]]] = {}
        self._pending: dict[int, list[Block]] = {}

    def allocate(self, num_bytes: int, stream: int = DEFAULT_STREAM) -> Block:
        """A block of at least `num_bytes` that only `stream` may reuse later.

        Raises:
            SimulatedOutOfMemoryError: nothing fits, even after a retry.
            ValueError: `num_bytes` is not positive.
        """
        if num_bytes <= 0:
            raise ValueError(f"cannot allocate {num_bytes} bytes: ask for at least one")
        size = round_size(num_bytes)
        pool = SMALL if size <= SMALL_REQUEST_BYTES else LARGE
        block = self._take(size, pool, stream)
        if block is None:
            block = self._new_segment(size, pool, stream)
        add = self.stats.add
        was_split = block.is_split
        if _worth_splitting(block.size_bytes - size, pool):
            rest = self._split(block, size)
            if was_split:
                add(pool, INACTIVE_SPLIT, -size)
            else:
                add(pool, INACTIVE_SPLIT, rest.size_bytes)
        elif was_split:
            add(pool, INACTIVE_SPLIT, -block.size_bytes)
        block.allocated = True
        block.requested_bytes = num_bytes
        add(pool, ALLOCATED, block.size_bytes)
        add(pool, ACTIVE, block.size_bytes)
        add(pool, REQUESTED, num_bytes)
        return block

    def record_stream(self, block: Block, stream: int) -> None:
        """`stream` uses the block too: a free waits until `synchronize(stream)`."""
        if stream == block.stream:
            return
        if block.pending_streams is None:
            block.pending_streams = set()
        block.pending_streams.add(stream)

    def free(self, block: Block) -> None:
        """Give a live block back.

        Raises:
            ValueError: the block is not live.
        """
        if not block.allocated:
            raise ValueError(f"the block at {block.address:#x} is not allocated")
        block.allocated = False
        self.stats.add(block.pool, ALLOCATED, -block.size_bytes)
        if block.pending_streams:
            for stream in block.pending_streams:
                self._pending.setdefault(stream, []).append(block)
            return
        self._release(block)

    def synchronize(self, stream: int) -> None:
        """All work queued on `stream` has finished: what awaited it becomes free."""
        for block in self._pending.pop(stream, ()):
            streams = block.pending_streams
            if streams is None:
                continue
            streams.discard(stream)
            if not streams:
                block.pending_streams = None
                self._release(block)

    def empty_cache(self) -> None:
        """Give every wholly free segment back to the device."""
        for stream in list(self._pending):
            self.synchronize(stream)
        for key, free in self._free.items():
            kept = []
            for entry in free:
                block = entry[2]
                if block.is_split:
                    kept.append(entry)
                    continue
                del self.segments[block.address]
                self.stats.add(block.pool, RESERVED, -block.size_bytes)
            self._free[key] = kept

    def _take(self, size: int, pool: int, stream: int) -> Block | None:
        """The smallest free block that fits, out of its list."""
        free = self._free.get((pool, stream))
        if not free:
            return None
        index = bisect_left(free, (size,))
        if index == len(free):
            return None
        return free.pop(index)[2]

    def _new_segment(self, size: int, pool: int, stream: int) -> Block:
        segment_bytes = segment_size(size)
        if not self._fits(segment_bytes):
            self.num_alloc_retries += 1
            self.empty_cache()
            if not self._fits(segment_bytes):
                self.num_ooms += 1
                left = self.capacity_bytes - self.stats.get(RESERVED)
                raise SimulatedOutOfMemoryError(size, left)
        block = Block(self._next_address, segment_bytes, pool, stream)
        self._next_address += -(-segment_bytes // SEGMENT_GRAIN_BYTES) * (
            SEGMENT_GRAIN_BYTES
        )
        self.segments[block.address] = Segment(block)
        self.stats.add(pool, RESERVED, segment_bytes)
        return block

    def _fits(self, segment_bytes: int) -> bool:
        return self.stats.get(RESERVED) + segment_bytes <= self.capacity_bytes

    def _split(self, block: Block, size: int) -> Block:
        """Cut `block` to `size`; the rest becomes a free block behind it."""
        rest = Block(
            block.address + size, block.size_bytes - size, block.pool, block.stream
        )
        rest.previous, rest.next = block, block.next
        if block.next is not None:
            block.next.previous = rest
        block.next = rest
        block.size_bytes = size
        self._insert(rest)
        return rest

    def _release(self, block: Block) -> None:
        """Merge with free neighbours and make available again."""
        add, pool = self.stats.add, block.pool
        freed, requested = block.size_bytes, block.requested_bytes
        change = 0
        before, after = block.previous, block.next
        if before is not None and before.is_free:
            self._remove(before)
            change -= before.size_bytes
            # The lower block survives, so a segment's first block never changes.
            before.size_bytes += block.size_bytes
            before.next = after
            if after is not None:
                after.previous = before
            block = before
        if after is not None and after.is_free:
            self._remove(after)
            change -= after.size_bytes
            block.size_bytes += after.size_bytes
            block.next = after.next
            if after.next is not None:
                after.next.previous = block
        block.requested_bytes = 0
        self._insert(block)
        if block.is_split:
            change += block.size_bytes
        if change:
            add(pool, INACTIVE_SPLIT, change)
        add(pool, ACTIVE, -freed)
        add(pool, REQUESTED, -requested)

    def _insert(self, block: Block) -> None:
        free = self._free.setdefault((block.pool, block.stream), [])
        insort(free, (block.size_bytes, block.address, block))

    def _remove(self, block: Block) -> None:
        free = self._free[block.pool, block.stream]
        del free[bisect_left(free, (block.size_bytes, block.address))]


def round_size(num_bytes: int) -> int:
    """Bytes a block has for a request: a multiple of 512."""
    return max(MIN_BLOCK_BYTES, -(-num_bytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES)


def segment_size(size_bytes: int) -> int:
    """Bytes of the segment that is opened for a block of `size_bytes`."""
    if size_bytes <= SMALL_REQUEST_BYTES:
        return SMALL_SEGMENT_BYTES
    if size_bytes < OWN_SEGMENT_BYTES:
        return LARGE_SEGMENT_BYTES
    return -(-size_bytes // SEGMENT_GRAIN_BYTES) * SEGMENT_GRAIN_BYTES


def _worth_splitting(rest_bytes: int, pool: int) -> bool:
    if pool == SMALL:
        return rest_bytes >= MIN_BLOCK_BYTES
    return rest_bytes > SMALL_REQUEST_BYTES
