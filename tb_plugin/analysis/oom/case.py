"""One out-of-memory error with all that is known of it: what rules judge and word.

Every number may be missing, because reports and snapshots differ in what they could
measure; None is never zero. `filled` puts two accounts of the same error together.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memboard.tb_plugin.analysis.allocator.rounding import Rounding
from memboard.tb_plugin.analysis.findings.conditions import Setup
from memboard.tb_plugin.analysis.findings.text import size_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.tb_plugin.analysis.findings.cycles import Sawtooth
    from memboard.tb_plugin.analysis.oom.holders import Holder, Holding
    from memboard.tb_plugin.api.findings import Advice


_ROUNDED: Final = 0.01
"""Of a limit: what an error's text rounds away."""

Place: TypeAlias = Literal["here", "stream", "pool", "split"]


@dataclass(frozen=True, slots=True)
class FreeBlocks:
    """Free blocks where the request belongs: its pool, its stream, its size class."""

    num_bytes: int
    largest_bytes: int
    num_blocks: int


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The largest free block that the request did not get, though it is as large."""

    largest_bytes: int
    place: Place
    """Of another stream; of another memory pool, e.g. of a CUDA graph; or where the
    request belongs: `split`, `max_split_size` keeps it whole; `here`, it fits."""


@dataclass(frozen=True, slots=True)
class PendingFrees:
    """Blocks that the program freed and another stream may still use (`record_stream`).

    They serve nothing until that stream has passed an event recorded at the free.
    """

    num_bytes: int
    num_blocks: int
    streams: tuple[tuple[str, int], ...] = ()
    """Streams they were allocated on and the bytes of each, the most first."""
    lines: tuple[str, ...] = ()
    """What allocated them, the most first."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory kept from round to round."""

    num_bytes: int
    """Live at the error, and allocated before the round under way: what its lines hold
    then (`Case.holders`) is more by what they allocated in that round."""
    bytes_per_round: float
    num_rounds: int
    """Rounds it was seen to grow over."""
    by: Literal["steps", "stacks", "memory", "series"]
    """What told the rounds: steps; stacks that recur; memory that comes and goes;
    recorded step peaks."""
    before_bytes: int = 0
    """Part of the bytes: from before the first event, of the same lines."""
    lines: tuple[str, ...] = ()
    """What keeps it, the most first."""
    is_run_rate: bool = False
    """`bytes_per_round` is of all recorded steps, not only of these rounds."""
    late_bytes_per_round: float | None = None
    """Of the last third of them, where it differs."""
    num_releases: int = 0
    """Moments before at which what these lines held from several rounds went together, as
    when the garbage collector frees reference cycles, or a list is cleared."""
    in_pools: bool = False
    """Most of it is in private pools: of CUDA graphs that share one, or of a MemPool."""


@dataclass(frozen=True, slots=True)
class OomFacts:
    """One error. Bytes; peers are the other ranks of the job."""

    requested_bytes: int | None = None
    device_free_bytes: int | None = None
    capacity_bytes: int | None = None
    limit_bytes: int | None = None
    """What this process may take, where less than the device was allowed."""
    reserved_bytes: int | None = None
    allocated_bytes: int | None = None
    active_bytes: int | None = None
    """Allocated, and freed blocks that another stream may still use."""
    private_pool_bytes: int | None = None
    """Reserved by memory pools other than the ordinary one."""
    private_free_bytes: int | None = None
    """Free in such pools, the request's own left out: it may not go there."""
    num_private_pools: int = 0
    knows_pool: bool = False
    """The request's own pool was recorded, so that what it may not use is known."""
    is_of_pool: bool = False
    """The request was of a private pool."""
    captured: Holding | None = None
    """Private pools that were filled at one go each, as by the capture of a CUDA graph; of
    `graph_pools` where graphs made them all for themselves. None: there are none."""
    pending: PendingFrees | None = None
    """Known from a history; totals alone only say how much, see `pending_bytes`."""
    free: FreeBlocks | None = None
    elsewhere: Elsewhere | None = None
    largest_before_bytes: int | None = None
    """The largest request that was served before."""
    largest_here_bytes: int | None = None
    """The largest of the same line that was served before."""
    most_allocated_bytes: int | None = None
    """The most that was allocated since the last step."""
    most_reserved_bytes: int | None = None
    """The most that was reserved at any time before."""
    growth: Growth | None = None
    cycles: Sawtooth | None = None
    """Device memory that fell when the garbage collector ran, in the steps before."""
    num_full_collections: int | None = None
    """Of Python's garbage collector in the recorded steps; None: not recorded."""
    usual_non_torch_bytes: int | None = None
    """What is used beside torch on the other ranks, or was in earlier steps."""
    peers_peak_bytes: tuple[int, ...] = ()
    """The highest that each peer held so far."""
    beginning_is_lost: bool = False
    """Memory was allocated before the first event that is known."""

    @property
    def segment_bytes(self) -> int | None:
        """What the device would have had to give for the request."""
        asked = self.requested_bytes
        return None if asked is None else Rounding().segment_size(asked)

    @property
    def has_room(self) -> bool:
        """The device had enough free, and the request was refused all the same."""
        free, needed = self.device_free_bytes, self.segment_bytes
        return free is not None and needed is not None and free >= needed

    @property
    def is_limited(self) -> bool:
        """A limit on this process refused the request, which the device had room for.

        Only one that was recorded, and that the request would have exceeded.
        """
        limit, needed = self.limit_bytes, self.segment_bytes
        if not self.has_room or limit is None or needed is None:
            return False
        return (self.reserved_bytes or limit) + needed > (1 - _ROUNDED) * limit

    @property
    def room_bytes(self) -> int | None:
        """What torch could have at most: reserved, and free for it on the device."""
        free = self.device_free_bytes
        if self.reserved_bytes is None or free is None:
            recorded = (self.limit_bytes, self.capacity_bytes)
            return min(
                (num_bytes for num_bytes in recorded if num_bytes is not None),
                default=None,
            )
        if self.limit_bytes is not None:
            return min(self.limit_bytes, self.reserved_bytes + free)
        return self.reserved_bytes + free

    @property
    def missing_bytes(self) -> int | None:
        """What the device lacked for the request."""
        free, needed = self.device_free_bytes, self.segment_bytes
        if free is None or needed is None:
            return None
        return max(0, needed - free)

    @property
    def non_torch_bytes(self) -> int | None:
        """Used on the device by anything but torch's allocator in this process."""
        parts = (self.capacity_bytes, self.device_free_bytes, self.reserved_bytes)
        capacity, free, reserved = parts
        if capacity is None or free is None or reserved is None:
            return None
        return max(0, capacity - free - reserved)

    @property
    def lost_room_bytes(self) -> int | None:
        """What torch once had reserved and could not have had any more.

        A lower bound of what others took since, known without the device's size.
        """
        if self.most_reserved_bytes is None or self.room_bytes is None:
            return None
        return max(0, self.most_reserved_bytes - self.room_bytes)

    @property
    def held_bytes(self) -> int | None:
        """What the program holds: allocated, and not freed while a stream uses it."""
        if self.active_bytes is None:
            return self.allocated_bytes
        return self.active_bytes - (self.pending_bytes or 0)

    @property
    def pending_bytes(self) -> int | None:
        """Freed, and not to be reused until another stream is done with it."""
        if self.pending is not None:
            return self.pending.num_bytes
        if self.active_bytes is None or self.allocated_bytes is None:
            return None
        return max(0, self.active_bytes - self.allocated_bytes)

    @property
    def unused_bytes(self) -> int | None:
        """Reserved and neither held nor pending."""
        if self.reserved_bytes is None or self.held_bytes is None:
            return None
        used = self.held_bytes + (self.pending_bytes or 0)
        return max(0, self.reserved_bytes - used)


def filled(facts: OomFacts, more: OomFacts) -> OomFacts:
    """The first account, with what only the second knows."""
    missing = {
        field.name: getattr(more, field.name)
        for field in fields(OomFacts)
        if (value := getattr(facts, field.name)) is None
        or value is False
        or value == ()
    }
    return replace(facts, **missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    facts: OomFacts
    device: int | None = None
    is_out_of_memory: bool = True
    """False: the process ended otherwise, and nothing has to be explained."""
    replayed: bool = False
    """The state at the error was replayed from a history; else only a report says it."""
    parsed: bool = False
    """Numbers were read from the exception's text, and are rounded."""
    setup: Setup = field(default_factory=Setup)
    """How the process ran: the conditions of advice."""
    holders: tuple[Holder, ...] = ()
    live_bytes: int | None = None
    """What the holders are shares of: what is live, or, of a report of memory of which some
    waits for another stream, what is active."""
    rounding_bytes: int = 0
    """Of it: what the allocator's rounding adds to the requests of the holders."""
    active: tuple[Holder, ...] = ()
    """The holders of all that is active: what was freed and waits for another stream is a
    row of its own. Empty where only a report says it."""
    by_category: Mapping[str, int] = field(default_factory=dict)
    """Live bytes by category; empty where it is not known."""
    stack: tuple[str, ...] = ()
    """Of the request, innermost frame first."""
    asked_at: str = ""
    """The line of the user's own that requested it."""
    asked_in: str = ""
    """`forward`, `backward`, `optimizer`: where the request came from; empty: none."""
    holdings: tuple[Holding, ...] = ()
    """Kinds of things that hold much, the largest first."""
    trains: bool | None = None
    """False: nothing in the history is of a training, so no advice is of one. None: it
    is not known."""
    makes_model: bool = False
    """The request came of making or loading a model."""
    world_size: int = 1
    capacity_is_given: bool = False
    """Nothing recorded the device's size: the user named it."""

    @property
    def scope(self) -> str:
        """Of what and when the numbers are."""
        where = "the device" if self.device is None else f"device {self.device}"
        return f"{where}, at the {'error' if self.is_out_of_memory else 'end'}"

    @property
    def shares_are_of(self) -> str:
        """What the holders are shares of: `live`, where that is the number of the verdict."""
        live_bytes, base = self.facts.held_bytes, self.live_bytes
        if (
            live_bytes is None
            or base is None
            or size_text(live_bytes) == size_text(base)
        ):
            return "live"
        if self.facts.pending_bytes:
            return "live or waiting for another stream"
        return "found live, line by line"

    @property
    def round_word(self) -> str:
        """What memory grew over: `step`, or `round` where nothing marks them as steps."""
        growth = self.facts.growth
        is_unmarked = growth is not None and growth.by in ("stacks", "memory")
        return "round" if is_unmarked else "step"

    def with_report(self, report: Case) -> Case:
        """A replayed state, with what only the report of the same error knows."""
        return replace(
            self,
            facts=filled(self.facts, report.facts),
            is_out_of_memory=report.is_out_of_memory,
            setup=self.setup.filled(report.setup),
            stack=self.stack or report.stack,
            asked_at=self.asked_at or report.asked_at,
            asked_in=self.asked_in or report.asked_in,
        )


Cause: TypeAlias = Literal[
    "really_full",
    "fragmented",
    "growth",
    "uncollected_cycles",
    "single_giant",
    "imbalance",
    "non_torch",
    "fitting_block_free",
    "private_pools",
    "pending_free",
    "process_limit",
    "unsure",
]

NAMES: Final[dict[Cause, str]] = {
    "really_full": "full device",
    "fragmented": "fragmentation",
    "growth": "memory retained across steps",
    "uncollected_cycles": "memory in reference cycles",
    "single_giant": "a single giant allocation",
    "imbalance": "imbalance between ranks",
    "non_torch": "memory outside torch",
    "fitting_block_free": "a fitting block was free",
    "private_pools": "memory in private pools",
    "pending_free": "freed memory waiting for another stream",
    "process_limit": "a limit on this process",
    "unsure": "cause not known",
}


@dataclass(frozen=True, slots=True)
class Suspect:
    """A cause, or what is too small to be it."""

    cause: Cause
    num_bytes: int
    """What it took: the heaviest major one leads."""
    is_major: bool
    why: str
    """The end of the sentence, where it leads."""
    rule: str
    decisive: tuple[str, ...] = ()
    """Keys of the evidence it is told by."""
    advice: tuple[Advice, ...] = ()
    """What to try where it leads."""
    beside: tuple[Advice, ...] | None = None
    """The same where another cause leads; None: no other."""
    holds: bool = True
    """Without it the request would have been served."""
    aside: str = ""
    """A sentence that is said of it where another cause leads."""


MAJOR: Final = 0.1
"""Of the room: what is smaller is made up for by the next longer batch."""
MAJOR_FREE: Final = 0.05
"""The same of free blocks, which are known exactly: allocators rarely do better."""
MANY_POOLS: Final = 4
"""Pools that were filled at one go each: fewer are no capture for every shape."""
MINOR: Final = 0.02
"""Of the room, from which on what made no difference is named all the same."""


def weighed(taken: int, missing: int, room: int) -> tuple[bool, bool] | None:
    """Of memory that something took: whether it is major, and whether it holds.

    None: it is too little to be named.
    """
    if taken >= missing:
        return taken >= MAJOR * room, True
    return (False, False) if taken >= MINOR * room else None
