"""Parts of the allocator model: blocks, segments, and lists of free blocks."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

PoolId: TypeAlias = tuple[int, int]
"""As torch numbers pools: (0, 0) is the default one; (0, n) is a pool that the program
made for CUDA graphs or as a `MemPool`, (n, 0) one that a capture made for itself."""

DEFAULT_POOL: Final[PoolId] = (0, 0)

NO_SITE: Final = -1
"""In `Block.site` and `Segment.site`: no stack was recorded."""


class Block:
    """A piece of a segment; neighbours in address order are linked."""

    __slots__ = (
        "address",
        "age",
        "allocated",
        "arena",
        "born",
        "capture",
        "is_free",
        "mapped",
        "next",
        "pending_streams",
        "previous",
        "requested_bytes",
        "site",
        "size_bytes",
    )

    def __init__(
        self, address: int, size_bytes: int, arena: Arena, age: int = 0
    ) -> None:
        """`age`: of two free blocks of one size the lower one is taken first."""
        self.address = address
        self.size_bytes = size_bytes
        self.arena = arena
        self.age = age
        self.requested_bytes = 0
        """Of the request it serves, or served last."""
        self.allocated = False
        self.is_free = False
        """Available: mapped, neither live nor awaiting another stream."""
        self.mapped = True
        """False: room of an expandable segment that no memory backs."""
        self.pending_streams: set[int] | None = None
        self.previous: Block | None = None
        self.next: Block | None = None

    # `site` and `capture` (where its request came from, see `history`) are set on live
    # blocks while a history is recorded, `born` on free ones while cached segments age.
    born: int
    capture: int
    site: int

    @property
    def place(self) -> tuple[int, int]:
        """Among free blocks of one size: by age, then by address."""
        return self.age, self.address

    @property
    def pool(self) -> int:
        """`stats.SMALL` or `stats.LARGE`."""
        return self.arena.pool

    @property
    def stream(self) -> int:
        """The stream it was allocated on, the only one that may reuse it."""
        return self.arena.stream

    @property
    def is_split(self) -> bool:
        """Whether the segment holds other blocks too."""
        return self.previous is not None or self.next is not None


class PoolClock:
    """Counts the searches in a pool: the age of its free blocks is measured in these."""

    __slots__ = ("searches",)

    def __init__(self) -> None:
        self.searches = 0


class Arena:
    """The free blocks of one stream in one pool, by size."""

    __slots__ = (
        "clock",
        "expandable",
        "free",
        "pool",
        "pool_id",
        "stream",
        "unmapped",
    )

    def __init__(
        self, pool: int, stream: int, pool_id: PoolId, clock: PoolClock | None
    ) -> None:
        self.pool = pool
        self.stream = stream
        self.pool_id = pool_id
        self.clock = clock
        self.free: list[tuple[int, tuple[int, int], Block]] = []
        """(size, place, block), sorted."""
        self.unmapped: list[tuple[int, Block]] = []
        """(address, block), sorted: what expandable segments may still grow into."""
        self.expandable: list[Segment] = []
        """Its expandable segments, in the order they were made."""

    def insert(self, block: Block) -> None:
        """Make a block available."""
        block.is_free = True
        if self.clock is not None:
            block.born = self.clock.searches
        insort(self.free, (block.size_bytes, block.place, block))

    def remove(self, block: Block) -> None:
        """Take a block out by its present size and address."""
        block.is_free = False
        del self.free[bisect_left(self.free, (block.size_bytes, block.place))]

    def add_unmapped(self, block: Block) -> None:
        """Note room without memory behind it."""
        block.mapped = False
        insort(self.unmapped, (block.address, block))

    def remove_unmapped(self, block: Block) -> None:
        """Take out what is about to be mapped, or was merged with its neighbour."""
        del self.unmapped[bisect_left(self.unmapped, (block.address,))]


class Segment:
    """One allocation on the device, cut into blocks; or room that grows by pages."""

    __slots__ = (
        "address",
        "arena",
        "capture",
        "first",
        "page_bytes",
        "site",
        "size_bytes",
    )

    def __init__(self, first: Block, page_bytes: int = 0) -> None:
        """`page_bytes`: what an expandable segment maps at a time; 0: not expandable."""
        self.first = first
        self.address = first.address
        self.size_bytes = first.size_bytes
        self.arena = first.arena
        self.page_bytes = page_bytes
        self.site = NO_SITE
        """Where its first request came from. torch keeps it with the block that the
        segment begins with, and forgets it when that block is split."""
        self.capture = 0

    @property
    def pool(self) -> int:
        """`stats.SMALL` or `stats.LARGE`."""
        return self.arena.pool

    @property
    def stream(self) -> int:
        """The stream it was opened for."""
        return self.arena.stream

    def blocks(self) -> Iterator[Block]:
        """Its blocks in address order, unmapped ones too; they leave no gap."""
        block: Block | None = self.first
        while block is not None:
            yield block
            block = block.next

    def mapped_runs(self) -> Iterator[list[Block]]:
        """Blocks that follow each other with memory behind them: torch's segments."""
        run: list[Block] = []
        for block in self.blocks():
            if block.mapped:
                run.append(block)
            elif run:
                yield run
                run = []
        if run:
            yield run


def absorb_next(block: Block) -> None:
    """Make `block` cover its next neighbour too; the neighbour leaves the chain."""
    after = block.next
    if after is None:
        return
    block.size_bytes += after.size_bytes
    block.next = after.next
    if after.next is not None:
        after.next.previous = block


def cut(block: Block, size: int) -> Block:
    """Cut `block` to `size`; returns the rest, linked behind it and in no list."""
    rest = Block(block.address + size, block.size_bytes - size, block.arena, block.age)
    after = block.next
    rest.previous, rest.next = block, after
    if after is not None:
        after.previous = rest
    block.next = rest
    block.size_bytes = size
    return rest
