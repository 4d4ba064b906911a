"""Memory of one simulated device: what a training allocates and frees, and a log of it.

Two segments grow page by page, as torch's expandable segments do: one of small blocks, one
of large ones. A block goes to the lowest free place that holds it, so that a step always
needs the same room above what is held between steps. Pages are given back where the device
has none left, as torch does before it fails.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from typing import Any, Final, NamedTuple

MIB: Final = 1 << 20
GIB: Final = 1 << 30
BLOCK_BYTES: Final = 512
"""A block's size is a multiple of it."""

SMALL: Final = 1
LARGE: Final = 2
POOLS: Final = ("", "_small_pool", "_large_pool")
"""As they stand in the names of columns; a block counts in the first and in its own."""

_PAGE_BYTES: Final = (0, 2 * MIB, 20 * MIB)
_BASE: Final = (0, 0x7F40_0000_0000, 0x7E00_0000_0000)

ALLOC: Final = "alloc"
FREE: Final = "free"
MAP: Final = "segment_map"
UNMAP: Final = "segment_unmap"


class OutOfMemory(Exception):  # noqa: N818  # torch's is no ...Error either
    """The device has no room."""

    def __init__(self, requested_bytes: int, free_bytes: int, site: str) -> None:
        super().__init__(requested_bytes, free_bytes)
        self.requested_bytes = requested_bytes
        self.free_bytes = free_bytes
        self.site = site


class Block(NamedTuple):
    """Memory that a tensor holds."""

    number: int
    """Of all that were allocated: the tensor's storage."""
    address: int
    size_bytes: int
    requested_bytes: int
    pool: int
    site: str
    """The line of the program: see `program.SITES`."""
    category: str
    module: int
    """Row of the table of modules; -1: none."""
    name: str
    """Of a parameter, a gradient or a state."""


class Entry(NamedTuple):
    time_us: float
    action: str
    address: int
    size_bytes: int
    site: str
    block: Block | None
    """None where pages were mapped or given back."""
    step: int


class Device:
    """Attributes: `live` by address; `log` is a list while entries are wanted."""

    def __init__(self, limit_bytes: int) -> None:
        """`limit_bytes`: what torch can have of the device."""
        self.live: dict[int, Block] = {}
        self.log: list[Entry] | None = None
        self.now_us = 0.0
        self.speed = 1.0
        """How long a unit of work takes now; a call of the allocator is one."""
        self.step = 0
        self._limit_bytes = limit_bytes
        self._segments = {pool: _Segment(_PAGE_BYTES[pool]) for pool in (SMALL, LARGE)}
        self._num_blocks = 0
        self.num_retries = 0
        """How often pages were given back to go on."""
        # By pool.
        self._reserved = [0, 0, 0]
        self._allocated = [0, 0, 0]
        self._requested = [0, 0, 0]
        self.reset_peaks()

    def reset_peaks(self) -> None:
        """Peaks start again from the present values, as at the end of a step."""
        self._allocated_peak = self._allocated.copy()
        self._requested_peak = self._requested.copy()
        self._reserved_peak = self._reserved.copy()
        self._unused_peak = [self._unused(pool) for pool in range(3)]

    def work(self, units: float) -> None:
        self.now_us += units * self.speed

    def alloc(
        self,
        requested_bytes: int,
        site: str,
        category: str,
        module: int = -1,
        name: str = "",
    ) -> Block:
        """A new block.

        Raises:
            OutOfMemory: the device has no page left for it.
        """
        self.now_us += self.speed
        size = -(-requested_bytes // BLOCK_BYTES) * BLOCK_BYTES
        pool = SMALL if size <= MIB else LARGE
        segment = self._segments[pool]
        place = segment.take(size)
        if not self._map(pool, place, size, site):
            segment.give_back(place, size)
            self._release(site)
            place = segment.take(size)
            if not self._map(pool, place, size, site):
                segment.give_back(place, size)
                raise OutOfMemory(size, self._limit_bytes - self._reserved[0], site)
        sizes = (_BASE[pool] + place, size, requested_bytes, pool)
        block = Block(self._num_blocks, *sizes, site, category, module, name)
        self._num_blocks += 1
        self.live[block.address] = block
        for stat_pool in (0, pool):
            self._allocated[stat_pool] += size
            self._requested[stat_pool] += requested_bytes
            self._allocated_peak[stat_pool] = max(
                self._allocated_peak[stat_pool], self._allocated[stat_pool]
            )
            self._requested_peak[stat_pool] = max(
                self._requested_peak[stat_pool], self._requested[stat_pool]
            )
        self._note(ALLOC, block.address, size, site, block)
        return block

    def free(self, *blocks: Block) -> None:
        """Give blocks back to their segments."""
        for block in blocks:
            self.now_us += self.speed
            pool, address, size = block.pool, block.address, block.size_bytes
            del self.live[address]
            self._segments[pool].give_back(address - _BASE[pool], size)
            for stat_pool in (0, pool):
                self._allocated[stat_pool] -= size
                self._requested[stat_pool] -= block.requested_bytes
                self._unused_peak[stat_pool] = max(
                    self._unused_peak[stat_pool], self._unused(stat_pool)
                )
            self._note(FREE, address, size, block.site, block)

    def map_to(self, pool: int, num_bytes: int) -> None:
        """Let the pages of a pool reach so far."""
        self._map(pool, 0, num_bytes, "")

    def _map(self, pool: int, place: int, size: int, site: str) -> bool:
        """Map the pages of a place that are missing; False where there are too few left."""
        ranges = self._segments[pool].pages_of(place, place + size, is_mapped=False)
        missing = sum(end - start for start, end in ranges)
        if missing > self._limit_bytes - self._reserved[0]:
            return False
        self._turn(MAP, pool, ranges, site)
        return True

    def _release(self, site: str) -> None:
        """Give all pages back that no block touches."""
        self.num_retries += 1
        for pool, segment in reversed(self._segments.items()):
            self._turn(UNMAP, pool, segment.idle_pages(), site)

    def _turn(
        self, action: str, pool: int, ranges: list[tuple[int, int]], site: str
    ) -> None:
        segment = self._segments[pool]
        for start, end in ranges:
            segment.turn(start, end, is_mapped=action == MAP)
            for stat_pool in (0, pool):
                self._reserved[stat_pool] += (
                    end - start if action == MAP else start - end
                )
                self._reserved_peak[stat_pool] = max(
                    self._reserved_peak[stat_pool], self._reserved[stat_pool]
                )
            self._note(action, _BASE[pool] + start, end - start, site, None)

    def room_bytes(self, pool: int) -> int:
        """What the blocks of a pool spanned so far, holes included."""
        return self._segments[pool].highest

    def row(self) -> dict[str, int]:
        """Torch's byte statistics by the names of the step table's columns.

        Nothing is pending here, so what is active is what is allocated, and all that is
        free is a piece of a segment.
        """
        values = {"num_alloc_retries": self.num_retries}
        for pool, infix in enumerate(POOLS):
            allocated = (self._allocated[pool], self._allocated_peak[pool])
            unused = self._unused(pool)
            for stat, (now, peak) in {
                "allocated": allocated,
                "active": allocated,
                "reserved": (self._reserved[pool], self._reserved_peak[pool]),
                "inactive_split": (unused, max(unused, self._unused_peak[pool])),
                "requested": (self._requested[pool], self._requested_peak[pool]),
            }.items():
                values[f"{stat}{infix}_bytes"] = now
                values[f"{stat}{infix}_peak_bytes"] = peak
        return values

    def layout(self) -> list[tuple[int, list[tuple[int, int, Block | None]]]]:
        """By pool, range by range of mapped pages: (address, size, block or None)."""
        pools = []
        for pool, segment in self._segments.items():
            live = sorted(a for a, block in self.live.items() if block.pool == pool)
            for start, stop in segment.pages_of(0, segment.end, is_mapped=True):
                row_start, end = _BASE[pool] + start, _BASE[pool] + stop
                rows: list[tuple[int, int, Block | None]] = []
                for address in live[
                    bisect_left(live, row_start) : bisect_left(live, end)
                ]:
                    if address > row_start:
                        rows.append((row_start, address - row_start, None))
                    block = self.live[address]
                    rows.append((address, block.size_bytes, block))
                    row_start = address + block.size_bytes
                if row_start < end:
                    rows.append((row_start, end - row_start, None))
                pools.append((pool, rows))
        return pools

    def _unused(self, pool: int) -> int:
        return self._reserved[pool] - self._allocated[pool]

    def _note(
        self, action: str, address: int, size: int, site: str, block: Any
    ) -> None:
        if self.log is not None:
            entry = Entry(self.now_us, action, address, size, site, block, self.step)
            self.log.append(entry)


class _Segment:
    """Which offsets are taken, and which pages are mapped."""

    def __init__(self, page_bytes: int) -> None:
        self._page_bytes = page_bytes
        self._pages = bytearray()
        """By page: whether it is mapped."""
        self.top = 0
        """Where the highest block ends, and where the highest one so far ended."""
        self.highest = 0
        self._holes: list[tuple[int, int]] = []
        """Free ranges below the top."""

    @property
    def end(self) -> int:
        """Up to where pages were ever mapped."""
        return len(self._pages) * self._page_bytes

    def pages_of(
        self, start: int, end: int, *, is_mapped: bool
    ) -> list[tuple[int, int]]:
        """Ranges of the pages that hold any of these bytes, and are mapped or are not."""
        page, pages, ranges = self._page_bytes, self._pages, []
        place, last = start // page, -(-end // page)
        pages.extend(bytes(max(0, last - len(pages))))
        while (first := pages.find(is_mapped, place, last)) >= 0:
            place = pages.find(not is_mapped, first, last)
            place = last if place < 0 else place
            ranges.append((first * page, place * page))
        return ranges

    def idle_pages(self) -> list[tuple[int, int]]:
        """Ranges of mapped pages that hold nothing of any block."""
        page, ranges = self._page_bytes, []
        for start, end in (*self._holes, (self.top, self.end)):
            whole = (-(-start // page) * page, end // page * page)
            if whole[0] < whole[1]:
                ranges += self.pages_of(*whole, is_mapped=True)
        return ranges

    def turn(self, start: int, end: int, *, is_mapped: bool) -> None:
        """Map whole pages, or give them back."""
        page = self._page_bytes
        num = (end - start) // page
        self._pages[start // page : end // page] = bytes([is_mapped]) * num

    def take(self, size: int) -> int:
        """The lowest free place of a size."""
        for place, (start, end) in enumerate(self._holes):
            if end - start >= size:
                rest = [] if end - start == size else [(start + size, end)]
                self._holes[place : place + 1] = rest
                return start
        start = self.top
        self.top += size
        self.highest = max(self.highest, self.top)
        return start

    def give_back(self, start: int, size: int) -> None:
        """Free a range, and join it with what is free beside it."""
        holes, end = self._holes, start + size
        place = bisect(holes, (start, end))
        if place < len(holes) and holes[place][0] == end:
            end = holes.pop(place)[1]
        if place and holes[place - 1][1] == start:
            place -= 1
            start = holes.pop(place)[0]
        if end == self.top:
            self.top = start
        else:
            holes.insert(place, (start, end))


def mapped_bytes(room: Any, pool: int) -> Any:
    """What pages take that hold so much of a pool: a number, or an array of numbers."""
    return -(-room // _PAGE_BYTES[pool]) * _PAGE_BYTES[pool]
