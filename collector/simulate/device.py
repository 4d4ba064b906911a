"""Memory of one simulated device: what a training allocates and frees, and a log of it.

Two segments grow page by page, as torch's expandable segments do: one of small blocks, one
of large ones. A block goes to the lowest free place that holds it, so that a step always
needs the same room above what is held between steps. Nothing is ever given back.
"""

from __future__ import annotations

from bisect import bisect
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


class OutOfMemory(Exception):  # noqa: N818  # torch's is no ...Error either
    """The device has no room."""

    def __init__(self, requested_bytes: int, free_bytes: int, site: str) -> None:
        super().__init__(requested_bytes, free_bytes)
        self.requested_bytes = requested_bytes
        self.free_bytes = free_bytes
        """Of the device."""
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
    """Something the allocator did."""

    time_us: float
    action: str
    address: int
    size_bytes: int
    site: str
    block: Block | None
    """None where pages were mapped."""
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
        self._segments = {SMALL: _Segment(), LARGE: _Segment()}
        self._num_blocks = 0
        # By pool.
        self._reserved = [0, 0, 0]
        self._allocated = [0, 0, 0]
        self._requested = [0, 0, 0]
        self.reset_peaks()

    def reset_peaks(self) -> None:
        """Peaks start again from the present values, as at the end of a step."""
        self._allocated_peak = self._allocated.copy()
        self._requested_peak = self._requested.copy()
        self._unused_peak = [self._unused(pool) for pool in range(3)]

    def work(self, units: float) -> None:
        """Time passes."""
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
        missing = mapped_bytes(segment.top, pool) - segment.mapped
        if missing > 0:
            free = self._limit_bytes - self._reserved[0]
            if missing > free:
                segment.give_back(place, size)
                raise OutOfMemory(size, free, site)
            self._note(MAP, _BASE[pool] + segment.mapped, missing, site, None)
            self.map_to(pool, segment.mapped + missing)
        sizes = (_BASE[pool] + place, size, requested_bytes, pool)
        block = Block(self._num_blocks, *sizes, site, category, module, name)
        self._num_blocks += 1
        self.live[block.address] = block
        for at in (0, pool):
            self._allocated[at] += size
            self._requested[at] += requested_bytes
            self._allocated_peak[at] = max(
                self._allocated_peak[at], self._allocated[at]
            )
            self._requested_peak[at] = max(
                self._requested_peak[at], self._requested[at]
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
            for at in (0, pool):
                self._allocated[at] -= size
                self._requested[at] -= block.requested_bytes
                self._unused_peak[at] = max(self._unused_peak[at], self._unused(at))
            self._note(FREE, address, size, block.site, block)

    def map_to(self, pool: int, num_bytes: int) -> None:
        """Let the pages of a pool reach so far."""
        segment = self._segments[pool]
        for at in (0, pool):
            self._reserved[at] += num_bytes - segment.mapped
        segment.mapped = num_bytes

    def room_bytes(self, pool: int) -> int:
        """What the blocks of a pool spanned so far, holes included."""
        return self._segments[pool].highest

    def row(self) -> dict[str, int]:
        """Torch's byte statistics by the names of the step table's columns.

        Nothing is pending here, so what is active is what is allocated, and all that is
        free is a piece of a segment.
        """
        found = {}
        for pool, infix in enumerate(POOLS):
            allocated = (self._allocated[pool], self._allocated_peak[pool])
            unused = self._unused(pool)
            for stat, (now, peak) in {
                "allocated": allocated,
                "active": allocated,
                "reserved": (self._reserved[pool], self._reserved[pool]),
                "inactive_split": (unused, max(unused, self._unused_peak[pool])),
                "requested": (self._requested[pool], self._requested_peak[pool]),
            }.items():
                found[f"{stat}{infix}_bytes"] = now
                found[f"{stat}{infix}_peak_bytes"] = peak
        return found

    def layout(self) -> list[tuple[int, list[tuple[int, int, Block | None]]]]:
        """By pool: (address, size, block or None) of all that lies in its segment."""
        found = []
        for pool, segment in self._segments.items():
            at, end = _BASE[pool], _BASE[pool] + segment.mapped
            rows: list[tuple[int, int, Block | None]] = []
            for address in sorted(a for a, b in self.live.items() if b.pool == pool):
                if address > at:
                    rows.append((at, address - at, None))
                block = self.live[address]
                rows.append((address, block.size_bytes, block))
                at = address + block.size_bytes
            if at < end:
                rows.append((at, end - at, None))
            found.append((pool, rows))
        return found

    def _unused(self, pool: int) -> int:
        return self._reserved[pool] - self._allocated[pool]

    def _note(
        self, action: str, address: int, size: int, site: str, block: Any
    ) -> None:
        if self.log is not None:
            entry = Entry(self.now_us, action, address, size, site, block, self.step)
            self.log.append(entry)


class _Segment:
    """Which offsets are taken, and how far pages reach."""

    def __init__(self) -> None:
        self.mapped = 0
        self.top = 0
        """Where the highest block ends, and where the highest one so far ended."""
        self.highest = 0
        self._holes: list[tuple[int, int]] = []
        """Free ranges below the top."""

    def take(self, size: int) -> int:
        """The lowest free place of a size."""
        for at, (start, end) in enumerate(self._holes):
            if end - start >= size:
                rest = [] if end - start == size else [(start + size, end)]
                self._holes[at : at + 1] = rest
                return start
        start = self.top
        self.top += size
        self.highest = max(self.highest, self.top)
        return start

    def give_back(self, start: int, size: int) -> None:
        """Free a range, and join it with what is free beside it."""
        holes, end = self._holes, start + size
        at = bisect(holes, (start, end))
        if at < len(holes) and holes[at][0] == end:
            end = holes.pop(at)[1]
        if at and holes[at - 1][1] == start:
            at -= 1
            start = holes.pop(at)[0]
        if end == self.top:
            self.top = start
        else:
            holes.insert(at, (start, end))


def mapped_bytes(room: Any, pool: int) -> Any:
    """What pages take that hold so much of a pool: a number, or an array of numbers."""
    return -(-room // _PAGE_BYTES[pool]) * _PAGE_BYTES[pool]
