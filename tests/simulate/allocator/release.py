"""Gives cached memory back to the device: on demand, by age, and all of it."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from tests.simulate.allocator import expandable
from tests.simulate.allocator.stats import LARGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulate.allocator.allocator import CachingAllocator
    from tests.simulate.allocator.blocks import Arena, Block


def release_free(allocator: CachingAllocator, arena: Arena) -> None:
    """Give back all that no live block shares a segment, or a page, with."""
    for _, _, block in list(arena.free):
        if allocator.settings.expandable_segments:
            expandable.unmap(allocator, block)
        elif not block.is_split:
            _release(allocator, arena, block)


def release_oversize(allocator: CachingAllocator, arena: Arena, size: int) -> bool:
    """With `max_split_size_mb`: make room with blocks too large to be lent.

    The smallest of them that covers the request; without one, the largest first until
    they cover it together. False where they do not (they are given back all the same).
    """
    if allocator.settings.expandable_segments:
        return False
    limit = allocator.settings.max_split_bytes
    wanted = max(size, limit)
    index = bisect_left(arena.free, (wanted,))
    if index < len(arena.free):
        _release(allocator, arena, arena.free[index][2])
        return True
    released = 0
    while released < wanted and arena.free and arena.free[-1][0] >= limit:
        block = arena.free[-1][2]
        released += block.size_bytes
        _release(allocator, arena, block)
    return released >= wanted


def collect_old(
    allocator: CachingAllocator, arenas: Mapping[tuple[int, int], Arena]
) -> None:
    """With `garbage_collection_threshold`: give back segments that were long unused.

    Above the threshold's share of the allowed memory, wholly free segments of the large
    pool go whose age (in searches of the pool) is at least the mean age, again and again
    until enough went or none did.
    """
    allowed = allocator.device.allowed_bytes
    if allowed is None or allocator.settings.expandable_segments:
        return
    threshold = int(allocator.settings.garbage_collection_threshold * allowed)
    excess = allocator.device.reserved_bytes - threshold
    large = [arenas[key] for key in sorted(arenas) if key[0] == LARGE]
    blocks = [
        (arena, entry[2])
        for arena in large
        for entry in arena.free
        if not entry[2].is_split
    ]
    while excess > 0 and blocks:
        ages = [_age(arena, block) for arena, block in blocks]
        total, left = sum(ages), []
        mean = total / len(ages)
        for (arena, block), age in zip(blocks, ages, strict=True):
            if age >= mean:
                excess -= block.size_bytes
                _release(allocator, arena, block)
            else:
                left.append((arena, block))
        blocks = left


def _age(arena: Arena, block: Block) -> int:
    return 0 if arena.clock is None else arena.clock.searches - block.born


def _release(allocator: CachingAllocator, arena: Arena, block: Block) -> None:
    arena.remove(block)
    allocator.release_segment(block)
