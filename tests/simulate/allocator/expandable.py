"""Expandable segments: address room that memory is mapped into page by page.

With `expandable_segments:True` each stream of each pool gets one segment with room for
nine eighths of the device. A request that no free block can serve maps the pages it
lacks (2 MiB in the small pool, 20 MiB in the large one), behind a free block where there
is one, and whole free pages are unmapped when cached memory is given back. What torch's
snapshot calls a segment is a run of mapped blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulate.allocator.blocks import (
    NO_SITE,
    Block,
    Segment,
    absorb_next,
    cut,
)
from tests.simulate.allocator.settings import (
    LARGE_SEGMENT_BYTES,
    SMALL_SEGMENT_BYTES,
)
from tests.simulate.allocator.stats import RESERVED, SMALL
from tests.simulate.history.history import SEGMENT_MAP, SEGMENT_UNMAP

if TYPE_CHECKING:
    from tests.simulate.allocator.allocator import CachingAllocator
    from tests.simulate.allocator.blocks import Arena


def best_index(free: list[tuple[int, tuple[int, int], Block]], index: int) -> int:
    """The block to take of those from `index` on, which all fit.

    A block in front of unmapped room counts with that room, so that a larger block
    without any is preferred to it. The search ends at the first that is no better.
    """
    while index + 1 < len(free) and _reach(free[index + 1][2]) < _reach(free[index][2]):
        index += 1
    return index


def grow(allocator: CachingAllocator, arena: Arena, size: int) -> Block | None:
    """A free block of at least `size`, in no list; None where memory does not suffice.

    Pages mapped before memory ran out stay mapped.
    """
    block: Block | None = _with_room(allocator, arena, size)
    while block is not None and (not block.mapped or block.size_bytes < size):
        unmapped = block.next if block.mapped else block
        if unmapped is None:
            return None
        lacking = size - block.size_bytes if block.mapped else size
        block = _map(allocator, unmapped, min(lacking, unmapped.size_bytes))
    if block is not None:
        arena.remove(block)
    return block


def unmap(allocator: CachingAllocator, block: Block) -> None:
    """Give back the whole pages inside a free block; the rest stays free.

    torch waits for the segment's stream before.
    """
    arena = block.arena
    segment = _segment_of(block)
    page = segment.page_bytes
    begin = -(-(block.address - segment.address) // page) * page + segment.address
    end = block.address + block.size_bytes
    end -= (end - segment.address) % page
    if begin >= end:
        return
    allocator.synchronize(arena.stream)
    arena.remove(block)
    requested = block.requested_bytes
    if begin > block.address:
        rest = cut(block, begin - block.address)
        # As torch has it: what is unmapped keeps the request it served last.
        block.requested_bytes = 0
        arena.insert(block)
        block = rest
    if end < block.address + block.size_bytes:
        arena.insert(cut(block, end - begin))
    block.requested_bytes = requested
    allocator.device.unmap(end - begin)
    allocator.stats.add(arena.pool, RESERVED, begin - end)
    if allocator.history is not None:
        allocator.history.record(SEGMENT_UNMAP, begin, end - begin, arena)
    before, after = block.previous, block.next
    if before is not None and not before.mapped:
        arena.remove_unmapped(before)
        absorb_next(before)
        before.requested_bytes = requested
        block = before
    if after is not None and not after.mapped:
        arena.remove_unmapped(after)
        absorb_next(block)
    if block.previous is None and block.next is None:
        arena.expandable.remove(segment)
        del allocator.segments[segment.address]
    else:
        arena.add_unmapped(block)


def _reach(block: Block) -> int:
    after = block.next
    if after is None or after.mapped:
        return block.size_bytes
    return block.size_bytes + after.size_bytes


def _with_room(allocator: CachingAllocator, arena: Arena, size: int) -> Block:
    """The lowest block from which free and unmapped blocks reach for `size`."""
    for _, unmapped in arena.unmapped:
        before = unmapped.previous
        start = before if before is not None and before.is_free else unmapped
        reach, block = 0, start
        while reach < size and (block.is_free or not block.mapped):
            reach += block.size_bytes
            if block.next is None:
                break
            block = block.next
        if reach >= size:
            return start
    return _new_segment(allocator, arena)


def _new_segment(allocator: CachingAllocator, arena: Arena) -> Block:
    page = SMALL_SEGMENT_BYTES if arena.pool == SMALL else LARGE_SEGMENT_BYTES
    room = allocator.device.total_bytes * 9 // 8
    room = -(-room // page) * page
    block = Block(
        allocator.device.reserve_addresses(room), room, arena, allocator.next_age()
    )
    segment = allocator.segments[block.address] = Segment(block, page)
    arena.expandable.append(segment)
    arena.add_unmapped(block)
    return block


def _map(allocator: CachingAllocator, block: Block, size: int) -> Block | None:
    """Put pages behind the first `size` bytes of an unmapped block.

    The free block that they are part of now; None where memory does not suffice.
    """
    arena = block.arena
    segment = _segment_of(block)
    num_bytes = -(-size // segment.page_bytes) * segment.page_bytes
    if not allocator.device.map(num_bytes):
        return None
    arena.remove_unmapped(block)
    block.mapped = True
    if num_bytes < block.size_bytes:
        arena.add_unmapped(cut(block, num_bytes))
    allocator.stats.add(arena.pool, RESERVED, num_bytes)
    history = allocator.history
    if history is not None:
        if block.previous is None and segment.site == NO_SITE:
            segment.site, segment.capture = history.site, history.captured
        history.record(SEGMENT_MAP, block.address, num_bytes, arena)
    before, after = block.previous, block.next
    if before is not None and before.is_free:
        arena.remove(before)
        absorb_next(before)
        before.requested_bytes = block.requested_bytes
        block = before
    if after is not None and after.is_free:
        arena.remove(after)
        absorb_next(block)
    arena.insert(block)
    return block


def _segment_of(block: Block) -> Segment:
    for segment in block.arena.expandable:
        if segment.address <= block.address < segment.address + segment.size_bytes:
            return segment
    raise ValueError(f"the block at {block.address:#x} is in no expandable segment")
