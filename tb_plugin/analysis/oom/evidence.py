"""The numbers a verdict rests on, each with what it is of and what makes it less exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.cycles import FALL_LABEL
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.analysis.oom.suspects.capacity import full_share, likely_card
from memboard.tb_plugin.analysis.oom.suspects.consumers import (
    USUAL_NON_TORCH_BYTES,
    above_peers_bytes,
    median_peer_bytes,
)
from memboard.tb_plugin.api.findings import Evidence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import TypeAlias

    from memboard.tb_plugin.analysis.oom.case import Case, OomFacts, Place
    from memboard.tb_plugin.api.findings import Quantity

    Row: TypeAlias = tuple[str, str, float | None, str, str]
    """Key, label, value, caveat, scope; no value: it is not known. No scope: the error."""

_ELSEWHERE: Final[dict[Place, str]] = {
    "here": "free block that the request would get",
    "stream": "largest free block of another stream",
    "pool": "largest free block of another memory pool",
    "split": "largest free block that may not be split",
}

_UNITS: Final[dict[str, Quantity]] = {"full": "percent", "num_free_blocks": "count"}
# All others are bytes


def evidence_of(case: Case, decisive: Collection[str]) -> tuple[Evidence, ...]:
    """All numbers that are known; decisive ones first."""
    rows = [
        row
        for part in (_levels, _free, _growth, _cycles, _others)
        for row in part(case)
    ]
    evidence = [
        Evidence(
            key=key,
            label=label,
            value=float(value),
            unit=_UNITS.get(key, "bytes"),
            scope=scope or case.scope,
            caveat=caveat,
            decisive=key in decisive,
        )
        for key, label, value, caveat, scope in rows
        if value is not None
    ]
    return tuple(sorted(evidence, key=lambda row: not row.decisive))


def _levels(case: Case) -> Iterator[Row]:
    facts = case.facts
    rounded = ""
    if case.parsed:
        rounded = "read from the exception's text, which rounds to two decimals"
    yield "requested", "failed allocation", facts.requested_bytes, rounded, ""
    refused = "enough for the request"
    if facts.is_limited:
        refused += ": a limit on this process refused it"
    caveat = refused if facts.has_room else rounded
    yield "device_free", "free on the device", facts.device_free_bytes, caveat, ""
    remark = "given with --capacity" if case.capacity_is_given else rounded
    yield "capacity", "device memory", facts.capacity_bytes, remark, ""
    limit = "set for this process, e.g. by set_per_process_memory_fraction"
    yield "limit", "limit on this process", facts.limit_bytes, limit, ""
    lost = "earlier events were not recorded, or overwritten"
    yield (
        "largest_before",
        "largest request served before",
        facts.largest_before_bytes,
        lost if facts.beginning_is_lost else "",
        "from the first recorded event to the error",
    )
    yield "reserved", "reserved by torch", facts.reserved_bytes, rounded, ""
    is_active = facts.active_bytes is not None and not facts.pending_bytes
    live = "live (active)" if is_active else "live (allocated)"
    more = rounded
    requested = (facts.held_bytes or 0) - case.rounding_bytes
    if size_text(requested) != size_text(facts.held_bytes or 0):
        more = f"{size_text(case.rounding_bytes)} of it is the allocator's rounding"
    yield "held", live, facts.held_bytes, more, ""
    pending = facts.pending
    streams = [] if pending is None else pending.streams
    told = ", ".join(
        f"{stream_name} {size_text(size)}" for stream_name, size in streams
    )
    yield (
        "pending_free",
        "freed, waiting for another stream",
        facts.pending_bytes or None,
        f"allocated on {told}" if told else "",
        "",
    )
    share = full_share(facts)
    yield (
        "full",
        "live share of the memory available to torch",
        None if share is None else 100 * share,
        _room_caveat(facts),
        "",
    )
    pools = facts.private_pool_bytes or None
    yield "private_pools", "reserved by private memory pools", pools, "", ""
    together = "" if facts.num_private_pools == 1 else "in all of them together"
    unused = facts.private_free_bytes or None
    yield "private_free", "free in private memory pools", unused, together, ""


def _room_caveat(facts: OomFacts) -> str:
    if facts.capacity_bytes is not None or facts.limit_bytes is not None:
        return ""
    card = likely_card(facts.room_bytes or 0)
    guess = "" if card is None else f"; a guess: a card of {card} GB"
    return (
        f"the device's size was not recorded: share of reserved and free memory{guess}"
    )


def _free(case: Case) -> Iterator[Row]:
    facts, free = case.facts, case.facts.free
    where = f"{case.scope}, in the pool and stream of the request"
    if free is None:
        unknown = "its location is unknown without the allocator's history"
        yield "unused", "reserved and not in use", facts.unused_bytes, unknown, ""
        return
    yield "free_blocks", "free in blocks", free.num_bytes, "", where
    yield "num_free_blocks", "free blocks", free.num_blocks, "", where
    yield "largest_free", "largest free block", free.largest_bytes, "", where
    if facts.elsewhere is not None:
        place, size = facts.elsewhere.place, facts.elsewhere.largest_bytes
        yield "elsewhere", _ELSEWHERE[place], size, "", ""


_ROUNDS: Final = {
    "stacks": "rounds are inferred from stack traces that recur",
    "memory": "rounds are inferred from memory that comes and goes",
    "series": "rise of the steps' peak allocated bytes",
}


def _cycles(case: Case) -> Iterator[Row]:
    teeth = case.facts.cycles
    if teeth is None:
        return
    scope = f"the last {counted(teeth.num_steps, 'step')} before the error"
    bound = (
        "at most at the pace that collections returned; what lists gained counts too"
    )
    label = "risen since the last collection that freed memory"
    yield "cycles", label, teeth.held_bytes, bound, scope
    yield "fall", FALL_LABEL, teeth.fall, "", scope
    yield (
        "largest_fall",
        "freed by a collection, the most",
        teeth.largest_fall,
        "",
        scope,
    )


def _growth(case: Case) -> Iterator[Row]:
    growth, word = case.facts.growth, case.round_word
    if growth is None:
        return
    rate_scope = f"over {counted(growth.num_rounds, word)} before the error"
    rate_caveat = "mean"
    if growth.is_run_rate:
        rate_scope = "over all recorded steps after the warm-up"
        rate_caveat = "slope of the bytes allocated at the end of steps"
    # Lines hold more at the error by what they allocated in the round under way.
    scope = (
        rate_scope
        if growth.by == "series"
        else (
            f"live at the error from earlier {word}s, at lines whose memory grew in the"
            f" last {counted(growth.num_rounds, word)}"
        )
    )
    caveats = [_ROUNDS[growth.by]] if growth.by in _ROUNDS else []
    if growth.before_bytes:
        before = size_text(growth.before_bytes)
        caveats.append(f"{before} of it was allocated before the first recorded event")
    caveat = "; ".join(caveats)
    yield "growth", f"retained across {word}s", growth.num_bytes, caveat, scope
    rate = growth.bytes_per_round
    yield "growth_per_round", f"growth per {word}", rate, rate_caveat, rate_scope
    yield (
        "growth_late",
        f"recent growth per {word}",
        growth.late_bytes_per_round,
        rate_caveat,
        "over the last third of the recorded steps",
    )


def _others(case: Case) -> Iterator[Row]:
    """Memory outside torch, and other ranks."""
    facts = case.facts
    usual = f"the other ranks: {size_text(facts.usual_non_torch_bytes or 0)}"
    if facts.usual_non_torch_bytes is None:
        usual = (
            "contexts and communicators usually take up to"
            f" {size_text(USUAL_NON_TORCH_BYTES)}"
        )
    yield "non_torch", "used outside torch", facts.non_torch_bytes, usual, ""
    yield (
        "lost_room",
        "reserved before, and no longer available",
        facts.lost_room_bytes or None,
        "other processes or libraries have allocated at least this much since",
        "",
    )
    peers = f"{counted(len(facts.peers_peak_bytes), 'other rank')}, so far"
    above, median = above_peers_bytes(facts), median_peer_bytes(facts)
    if above is None:
        return
    yield "median_peer", "median peak of the others", median, "", peers
    yield (
        "above_peers",
        "live at the error, above that median",
        above,
        "pipeline stages differ by design",
        f"{case.scope}, against {peers}",
    )
