"""Causes by which something took the memory that the request needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.conditions import (
    advice_if,
    advice_of,
    unknown_line_advice,
)
from memboard.tb_plugin.analysis.findings.cycles import (
    EXPERIMENT_ADVICE,
    RELEASED_ADVICE,
    UNCOLLECTED_ADVICE,
    cycles_advice,
    cycles_text,
)
from memboard.tb_plugin.analysis.findings.text import (
    at_lines,
    let_go_text,
    lines_text,
    pools_text,
    share_text,
    size_text,
)
from memboard.tb_plugin.analysis.oom.case import (
    MAJOR,
    MAJOR_FREE,
    MANY_POOLS,
    Suspect,
    weighed,
)
from memboard.tb_plugin.analysis.oom.live_advice import holding_advice

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.oom.case import Case, Growth, OomFacts
    from memboard.tb_plugin.api.findings import Advice

GIANT: Final = 2.0
SPARE: Final = 0.25


def single_giant(case: Case) -> Suspect | None:
    """The request is far larger than any before while there was room, or than the device."""
    facts, asked = case.facts, case.facts.requested_bytes
    before, live_bytes, room = (
        facts.largest_before_bytes,
        facts.held_bytes,
        facts.room_bytes,
    )
    if asked is None or not room:
        return None
    has_spare = live_bytes is not None and live_bytes <= (1 - SPARE) * room
    unheard_of = before is not None and asked >= GIANT * before and has_spare
    sizes = (facts.limit_bytes, facts.capacity_bytes)
    device = min((size for size in sizes if size is not None), default=None)
    if not unheard_of and (device is None or asked <= device):
        return None
    beyond = asked - (before or 0)
    where = f" at {case.asked_at}" if case.asked_at else ""
    why = "this one allocation is the cause"
    if before:
        why += (
            f", {asked / before:,.1f} times the largest before it ({size_text(before)})"
        )
    if live_bytes is not None:
        why += f"; {size_text(live_bytes)} was live"
    return Suspect(
        "single_giant",
        beyond,
        beyond >= MAJOR * room,
        why + ".",
        f"{GIANT:g} times as large as any request before, while {share_text(SPARE)} of"
        f" the memory available to torch was not in use; or larger than the device",
        ("requested", "largest_before"),
        (
            advice_of(
                f"Make this one request smaller{where}:"
                " compute it in chunks, for fewer elements at once, or in a smaller"
                " data type.",
                beyond,
                "requested",
                "largest_before",
            ),
        ),
    )


USUAL_NON_TORCH_BYTES: Final = 2 << 30
"""A context takes 0.3 to 0.9 GiB, communicators of a few groups about 1 GiB."""


def non_torch(case: Case) -> Suspect | None:
    """What is used beside torch, beyond what is usual, would have covered it."""
    facts, beyond = case.facts, excess_non_torch_bytes(case.facts)
    device = facts.capacity_bytes or facts.room_bytes or 0
    weight = weighed(beyond or 0, facts.missing_bytes or 0, device)
    if not beyond or facts.is_limited or weight is None:
        return None
    used = facts.non_torch_bytes
    if used is not None and facts.capacity_bytes is not None:
        why = (
            f"{size_text(used)} of the device's {size_text(facts.capacity_bytes)} was"
            " used outside torch's allocator."
        )
    else:
        why = (
            f"at least {size_text(beyond)} that torch had reserved before was used by"
            f" other processes or libraries."
        )
    return Suspect(
        "non_torch",
        beyond,
        weight[0],
        why,
        "memory used outside torch exceeds the usual (other ranks, earlier steps, else"
        f" {size_text(USUAL_NON_TORCH_BYTES)}), from {share_text(MAJOR)} of the device on",
        ("non_torch", "lost_room"),
        (
            advice_of(
                "Check what else uses the device (its processes:"
                f" {case.setup.device_tool}): another job, ranks that share this device, libraries that allocate"
                " on their own.",
                beyond,
                "non_torch",
                "lost_room",
            ),
        ),
        holds=weight[1],
    )


def excess_non_torch_bytes(facts: OomFacts) -> int | None:
    """Used beside torch beyond what is usual; at least what torch had and lost."""
    used, usual = facts.non_torch_bytes, facts.usual_non_torch_bytes
    beyond = None
    if used is not None:
        beyond = max(0, used - (USUAL_NON_TORCH_BYTES if usual is None else usual))
    sizes = [size for size in (beyond, facts.lost_room_bytes) if size is not None]
    return max(sizes, default=None)


def growth(case: Case) -> Suspect | None:
    """What was kept from round to round would have covered it."""
    facts, grown, word = case.facts, case.facts.growth, case.round_word
    if grown is None:
        return None
    taken, room = grown.num_bytes, facts.room_bytes or 0
    weight = weighed(taken, facts.missing_bytes or 0, room)
    if not taken or weight is None or _is_captured(facts, grown):
        return None
    if _is_of_cycles(facts, grown):
        return None
    filled = "its limit" if facts.is_limited else "the GPU"
    by = f" by {lines_text(grown.lines)}" if grown.lines else ""
    rate = f"{size_text(grown.bytes_per_round)} per {word}"
    late = grown.late_bytes_per_round
    if late is not None and late > 0:
        rate += f", and {size_text(late)} per {word} in the last third"
    elif late is not None:
        rate += f", but not in the last third of the {word}s"
    released = ""
    if grown.num_releases:
        released = (
            f"; {counted(grown.num_releases, 'time')} before, that of several {word}s was"
            " freed together, as the garbage collector frees reference cycles or a program"
            " a list that it clears"
        )
    at_source = at_lines(grown.lines)

    return Suspect(
        "growth",
        taken,
        weight[0],
        f"memory retained across {word}s filled {filled}, {size_text(taken)}{by}, growing"
        f" {rate}{released}.",
        f"retained memory covers the shortage, and is at least {share_text(MAJOR)} of"
        f" the memory available to torch",
        ("growth", "growth_per_round"),
        _growth_advice(
            case, grown, f"Find what retains memory from {word} to {word}{at_source}"
        ),
        _growth_advice(
            case, grown, f"Every {word} retains some memory as well{at_source}"
        ),
        holds=weight[1],
    )


def _growth_advice(case: Case, growth: Growth, advice_text: str) -> tuple[Advice, ...]:
    """`advice_text`: the beginning of the advice on what retains it."""
    taken, because = growth.num_bytes, ("growth", "growth_per_round")
    holdings = holding_advice(case, ("no_backward", "kv_cache", "prefetched"))
    runs, is_released = case.facts.num_full_collections, growth.num_releases > 0
    if case.facts.cycles is not None:
        runs, is_released = 1, False  # their own advice says more
    # A tensor in a list, its graph or a number is advice on lines that were recorded.
    let_go = let_go_text(advice_text, trains=case.trains is True)
    if growth.in_pools:
        let_go = pools_text(advice_text)
    is_known = bool(growth.lines) or growth.in_pools
    return (
        *holdings,
        *advice_if(is_known, let_go, taken, *because),
        *(() if is_known else unknown_line_advice(case.setup, replayed=case.replayed)),
        *advice_if(is_released, RELEASED_ADVICE, taken, "growth"),
        *advice_if(not is_released and runs == 0, UNCOLLECTED_ADVICE, None, "growth"),
        *advice_if(
            not (is_released or is_known) and runs is None,
            EXPERIMENT_ADVICE,
            None,
            "growth",
        ),
    )


def _is_captured(facts: OomFacts, growth: Growth) -> bool:
    """Whether what grew by the step table is what graphs captured: no line retains it."""
    captured = facts.captured
    return (
        growth.by == "series"
        and captured is not None
        and captured.num >= MANY_POOLS
        and captured.num_bytes >= EXPLAINS * growth.num_bytes
    )


EXPLAINS: Final = 0.5
"""Of what grew: what explains as much of it is named instead."""


MOSTLY: Final = 0.8
"""Of what grew: cycles that hold as much are what grew."""


def _is_of_cycles(facts: OomFacts, growth: Growth) -> bool:
    cycles = facts.cycles
    return cycles is not None and cycles.held_bytes >= MOSTLY * growth.num_bytes


def uncollected_cycles(case: Case) -> Suspect | None:
    """What the garbage collector freed in the steps before, and had not freed again.

    It is always named where the steps' rows show it; it counts up to what memory rose by
    since it last fell.
    """
    facts, teeth = case.facts, case.facts.cycles
    if teeth is None:
        return None
    in_cycles_bytes, room = teeth.held_bytes, facts.room_bytes or 0
    who = "the program's gc.collect()" if teeth.is_called else "the garbage collector"
    grown = facts.growth
    lines = () if grown is None or not _is_of_cycles(facts, grown) else grown.lines
    quoted = cycles_text(teeth, "The device memory of this rank")
    since = f"Since the last of these falls it had risen by {size_text(teeth.rise)}."
    return Suspect(
        "uncollected_cycles",
        in_cycles_bytes,
        in_cycles_bytes >= MAJOR * room,
        f"up to {size_text(in_cycles_bytes)} was held by reference cycles{at_lines(lines)} that"
        f" {who} had not freed yet. {quoted} {since}",
        "memory at the end of steps fell when the garbage collector ran; what it rose by"
        " since the last time, at most as fast as before or by what one run freed, covers"
        f" the shortage, and is at least {share_text(MAJOR)} of the memory available to torch",
        ("cycles", "fall"),
        cycles_advice(teeth, on_device=True),
        holds=in_cycles_bytes >= max(1, facts.missing_bytes or 0),
        aside=f"{quoted} {since}",
    )


UNEVEN: Final = 1.2


def imbalance(case: Case) -> Suspect | None:
    """This rank holds much more than its peers, and with their median it would do.

    Growth that makes up half of the difference explains it and is named instead.
    """
    facts = case.facts
    above, median = above_peers_bytes(facts), median_peer_bytes(facts)
    room, missing = facts.room_bytes or 0, facts.missing_bytes or 0
    if above is None or median is None or above < missing or above <= 0:
        return None
    grown = 0 if facts.growth is None else facts.growth.num_bytes
    is_explained = grown >= EXPLAINS * above
    is_uneven = above + median >= UNEVEN * median
    if is_explained or not is_uneven or above < MAJOR_FREE * room:
        return None
    peers = counted(len(facts.peers_peak_bytes), "peer")
    return Suspect(
        "imbalance",
        above,
        above >= MAJOR * room,
        f"this rank held {size_text(above)} more than the median peak of its {peers},"
        f" {size_text(median)}.",
        f"{UNEVEN:g} times the median of the peers' peaks, which would have been"
        f" served; at least {share_text(MAJOR)} of the memory available to torch",
        ("above_peers", "median_peer"),
        (
            advice_of(
                "Unless the ranks are stages of a pipeline, which differ by design, balance"
                " them: use equal batches, sequence lengths and shards. Compare this rank"
                " with another one line by line.",
                above,
                "above_peers",
                "median_peer",
            ),
        ),
    )


def above_peers_bytes(facts: OomFacts) -> int | None:
    """What this rank holds above the median of its peers' peaks."""
    median, live_bytes = median_peer_bytes(facts), facts.held_bytes
    return None if median is None or live_bytes is None else live_bytes - median


def median_peer_bytes(facts: OomFacts) -> int | None:
    """Median of the peers' peaks."""
    peaks = facts.peers_peak_bytes
    return int(np.median(peaks)) if peaks else None
