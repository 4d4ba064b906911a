"""The numbers a verdict rests on, each with what it is of and what makes it less exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin import api
from tb_plugin.analysis.oom.cards import likely_card
from tb_plugin.analysis.oom.verdict import (
    USUAL_NON_TORCH_BYTES,
    above_peers_bytes,
    full_share,
    median_peer_bytes,
)
from tb_plugin.pages.verdict.words import rounds_words, size_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tb_plugin.analysis.oom.error import PendingFrees, Place
    from tb_plugin.analysis.oom.verdict import Cause
    from tb_plugin.pages.verdict.case import Case

DECISIVE: Final[dict[Cause, frozenset[str]]] = {
    "really_full": frozenset({"held", "full"}),
    "fragmented": frozenset({"free_blocks", "largest_free", "unused"}),
    "growth": frozenset({"growth", "growth_per_round"}),
    "single_giant": frozenset({"requested", "largest_before"}),
    "imbalance": frozenset({"above_peers", "median_peer"}),
    "non_torch": frozenset({"non_torch", "lost_room"}),
    "fitting_block_free": frozenset({"elsewhere"}),
    "private_pools": frozenset({"private_free", "private_pools"}),
    "pending_free": frozenset({"pending_free"}),
    "process_limit": frozenset({"device_free", "limit", "held"}),
    "unsure": frozenset(),
}

_ELSEWHERE: Final[dict[Place, str]] = {
    "stream": "largest free block of another stream",
    "pool": "largest free block of another memory pool",
    "split": "largest free block that may not be split",
}

_ROUNDED: Final = "read from the exception's text, which rounds to two decimals"


def evidence_of(case: Case) -> tuple[api.VerdictEvidence, ...]:
    """All numbers that are known; decisive ones first."""
    found = [*_asked(case), *_levels(case), *_free(case), *_growth(case)]
    found += [*_beside(case), *_peers(case)]
    return tuple(sorted(found, key=lambda one: not one.decisive))


def _bytes(
    case: Case,
    key: str,
    label: str,
    value: float | None,
    caveat: str = "",
    scope: str = "",
) -> Iterator[api.VerdictEvidence]:
    """One number of bytes, if it is known."""
    if value is not None:
        yield _number(case, key, label, value, "bytes", caveat, scope)


def _number(
    case: Case,
    key: str,
    label: str,
    value: float,
    unit: api.Unit,
    caveat: str,
    scope: str,
) -> api.VerdictEvidence:
    return api.VerdictEvidence(
        key=key,
        label=label,
        value=float(value),
        unit=unit,
        scope=scope or case.scope,
        caveat=caveat,
        decisive=case.is_out_of_memory and key in DECISIVE[case.verdict.cause],
    )


def _asked(case: Case) -> Iterator[api.VerdictEvidence]:
    facts, rounded = case.facts, _ROUNDED if case.parsed else ""
    yield from _bytes(
        case, "requested", "failed allocation", facts.requested_bytes, rounded
    )
    caveat = rounded
    if facts.is_limited:
        caveat = "enough for the request: a limit on this process refused it"
    yield from _bytes(
        case, "device_free", "free on the device", facts.device_free_bytes, caveat
    )
    given = "as --capacity says" if case.capacity_is_given else rounded
    yield from _bytes(case, "capacity", "device memory", facts.capacity_bytes, given)
    limit = "set for this process, e.g. by set_per_process_memory_fraction"
    yield from _bytes(case, "limit", "torch may take", facts.limit_bytes, limit)
    yield from _bytes(
        case,
        "largest_before",
        "largest request served before",
        facts.largest_before_bytes,
        _since_beginning(case),
        "from the first recorded event to the error",
    )


def _since_beginning(case: Case) -> str:
    if case.facts.beginning_is_lost:
        return "earlier events were not recorded, or overwritten"
    return ""


def _levels(case: Case) -> Iterator[api.VerdictEvidence]:
    facts, rounded = case.facts, _ROUNDED if case.parsed else ""
    yield from _bytes(
        case, "reserved", "reserved by torch", facts.reserved_bytes, rounded
    )
    label = "live (active)" if facts.active_bytes is not None else "live (allocated)"
    yield from _bytes(case, "held", label, facts.held_bytes, rounded)
    pending = facts.pending
    if facts.pending_bytes:
        yield from _bytes(
            case,
            "pending_free",
            "freed, waiting for another stream",
            facts.pending_bytes,
            "" if pending is None else _streams(pending),
        )
    share = full_share(facts)
    if share is not None:
        caveat = ""
        if facts.capacity_bytes is None and facts.limit_bytes is None:
            caveat = "the device's size was not recorded: of reserved and free"
            card = likely_card(facts.room_bytes or 0)
            if card is not None:
                caveat += f"; a guess: a card of {card} GB"
        yield _number(
            case, "full", "live, of what torch could have", 100 * share, "percent",
            caveat, "",
        )  # fmt: skip
    if facts.private_pool_bytes:
        yield from _bytes(
            case,
            "private_pools",
            "reserved by private memory pools",
            facts.private_pool_bytes,
        )
    if facts.private_free_bytes:
        yield from _bytes(
            case,
            "private_free",
            "free in private memory pools",
            facts.private_free_bytes,
            "" if facts.num_private_pools == 1 else "in all of them together",
        )


def _streams(pending: PendingFrees) -> str:
    """Streams they were allocated on, with the bytes of each."""
    told = [f"{name} {size_words(num_bytes)}" for name, num_bytes in pending.streams]
    return f"allocated on {', '.join(told)}" if told else ""


def _free(case: Case) -> Iterator[api.VerdictEvidence]:
    facts = case.facts
    where = f"{case.scope}, in the pool and stream of the request"
    if facts.free is None:
        yield from _bytes(
            case,
            "unused",
            "reserved and not in use",
            facts.unused_bytes,
            "where it lies is not known without a history of the allocator",
        )
        return
    yield from _bytes(
        case, "free_blocks", "free in blocks", facts.free.num_bytes, "", where
    )
    yield _number(
        case,
        "num_free_blocks",
        "free blocks",
        facts.free.num_blocks,
        "count",
        "",
        where,
    )
    yield from _bytes(
        case, "largest_free", "largest free block", facts.free.largest_bytes, "", where
    )
    if facts.elsewhere is not None:
        yield from _bytes(
            case,
            "elsewhere",
            _ELSEWHERE[facts.elsewhere.place],
            facts.elsewhere.largest_bytes,
        )


def _growth(case: Case) -> Iterator[api.VerdictEvidence]:
    growth = case.facts.growth
    if growth is None:
        return
    words = rounds_words(case.facts)
    scope = f"over {growth.num_rounds:,} {words} before the error"
    caveats = []
    if growth.by == "stacks":
        caveats.append("rounds are inferred from stack traces that recur")
    if growth.by == "memory":
        caveats.append("rounds are inferred from memory that comes and goes")
    if growth.by == "series":
        caveats.append("what the highest allocated bytes of steps rose by")
    if growth.before_bytes:
        before = size_words(growth.before_bytes)
        caveats.append(f"{before} of it from before the first recorded event")
    caveat = "; ".join(caveats)
    yield from _bytes(
        case, "growth", f"retained across {words}", growth.num_bytes, caveat, scope
    )
    caveat = "mean"
    if growth.is_run_rate:
        caveat = "slope of the highest allocated bytes per step"
        scope = "over all recorded steps after the warm-up"
    yield _number(
        case,
        "growth_per_round",
        f"growing per {words.removesuffix('s')}",
        growth.bytes_per_round,
        "bytes",
        caveat,
        scope,
    )
    if growth.late_bytes_per_round is not None:
        yield _number(
            case,
            "growth_late",
            f"growing per {words.removesuffix('s')}, lately",
            growth.late_bytes_per_round,
            "bytes",
            caveat,
            "over the last third of the recorded steps",
        )


def _beside(case: Case) -> Iterator[api.VerdictEvidence]:
    facts = case.facts
    usual = "contexts and communicators usually take up to"
    if facts.usual_non_torch_bytes is None:
        caveat = f"{usual} {size_words(USUAL_NON_TORCH_BYTES)}"
    else:
        caveat = f"the other ranks: {size_words(facts.usual_non_torch_bytes)}"
    yield from _bytes(
        case, "non_torch", "used outside torch", facts.non_torch_bytes, caveat
    )
    if facts.lost_room_bytes:
        yield from _bytes(
            case,
            "lost_room",
            "reserved before, and not to be had any more",
            facts.lost_room_bytes,
            "at least so much was taken by something else since",
        )


def _peers(case: Case) -> Iterator[api.VerdictEvidence]:
    facts = case.facts
    median, above = median_peer_bytes(facts), above_peers_bytes(facts)
    if median is None or above is None:
        return
    count = len(facts.peers_peak_bytes)
    scope = f"{count:,} other rank{'' if count == 1 else 's'}, so far"
    yield from _bytes(
        case, "median_peer", "median peak of the others", median, "", scope
    )
    yield from _bytes(
        case,
        "above_peers",
        "held at the error, above that",
        above,
        "stages of a pipeline differ by design",
        f"{case.scope}, against {scope}",
    )
