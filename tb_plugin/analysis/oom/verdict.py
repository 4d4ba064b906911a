"""Why a request for memory could not be served: one of ten causes, or unsure.

Each cause is tested by what would have been otherwise without it, and weighed by the
bytes that it took:

fitting_block_free  A free block as large as the request exists, of another stream or
                    memory pool. Weight: that block.
private_pools       What is free in private pools, where the request may not go, would
                    have covered what the device lacked, and no block of them alone
                    would have served it. Weight: what is free in them.
fragmented          The free blocks where the request belongs add up to it, and none of
                    them is as large. Weight: their sum. Major only from `MUCH_FREE` of
                    the room on, unless the request is larger than any served before:
                    splitting leaves a few per cent free in every healthy training, and
                    where those do not serve a request of the usual size, live memory
                    has filled the rest.
single_giant        The request is at least `GIANT` times as large as any served before,
                    while `SPARE` of the room was not in use; or larger than the device.
                    Weight: what it asked for beyond the largest before.
non_torch           What is used beside torch, beyond what is usual, would have covered
                    what the device lacked. Usual is what the other ranks or earlier
                    steps show, else `USUAL_NON_TORCH_BYTES`. Without the device's size:
                    what torch had reserved before and could not have any more.
pending_free        What the program had freed, and another stream might still use,
                    would have covered it. Weight: that memory.
growth              What was kept from round to round would have covered it.
imbalance           This rank holds `UNEVEN` times the median of its peers' peaks, and
                    with their median the request would have been served. Growth that
                    makes up half of the difference explains it and is named instead.
process_limit       The device had enough free: a limit on this process refused the
                    request, and nothing above is major.
really_full         Live memory takes `FULL` of the room, or would take `FULL_WITH` with
                    the request, and nothing above is major.

A cause *holds* where it would have made the difference; one that holds is *major* from
`MAJOR` of the room on (free blocks: `MAJOR_FREE`), and the heaviest major one is the
verdict. Where none is, the limit in force or else a full device is the verdict; where it is not full either, the
heaviest that holds; where there is none, it is unsure. All others are named beside it,
and so are growth and use beside torch that do not hold, from `MINOR` of the room on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tb_plugin.analysis.oom.error import OomFacts

Cause: TypeAlias = Literal[
    "really_full",
    "fragmented",
    "growth",
    "single_giant",
    "imbalance",
    "non_torch",
    "fitting_block_free",
    "private_pools",
    "pending_free",
    "process_limit",
    "unsure",
]
"""As `api.OomCause`, which may not be imported here; a test holds the two together."""
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)

MAJOR: Final = 0.1
"""Of the room: what is smaller is made up for by the next longer batch."""
MAJOR_FREE: Final = 0.05
"""The same of free blocks, which are known exactly: allocators rarely do better."""
MUCH_FREE: Final = 0.15
"""Free blocks that no request of the usual size fits: beyond what splitting costs."""
MINOR: Final = 0.02
FULL: Final = 0.8
FULL_WITH: Final = 0.85
MOSTLY: Final = 0.5
"""Where less is live, the request itself is the larger part of what is wanted."""
GIANT: Final = 2.0
SPARE: Final = 0.25
UNEVEN: Final = 1.2
EXPLAINS: Final = 0.5
USUAL_NON_TORCH_BYTES: Final = 2 << 30
"""A context takes 0.3 to 0.9 GiB, communicators of a few groups about 1 GiB."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A cause, or what is too small to be it."""

    cause: Cause
    num_bytes: int
    is_major: bool
    holds: bool = True
    """Without it the request would have been served."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause, and what holds beside it, the heaviest first."""

    cause: Cause
    also: tuple[Cause, ...]
    suspects: tuple[Suspect, ...]

    def weight(self, cause: Cause) -> int | None:
        """What a cause took, in bytes; None where it is no suspect."""
        found = (one.num_bytes for one in self.suspects if one.cause == cause)
        return next(found, None)


def verdict(facts: OomFacts) -> Verdict:
    """The verdict that the facts allow."""
    suspects = sorted(_suspects(facts), key=lambda one: -one.num_bytes)
    major = [one for one in suspects if one.is_major]
    cause: Cause = "unsure"
    if major:
        cause = major[0].cause
    elif facts.is_limited:
        cause = "process_limit"
    elif is_full(facts):
        cause = "really_full"
    elif any(one.holds for one in suspects):
        cause = next(one.cause for one in suspects if one.holds)
    also = tuple(one.cause for one in suspects if one.cause != cause)
    if facts.is_limited and cause != "process_limit":
        also = ("process_limit", *also)
    return Verdict(cause, also, tuple(suspects))


def is_full(facts: OomFacts) -> bool:
    """Whether what is live fills what torch could have, or would with the request."""
    share, wanted = full_share(facts), wanted_share(facts)
    if share is None:
        return False
    fills_it = wanted is not None and wanted >= FULL_WITH and share >= MOSTLY
    return share >= FULL or fills_it


def full_share(facts: OomFacts) -> float | None:
    """Live memory as a share of what torch could have."""
    room, held = facts.room_bytes, facts.held_bytes
    if not room or held is None:
        return None
    return held / room


def wanted_share(facts: OomFacts) -> float | None:
    """Live memory and the request as a share of what torch could have."""
    share, asked = full_share(facts), facts.requested_bytes
    if share is None or asked is None or not facts.room_bytes:
        return None
    return share + asked / facts.room_bytes


def excess_non_torch_bytes(facts: OomFacts) -> int | None:
    """Used beside torch beyond what is usual; at least what torch had and lost."""
    used, lost = facts.non_torch_bytes, facts.lost_room_bytes
    usual = facts.usual_non_torch_bytes
    beyond = None
    if used is not None:
        beyond = max(0, used - (USUAL_NON_TORCH_BYTES if usual is None else usual))
    known = [value for value in (beyond, lost) if value is not None]
    return max(known, default=None)


def above_peers_bytes(facts: OomFacts) -> int | None:
    """What this rank holds above the median of its peers' peaks."""
    median, held = median_peer_bytes(facts), facts.held_bytes
    if median is None or held is None:
        return None
    return held - median


def median_peer_bytes(facts: OomFacts) -> int | None:
    """Median of the peers' peaks."""
    peaks = facts.peers_peak_bytes
    return int(np.median(peaks)) if peaks else None


def _suspects(facts: OomFacts) -> Iterator[Suspect]:
    room = facts.room_bytes or 0
    asked = facts.requested_bytes
    if asked is not None:
        yield from _free_but_useless(facts, asked, room)
        yield from _giant(facts, asked, room)
    missing = facts.missing_bytes or 0
    beyond = excess_non_torch_bytes(facts)
    if beyond and not facts.is_limited:
        device = facts.capacity_bytes or room
        yield from _taken("non_torch", beyond, missing, device)
    fits = facts.elsewhere is not None and facts.elsewhere.largest_bytes >= (asked or 0)
    if unused := facts.private_free_bytes:
        of_pool = facts.elsewhere is not None and facts.elsewhere.place == "pool"
        if not (of_pool and fits):
            yield from _taken("private_pools", unused, max(1, missing), room)
    if pending := facts.pending_bytes:
        yield from _taken("pending_free", pending, max(1, missing), room)
    grown = 0 if facts.growth is None else facts.growth.num_bytes
    if grown:
        yield from _taken("growth", grown, missing, room)
    above, median = above_peers_bytes(facts), median_peer_bytes(facts)
    if above is not None and median is not None and above >= missing:
        uneven = above + median >= UNEVEN * median and above > 0
        explained = grown >= EXPLAINS * above
        if uneven and not explained and above >= MAJOR_FREE * room:
            yield Suspect("imbalance", above, above >= MAJOR * room)


def _taken(cause: Cause, taken: int, missing: int, room: int) -> Iterator[Suspect]:
    """Memory that something took away."""
    if taken >= missing:
        yield Suspect(cause, taken, taken >= MAJOR * room)
    elif taken >= MINOR * room:
        yield Suspect(cause, taken, is_major=False, holds=False)


def _free_but_useless(facts: OomFacts, asked: int, room: int) -> Iterator[Suspect]:
    """Memory that was free, and could not serve the request."""
    elsewhere, free = facts.elsewhere, facts.free
    if elsewhere is not None and elsewhere.largest_bytes >= asked:
        found = elsewhere.largest_bytes
        yield Suspect("fitting_block_free", found, found >= MAJOR_FREE * room)
    if free is None:
        # Only totals are known: whatever was reserved and not held was of no use.
        unused = facts.unused_bytes
        if unused is not None and unused >= asked:
            yield _fragmented(facts, asked, unused, room)
    elif free.num_bytes >= asked > free.largest_bytes:
        yield _fragmented(facts, asked, free.num_bytes, room)


def _fragmented(facts: OomFacts, asked: int, free: int, room: int) -> Suspect:
    """Free memory that adds up to the request, in pieces that do not serve it."""
    before = facts.largest_before_bytes
    is_usual = before is not None and asked <= before
    least = MUCH_FREE if is_usual else MAJOR_FREE
    return Suspect("fragmented", free, free >= least * room)


def _giant(facts: OomFacts, asked: int, room: int) -> Iterator[Suspect]:
    before, held = facts.largest_before_bytes, facts.held_bytes
    if not room:
        return
    beyond = asked - (before or 0)
    spare = held is not None and held <= (1 - SPARE) * room
    unheard_of = before is not None and asked >= GIANT * before and spare
    sizes = (facts.limit_bytes, facts.capacity_bytes)
    device = min((size for size in sizes if size is not None), default=None)
    if unheard_of or (device is not None and asked > device):
        yield Suspect("single_giant", beyond, beyond >= MAJOR * room)
