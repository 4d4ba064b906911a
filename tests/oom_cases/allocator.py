"""A small model of CUDA's caching allocator, made from its published rules.

It serves the hand-made out-of-memory cases: programs allocate and free on it, and it
writes the events that torch would record. Segments have 2 MiB, 20 MiB or a multiple of
2 MiB, requests are rounded to 512 bytes, the best fit is taken and split.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
Pool = tuple[int, int]
Frames = list[dict[str, Any]]
DEFAULT_POOL: Pool = (0, 0)

SMALL_REQUEST = 1 * MiB
SMALL_SEGMENT = 2 * MiB
LARGE_SEGMENT = 20 * MiB
LARGE_REQUEST = 10 * MiB
LARGE_MULTIPLE = 2 * MiB


class OutOfMemoryError(Exception):
    """The device could not serve a request."""

    def __init__(self, device: int, size: int) -> None:
        super().__init__(f"device {device} could not serve {size} bytes")
        self.device = device
        self.size = size


@dataclasses.dataclass(eq=False, slots=True)
class Block:
    """A piece of a segment: held by a tensor, waiting for a stream, or free."""

    segment: Segment
    address: int
    size: int
    requested: int
    state: str = "inactive"
    frames: Frames | None = None
    waits_for: int | None = None


@dataclasses.dataclass(eq=False, slots=True)
class Segment:
    """Memory from one cudaMalloc."""

    address: int
    size: int
    stream: int
    pool: Pool
    small: bool
    frames: Frames | None
    blocks: list[Block] = dataclasses.field(default_factory=list)


def up(size: int, multiple: int) -> int:
    """Round `size` up to a multiple."""
    return -(-size // multiple) * multiple


def segment_size(size: int) -> int:
    """What cudaMalloc is asked for to serve a rounded request."""
    if size <= SMALL_REQUEST:
        return SMALL_SEGMENT
    return LARGE_SEGMENT if size < LARGE_REQUEST else up(size, LARGE_MULTIPLE)


class Device:
    """One GPU: its memory, what others hold of it, and torch's segments on it."""

    def __init__(
        self,
        index: int,
        total: int,
        *,
        others: int = 480 * MiB,
        limit: int | None = None,
        max_segments: int | None = None,
        start_us: int = 1_760_000_000_000_000,
    ) -> None:
        self.index = index
        self.total = total
        self.others = others
        self.limit = limit
        self.max_segments = max_segments
        self.now_us = start_us
        self.segments: list[Segment] = []
        self.events: list[dict[str, Any]] = []
        self.recording = True
        self.keeps_frames = True
        self.capturing = False
        self.freeable_pools: set[Pool] = {DEFAULT_POOL}
        self._addresses = itertools.count(0x7F00_0000_0000 + index * (1 << 40), 1 << 37)
        self._next_address = next(self._addresses)

    @property
    def reserved(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def free(self) -> int:
        """What cudaMemGetInfo would call free."""
        return max(0, self.total - self.others - self.reserved)

    def live(self) -> list[Block]:
        """Blocks that tensors hold or that wait for a stream."""
        return [b for s in self.segments for b in s.blocks if b.state != "inactive"]

    def free_blocks(self, pool: Pool = DEFAULT_POOL, stream: int = 0) -> list[Block]:
        """Free blocks of one pool and stream, for requests above 1 MiB."""
        return [
            block
            for segment in self.segments
            if not segment.small and (segment.pool, segment.stream) == (pool, stream)
            for block in segment.blocks
            if block.state == "inactive"
        ]

    def alloc(
        self,
        nbytes: int,
        frames: Frames | None = None,
        *,
        stream: int = 0,
        pool: Pool = DEFAULT_POOL,
    ) -> Block:
        """Serve a request, or record an `oom` event and raise."""
        frames = frames if self.keeps_frames else None
        size = up(max(nbytes, 1), 512)
        small = size <= SMALL_REQUEST
        block = self._best_fit(size, small, stream, pool)
        if block is None:
            block = self._grow(size, small, stream, pool, frames)
        if block is None:
            self._release_cached(frames)
            block = self._grow(size, small, stream, pool, frames)
        if block is None:
            free = self.free
            self._record("oom", None, size, stream, frames, pool, device_free=free)
            raise OutOfMemoryError(self.index, size)
        self._split(block, size)
        block.state = "active_allocated"
        block.requested = nbytes
        block.frames = frames
        self._record("alloc", block.address, nbytes, stream, frames, pool)
        return block

    def delete(
        self,
        block: Block,
        frames: Frames | None = None,
        *,
        used_on: int | None = None,
    ) -> None:
        """Free a block; one that another stream uses waits for `finish`."""
        frames = frames if self.keeps_frames else None
        if block.state != "active_allocated":
            raise ValueError("only an allocated block can be freed")
        segment = block.segment
        place = (block.address, block.requested, segment.stream, frames, segment.pool)
        self._record("free_requested", *place)
        if used_on is None:
            self._complete(block, frames)
        else:
            block.state = "active_pending_free"
            block.waits_for = used_on

    def finish(self, block: Block) -> None:
        """The other stream has passed the event that the block waited for."""
        self._complete(block, None)

    def empty_cache(self) -> None:
        """Give wholly free segments back, as torch.cuda.empty_cache does."""
        self._release_cached()

    def tick(self, microseconds: int) -> None:
        """Let time pass."""
        self.now_us += microseconds

    def _best_fit(
        self, size: int, small: bool, stream: int, pool: Pool
    ) -> Block | None:
        found: Block | None = None
        for segment in self.segments:
            if segment.small != small or segment.stream != stream:
                continue
            if segment.pool != pool:
                continue
            for block in segment.blocks:
                if block.state != "inactive" or block.size < size:
                    continue
                key = (block.size, block.address)
                if found is None or key < (found.size, found.address):
                    found = block
        return found

    def _grow(
        self, size: int, small: bool, stream: int, pool: Pool, frames: Frames | None
    ) -> Block | None:
        wanted = segment_size(size)
        if wanted > self.free:
            return None
        if self.limit is not None and self.reserved + wanted > self.limit:
            return None
        if self.max_segments is not None and len(self.segments) >= self.max_segments:
            return None
        address = self._next_address
        self._next_address += up(wanted, 2 * MiB) + 2 * MiB
        segment = Segment(address, wanted, stream, pool, small, frames)
        block = Block(segment, address, wanted, wanted)
        segment.blocks.append(block)
        self.segments.append(segment)
        self._record("segment_alloc", address, wanted, stream, frames, pool)
        return block

    def _release_cached(self, frames: Frames | None = None) -> None:
        # Whoever waits for the streams frees the blocks: their stack is that of its request.
        if not self.capturing:
            for block in self.live():
                if block.state == "active_pending_free":
                    self._complete(block, frames)
        kept = []
        for segment in self.segments:
            whole = len(segment.blocks) == 1 and segment.blocks[0].state == "inactive"
            if whole and segment.pool in self.freeable_pools:
                self._record(
                    "segment_free",
                    segment.address,
                    segment.size,
                    segment.stream,
                    segment.frames,
                    segment.pool,
                )
            else:
                kept.append(segment)
        self.segments = kept

    def _split(self, block: Block, size: int) -> None:
        rest = block.size - size
        if rest < 512 or (not block.segment.small and rest <= SMALL_REQUEST):
            return
        blocks = block.segment.blocks
        tail = Block(block.segment, block.address + size, rest, block.requested)
        blocks.insert(blocks.index(block) + 1, tail)
        block.size = size

    def _complete(self, block: Block, frames: Frames | None) -> None:
        segment = block.segment
        place = (block.address, block.requested, segment.stream, frames, segment.pool)
        self._record("free_completed", *place)
        block.state, block.frames, block.waits_for = "inactive", None, None
        blocks = segment.blocks
        at = blocks.index(block)
        if at + 1 < len(blocks) and blocks[at + 1].state == "inactive":
            block.size += blocks.pop(at + 1).size
        if at and blocks[at - 1].state == "inactive":
            blocks[at - 1].size += block.size
            blocks.pop(at)

    def _record(
        self,
        action: str,
        address: int | None,
        size: int,
        stream: int,
        frames: Frames | None,
        pool: Pool,
        **more: int,
    ) -> None:
        self.now_us += 7
        if not self.recording:
            return
        event: dict[str, Any] = {"action": action}
        event |= more if address is None else {"addr": address}
        event |= {"size": size, "stream": stream, "time_us": self.now_us}
        event["pool_id"] = pool
        if frames is not None:
            event["frames"] = frames
        self.events.append(event)
