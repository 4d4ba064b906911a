"""A caching allocator that follows torch's native one for CUDA.

Requests are rounded to 512 bytes and served from two pools: requests of up to 1 MiB
from segments of 2 MiB, others from segments of 20 MiB or, from 10 MiB on, of the size
asked for rounded to 2 MiB. The smallest free block of the request's stream that fits is
taken (among equals that of the oldest segment; up to torch 2.9 the lowest address),
split where the rest is worth keeping, and merged with its free neighbours when it is
freed. Segments stay reserved until the device
is full: then the wholly free ones are given back once (a retry) before the request
fails. What the settings change is said in `allocator_settings`, `allocator_expandable`
and `allocator_release`.

A block that another stream still uses (`record_stream`) stays active after its free
until the first allocation that follows a `synchronize` of that stream. Allocations
between `use_pool(id)` and `use_pool(None)` come from a private pool, as those of a CUDA
graph or of a `MemPool` do; its segments stay reserved until it is released. During a
capture nothing that another stream used is looked at, what is freed then waits for a
`synchronize` after the first allocation outside, and nothing is given back to make room.

The statistics mean what torch means: **allocated** is live blocks, **active** also the
blocks freed while another stream still uses them, **reserved** the segments,
**inactive_split** free blocks that share their segment (not counted in expandable
segments), **requested** what was asked for before rounding.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from tests.simulate.allocator import expandable
from tests.simulate.allocator import release as releasing
from tests.simulate.allocator.blocks import (
    DEFAULT_POOL,
    NO_SITE,
    Arena,
    Block,
    PoolClock,
    Segment,
    absorb_next,
    cut,
)
from tests.simulate.allocator.device import DeviceMemory
from tests.simulate.allocator.settings import (
    DEFAULT_SETTINGS,
    MIN_BLOCK_BYTES,
    SMALL_REQUEST_BYTES,
    UNLIMITED,
    segment_size,
)
from tests.simulate.allocator.stats import LARGE, RESERVED, SMALL, ByteStats
from tests.simulate.history.history import (
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    OOM,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.allocator.blocks import PoolId
    from tests.simulate.allocator.settings import AllocatorSettings
    from tests.simulate.history.history import History

DEFAULT_STREAM: Final = 0


class SimulatedOutOfMemoryError(Exception):
    """The modelled device cannot hold a request, even after a retry."""

    def __init__(self, requested_bytes: int, free_bytes: int, arena: Arena) -> None:
        """`free_bytes`: what the device had left outside the reserved segments.

        `arena`: the free blocks that could have served it.
        """
        super().__init__(
            f"the simulated device has {free_bytes} bytes left outside its segments;"
            f" {requested_bytes} bytes were asked for"
        )
        self.requested_bytes = requested_bytes
        self.free_bytes = free_bytes
        self.arena = arena


class CachingAllocator:
    """Hands out blocks of one device to one process.

    Attributes:
        device: what lies below; its `non_torch_bytes` may be changed at any time.
        history: what is done is recorded here; None: nothing is.
        segments: by address; of expandable segments with the room they may grow into.
    """

    def __init__(
        self,
        capacity_bytes: int,
        settings: AllocatorSettings = DEFAULT_SETTINGS,
        *,
        device: DeviceMemory | None = None,
        history: History | None = None,
        oldest_first: bool = True,
    ) -> None:
        """`capacity_bytes`: what segments may take in all; `device` says it in detail.

        `oldest_first`: False takes the lowest address among free blocks of one size.
        """
        self.device = device or DeviceMemory(capacity_bytes)
        self.settings = settings
        self.history = history
        self.stats = ByteStats()
        self.num_alloc_retries = 0
        self.num_ooms = 0
        self.num_sync_all_streams = 0
        self.segments: dict[int, Segment] = {}
        self._plain_rounding = not any(settings.roundup_power2_divisions)
        self._max_split = settings.max_split_bytes
        self._expandable = settings.expandable_segments
        limited = self.device.allowed_bytes is not None
        self._collects = limited and settings.garbage_collection_threshold > 0
        self._plain_search = not (
            self._expandable or self._collects or self._max_split < UNLIMITED
        )
        # By pool and, within it, by size class and stream.
        self._pools: dict[PoolId, dict[tuple[int, int], Arena]] = {DEFAULT_POOL: {}}
        self._clocks: dict[tuple[PoolId, int], PoolClock] = {}
        self._arenas = self._pools[DEFAULT_POOL]
        self._pool_id = DEFAULT_POOL
        self._capturing = False
        self._released_pools: set[PoolId] = set()
        self._pending: dict[int, list[Block]] = {}
        # Of these the next allocation outside a private pool takes note.
        self._finished: list[tuple[int, Block]] = []
        self._deferred: list[Block] = []
        self._oldest_first = oldest_first
        self._last_age = 0

    @property
    def capacity_bytes(self) -> int:
        """What the device would have for segments if there were none."""
        return self.device.total_bytes - self.device.non_torch_bytes

    def allocate(self, num_bytes: int, stream: int = DEFAULT_STREAM) -> Block:
        """A block of at least `num_bytes` that only `stream` may reuse later.

        Raises:
            SimulatedOutOfMemoryError: nothing fits, even after a retry.
            ValueError: `num_bytes` is not positive.
        """
        if num_bytes <= 0:
            raise ValueError(f"cannot allocate {num_bytes} bytes: ask for at least one")
        if self._plain_rounding:
            size = -(-num_bytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES
        else:
            size = self.settings.round_size(num_bytes)
        pool = SMALL if size <= SMALL_REQUEST_BYTES else LARGE
        arena = self._arenas.get((pool, stream)) or self._new_arena(pool, stream)
        history = self.history
        if history is not None:
            history.capture()
        if (self._finished or self._deferred) and not self._capturing:
            self._take_note()
        if self._plain_search:
            free = arena.free
            index = bisect_left(free, (size,))
            found = free.pop(index)[2] if index < len(free) else None
        else:
            found = self._find(arena, size)
        block = found or self._obtain(arena, size)
        split_change = self._split(block, size, arena)
        block.is_free = False
        block.allocated = True
        block.requested_bytes = num_bytes
        self.stats.take(pool, block.size_bytes, num_bytes, split_change)
        if history is not None:
            block.site, block.capture = history.site, history.captured
            history.record(ALLOC, block.address, num_bytes, arena)
        return block

    def record_stream(self, block: Block, stream: int) -> None:
        """`stream` uses the block too: a free waits until `synchronize(stream)`."""
        if stream == block.arena.stream:
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
        history = self.history
        if history is not None:
            history.capture()
            history.record(
                FREE_REQUESTED, block.address, block.requested_bytes, block.arena
            )
        if block.pending_streams:
            self.stats.give(block.arena.pool, block.size_bytes, 0, 0, 0)
            if self._capturing:
                self._deferred.append(block)
            else:
                self._await(block)
        else:
            self._release(block, block.size_bytes)

    def synchronize(self, stream: int) -> None:
        """All work queued on `stream` has finished: what awaited it may become free."""
        self._finished += [(stream, block) for block in self._pending.pop(stream, ())]

    def empty_cache(self, pool_id: PoolId | None = None) -> None:
        """Give every wholly free segment back, and wholly free pages of expandable ones.

        Those of private pools stay until `release_pool`. `pool_id`: of this pool alone,
        as when a `MemPool` is deleted.
        """
        if self.history is not None:
            self.history.capture()
        if pool_id is None:
            self._release_cached()
        else:
            self._wait_for_all(pool_id)
            self._release_free(pool_id)

    def use_pool(self, pool_id: PoolId | None, *, capturing: bool = True) -> None:
        """Serve what follows from a private pool; None: from the default one again.

        `capturing`: for a CUDA graph; False: in a `MemPool`, as torch 2.13 has it.
        """
        self._pool_id = pool_id or DEFAULT_POOL
        self._capturing = capturing and pool_id is not None
        self._arenas = self._pools.setdefault(self._pool_id, {})

    def release_pool(self, pool_id: PoolId) -> None:
        """No graph uses the pool any more: `empty_cache` may give its segments back."""
        self._released_pools.add(pool_id)

    def arenas(self) -> Iterator[Arena]:
        """Free blocks of every pool and stream, pool by pool."""
        for arenas in self._pools.values():
            yield from arenas.values()

    def next_age(self) -> int:
        """Of the segment that is opened now."""
        self._last_age += self._oldest_first
        return self._last_age

    def release_segment(self, block: Block) -> None:
        """Give the segment back that `block`, free and in no list, fills.

        The device waits for all streams before it takes memory back.
        """
        for stream in list(self._pending):
            self.synchronize(stream)
        del self.segments[block.address]
        self.device.free(block.address, block.size_bytes)
        self.stats.add(block.arena.pool, RESERVED, -block.size_bytes)
        if self.history is not None:
            self.history.record(
                SEGMENT_FREE, block.address, block.size_bytes, block.arena
            )

    def _new_arena(self, pool: int, stream: int) -> Arena:
        clock = None
        if self._collects:
            clock = self._clocks.setdefault((self._pool_id, pool), PoolClock())
        arena = Arena(pool, stream, self._pool_id, clock)
        self._arenas[pool, stream] = arena
        return arena

    def _find(self, arena: Arena, size: int) -> Block | None:
        """The free block that the settings let a request of `size` have, taken out."""
        if arena.clock is not None:
            arena.clock.searches += 1
        free = arena.free
        index = bisect_left(free, (size,))
        if index == len(free):
            return None
        if self._expandable:
            index = expandable.best_index(free, index)
        found = free[index][2].size_bytes
        limit = self._max_split
        if size < limit <= found:
            return None
        if size >= limit and found >= size + self.settings.max_non_split_rounding_bytes:
            return None
        return free.pop(index)[2]

    def _obtain(self, arena: Arena, size: int) -> Block:
        """Memory from the device, in torch's order of attempts."""
        if self._collects:
            releasing.collect_old(self, self._pools[DEFAULT_POOL])
        block = self._open(arena, size)
        splits = self._max_split < UNLIMITED
        if block is None and splits and releasing.release_oversize(self, arena, size):
            block = self._open(arena, size)
        if block is None and not self._capturing:
            self.num_alloc_retries += 1
            self._release_cached()
            block = self._open(arena, size)
        if block is not None:
            return block
        self.num_ooms += 1
        left = self.device.free_bytes
        if self.history is not None:
            self.history.record(OOM, left, size, arena)
        raise SimulatedOutOfMemoryError(size, left, arena)

    def _open(self, arena: Arena, size: int) -> Block | None:
        num_bytes = segment_size(size)
        if not self.device.allows(num_bytes):
            return None
        if self._expandable:
            return expandable.grow(self, arena, size)
        address = self.device.allocate(num_bytes)
        if address is None:
            return None
        block = Block(address, num_bytes, arena, self.next_age())
        segment = self.segments[address] = Segment(block)
        self.stats.add(arena.pool, RESERVED, num_bytes)
        history = self.history
        if history is not None:
            segment.site, segment.capture = history.site, history.captured
            history.record(SEGMENT_ALLOC, address, num_bytes, arena)
        return block

    def _split(self, block: Block, size: int, arena: Arena) -> int:
        """Cut `block` to `size` where the rest is worth it: the inactive_split change."""
        had = block.size_bytes
        was_split = block.previous is not None or block.next is not None
        if self._expandable or arena.pool == SMALL:
            worth = had - size >= MIN_BLOCK_BYTES
        else:
            worth = had - size > SMALL_REQUEST_BYTES and size < self._max_split
        if not worth:
            return -had if was_split and not self._expandable else 0
        rest = cut(block, size)
        rest.requested_bytes = block.requested_bytes
        arena.insert(rest)
        if self.history is not None and block.previous is None:
            self.segments[block.address].site = NO_SITE
        if self._expandable:
            return 0
        return -size if was_split else had - size

    def _await(self, block: Block) -> None:
        for stream in block.pending_streams or ():
            self._pending.setdefault(stream, []).append(block)

    def _take_note(self) -> None:
        """Of what has finished; what was freed during a capture begins to wait."""
        self._end_deferral()
        finished, self._finished = self._finished, []
        self._complete(finished)

    def _end_deferral(self) -> None:
        deferred, self._deferred = self._deferred, []
        for block in deferred:
            self._await(block)

    def _wait_for_all(self, pool_id: PoolId | None = None) -> None:
        """Until nothing awaits another stream, in all pools or in one."""
        self.num_sync_all_streams += 1
        self._end_deferral()
        for stream in list(self._pending):
            blocks = self._pending.pop(stream)
            waited = [b for b in blocks if pool_id in (None, b.arena.pool_id)]
            left = [b for b in blocks if pool_id not in (None, b.arena.pool_id)]
            self._finished += [(stream, block) for block in waited]
            if left:
                self._pending[stream] = left
        finished = self._finished
        self._finished = [
            pair for pair in finished if pool_id not in (None, pair[1].arena.pool_id)
        ]
        self._complete(
            [pair for pair in finished if pool_id in (None, pair[1].arena.pool_id)]
        )

    def _complete(self, finished: list[tuple[int, Block]]) -> None:
        for stream, block in finished:
            streams = block.pending_streams
            if streams is None:
                continue
            streams.discard(stream)
            if not streams:
                block.pending_streams = None
                self._release(block, 0)

    def _release(self, block: Block, allocated_bytes: int) -> None:
        """Merge with free neighbours and make available again."""
        arena = block.arena
        freed, requested = block.size_bytes, block.requested_bytes
        if self.history is not None:
            self.history.record(FREE_COMPLETED, block.address, requested, arena)
        change = 0
        before, after = block.previous, block.next
        if before is not None and before.is_free:
            arena.remove(before)
            change -= before.size_bytes
            # The lower block survives, so a segment's first block never changes.
            absorb_next(before)
            before.requested_bytes = requested
            block = before
        if after is not None and after.is_free:
            arena.remove(after)
            change -= after.size_bytes
            absorb_next(block)
        arena.insert(block)
        if block.previous is not None or block.next is not None:
            change += block.size_bytes
        if self._expandable:
            change = 0
        self.stats.give(arena.pool, allocated_bytes, freed, requested, change)

    def _release_cached(self) -> None:
        self._wait_for_all()
        for pool_id in (DEFAULT_POOL, *sorted(self._released_pools)):
            self._release_free(pool_id)

    def _release_free(self, pool_id: PoolId) -> None:
        arenas = self._pools.get(pool_id, {})
        for pool in (LARGE, SMALL):
            for key in sorted(arenas):
                if key[0] == pool:
                    releasing.release_free(self, arenas[key])
