"""Responses about what lived when: tiles of the Allocations view and exact answers.

All are of one history and one device (parameters `history` and `device`; without a
device the history's default one) and need it to be open: until it is, they answer 503
and `/history` says how far it is. A *life* is one allocation from birth to its end, named
by its number.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    Columns,
    F64Column,
    I32Column,
    U8Column,
    U16Column,
)
from memboard.tb_plugin.api.memory.histories import HistoryMarks
from memboard.tb_plugin.api.memory.modules import CategoryGroup
from memboard.tb_plugin.api.tables import TableRows

AllocationOrder: TypeAlias = Literal["category", "group", "allocation"]
"""Order of layers: categories one upon the other; the colours' groups likewise; or all
in order of birth, as memory_viz stacks them. Within each, in order of birth."""

AllocationColour: TypeAlias = Literal[
    "category", "module", "stack", "age", "stream", "pool"
]
"""Kind of a group. module: as `StacksResponse.module`. stack: the line of the user's
own code. age: how long it lived, or has lived when the history ends: in time where the
history has times, else in events."""


class StackColumns(Columns, frozen=True):
    """Distinct call stacks, as columns of frames and of stacks.

    Columns by frame: name, filename, line, kind. By stack: user_frame, and (one more)
    start. `frame` holds the stacks' frames one after the other, innermost first.
    """

    strings: tuple[str, ...]
    """Distinct texts, at most 1,000 characters each; may hold any text."""
    name: I32Column
    """Index in `strings`: the function."""
    filename: I32Column  # Index in `strings`
    line: I32Column  # 0: not known
    kind: U8Column
    """By frame: 0 the user's own code, 1 a library's, 2 torch's, 3 native."""
    start: I32Column
    """Where each stack begins in `frame`; its last value is the length of `frame`."""
    frame: I32Column
    user_frame: I32Column
    """The frame that stands for a stack in tables: the innermost of the user's own
    code, else the innermost Python one; -1: none."""


class StacksResponse(StackColumns, frozen=True):
    """Route `/stacks` (run, history): call stacks; the same for all devices."""

    module: I32Column
    """By stack: index in `strings`: the innermost module whose `forward` the stack was in, by its
    lines (`model.py:31-40 forward`: frames name no classes); -1: none."""
    num_stacks: int
    """All of the history; those beyond the columns were left out (more than 200,000
    stacks or 4 million frames)."""


class NamedGroup(Struct, frozen=True):
    """Allocations that have one colour, or are stacked as one."""

    key: str
    """Stays the same whatever part of the history is shown."""
    label: str
    category: CategoryGroup | None = None
    """None: it is of no category, and gets a colour by its place."""
    stack: int | None = None
    """Of a group that is one line of code: one of its stacks; else None. With a category
    it is the line that holds most of what is unknown."""


class AllocationGroup(NamedGroup, frozen=True, kw_only=True):
    """What is drawn in one colour, or stacked as one, and how much it holds."""

    bytes: float
    """Live at the highest column of this answer, or at its moment."""


class AllocationColumns(Columns, frozen=True):
    """Pixel columns from left to right; all columns have this length but `edge`."""

    edge: F64Column
    """One more than columns: where each begins, and the end of the last. axis=event:
    index of an event; axis=time: milliseconds since the device's first event."""
    moment: I32Column
    """The event each stands for: the one inside it with the highest active level; where
    none lies inside (axis=time), the last one before."""
    active: F64Column
    """Bytes of all known allocations live at `moment`: what is stacked, rests included."""
    reserved: F64Column
    """Bytes at `moment`; of a stream or a pool, where the query names one. NaN: of both
    at once it cannot be told."""


class AllocationLives(Columns, frozen=True):
    """Allocations that have a run, each once; columns of equal length."""

    life: I32Column
    size: F64Column
    born: I32Column
    """Its event; -1: before all."""
    freed: I32Column
    """Event of its free_requested; the number of events where there is none. -1: the
    block waited to be freed, and nothing says since when."""
    gone: I32Column
    """Event of its free_completed; the number of events where there is none."""
    stack: I32Column  # -1: none was recorded
    group: U16Column
    """Index in `AllocationsResponse.groups`: its colour."""
    band: U16Column
    """Index in `AllocationsResponse.bands`: what it is stacked with."""


class AllocationRuns(Columns, frozen=True):
    """An allocation at one height in its band over columns `first` to `last`, inclusive."""

    slot: I32Column
    """Row of `AllocationLives`. Ascends; a life's runs are in order of columns."""
    first: U16Column
    last: U16Column
    offset: F64Column
    """Bytes below it within its band: those of the bands below come on top, column by
    column, so that a run does not end where another band grows."""


class AllocationsResponse(Columns, frozen=True):
    """Route `/allocations`: live allocations as a picture, exact at every column.

    Parameters besides run, history and device::

        axis    event (default) | time
        e0, e1  axis=event: first event, and the one after the last; default: all
        t0, t1  axis=time: milliseconds since the device's first event; default: all
        y0, y1  bytes at the bottom and the top of the picture; default: 0 and the
                highest active bytes. Runs outside are left out.
        px      columns at most (default 1,200); rows: height in pixels (default 800)
        order   AllocationOrder (default category); colour: AllocationColour (category)
        stream  row of HistoryFacts.streams; pool: row of HistoryFacts.pools: those alone
    """

    device: int
    axis: Literal["event", "time"]
    """time falls back to event where the history has no times."""
    columns: AllocationColumns
    lives: AllocationLives
    runs: AllocationRuns
    groups: tuple[AllocationGroup, ...]
    """By colour, lowest first; at most 13."""
    bands: tuple[AllocationGroup, ...]
    """What is stacked as one, lowest first: `order`'s groups, or one for all."""
    rest: F64Column
    """bands x columns, row by row: bytes of allocations below `min_bytes`, which lie
    summed up on top of their band."""
    band_bytes: F64Column
    """bands x columns, row by row: all bytes of a band, its rest included. The bands
    below it add up to where it begins."""
    group_bytes: F64Column
    """groups x columns, row by row: all bytes of a colour; empty where these are the
    bands."""
    min_bytes: float
    """Allocations below it are in `rest`: less than 0.75 pixels."""
    top_bytes: float
    """Top of the picture: `y1`, or the highest active bytes in it, of blocks."""
    peak_bytes: float
    """Highest active bytes over the whole history, of blocks as torch counts them: more
    than `active` at `peak_moment` by what rounding adds."""
    peak_moment: int
    marks: HistoryMarks | None
    """What has a name in this part; None where `HistoryDevice.marks` are all there are."""


class AllocationHoldersResponse(Columns, frozen=True):
    """Route `/allocation_holders` (as `/allocations`): who holds what in each column.

    A running sum over columns of a slot's changes is its live bytes; slots sum up to
    `AllocationColumns.active` of the same question exactly.
    """

    device: int
    moment: I32Column  # By column, as `AllocationColumns.moment`
    stack: I32Column
    """By slot: the stack, -1: without one. The last slot is -2: all other stacks, those
    that hold least at their own highest; at most 256 have slots of their own."""
    column: U16Column
    """Of each change: where; changes are in order of columns."""
    slot: U16Column  # Of each change: whose
    change: F64Column
    """Of each change: bytes; in column 0 what is live there."""
    category: U8Column
    """By slot but the last, as `AllocationLiveResponse.stack_category`."""
    allocated: F64Column
    """By column: bytes without what only waits to be freed."""


class AllocationCategory(AllocationGroup, frozen=True, kw_only=True):
    """What one colour of `colour=category` holds at a moment."""

    num_blocks: int
    pending_bytes: float
    """Of `bytes`: freed, and active until another stream is done with it."""


class LedgerEntry(Struct, frozen=True):
    """One line of where the device's memory went."""

    key: str
    """live, rounding, pending_free, inactive_split, free_segments, private_pools,
    non_torch; see `analysis.allocator.moment.ledger.RESERVED_KEYS`."""
    bytes: float | None  # None: nothing recorded it
    caveat: str
    """What makes it less than measured; empty: nothing does."""


class AllocationLedger(Struct, frozen=True):
    """Where the device's memory went at a moment."""

    entries: tuple[LedgerEntry, ...]
    reserved_bytes: float
    """The sum of `live` to `private_pools`."""
    device_used_bytes: float | None
    """Of the whole device; None where nothing recorded it."""


class AllocationLiveResponse(Columns, frozen=True):
    """Route `/allocation_live` (run, history, device, moment, stream, pool): exact.

    Without `moment`: at the peak of active bytes.
    """

    device: int
    moment: int
    time_ms: float | None
    step: int | None
    phase: str
    active_bytes: float
    """Of known allocations, as requested; likewise all below but the ledger."""
    allocated_bytes: float
    reserved_bytes: float | None
    """None: of both a stream and a pool it cannot be told."""
    num_blocks: int
    categories: tuple[AllocationCategory, ...]
    """In the same order at every moment; last, where there is one, the line that holds
    most of what is unknown."""
    stack: I32Column
    """By stack, most bytes first: the stack, -1: without one; -2: all after 4,000."""
    stack_bytes: F64Column
    stack_blocks: I32Column
    stack_category: U8Column
    """Index in `categories`: the one that holds most of the stack's bytes; of the 4,000."""
    ledger: AllocationLedger | None
    """None where the query names a stream or pool."""
    pinned_host_bytes: float | None
    """What torch had pinned of the host's memory, free blocks too; no part of the
    device's. None: not recorded at this moment."""


class AllocationMoment(Struct, frozen=True):
    """Where an event lies, as people speak of it."""

    moment: int
    time_ms: float | None
    """Since the epoch; None without times."""
    step: int | None
    phase: str


class AllocationBlockResponse(Struct, frozen=True):
    """Route `/allocation_block` (run, history, device, life): one allocation's card."""

    device: int
    life: int
    name: str
    """Address and how often it was used before, as memory_viz names it:
    `b7f3a40000000_2`."""
    address: str
    size_bytes: float
    """As requested; as rounded where only that is known (`is_rounded`)."""
    is_rounded: bool
    block_bytes: float
    """What it takes of its segment: recorded, or by the allocator's rule of rounding."""
    born: AllocationMoment | None
    """None: before the first event."""
    freed: AllocationMoment | None
    """When its free was requested, which may be before the first event; None: not in the
    history; likewise the next."""
    gone: AllocationMoment | None
    stream: int | None
    """Row of `HistoryFacts.streams`; None: not recorded."""
    pool: int | None
    """Row of `HistoryFacts.pools`; None: not recorded."""
    stack: int | None
    """None: no stack was recorded."""
    category: CategoryGroup
    evidence: str
    """Why that category, in words."""
    tensor: str
    """Name the training knew it by; empty: none."""
    annotations: tuple[str, ...]
    """Of the program's own `annotate` events, in their order; may hold any text, at most
    1,000 characters each."""
    tag: str
    """The event's `user_metadata`; may hold any text, at most 1,000 characters."""
    compile_context: str  # The event's; empty: none
    num_siblings: int
    """Others of the same stack that live at `moment`."""
    sibling_bytes: float
    num_ever: int
    """Of the same stack over the whole history, itself included."""
    segment_address: str
    """Of the segment it was allocated in, hexadecimal; empty: not known."""
    segment_bytes: float | None


class AllocationRangeResponse(Columns, frozen=True):
    """Route `/allocation_range` (run, history, device, e0, e1, stream, pool): by stack.

    Of allocations born in events e0 up to, without, e1: what of them was gone by then,
    and what was still live.
    """

    device: int
    e0: int
    e1: int
    first: AllocationMoment
    last: AllocationMoment
    allocated_bytes: float
    num_allocated: int
    freed_bytes: float
    """Of those allocated in the range; likewise the next three."""
    num_freed: int
    live_bytes: float
    num_live: int
    earlier_freed_bytes: float
    """Gone in the range, and born before it."""
    num_earlier_freed: int
    highest_bytes: float
    """Active bytes inside the range, of blocks, with `highest_moment`."""
    highest_moment: int
    table: TableRows
    """By stack, most live bytes first; at most 20,000. Its colours are categories."""
