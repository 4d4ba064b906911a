"""The verdict on an error: its heaviest cause, and the finding made of it.

Each cause is tested by what would have been otherwise without it, and weighed by the
bytes that it took. One that would have made the difference *holds*; one that holds is
*major* from `MAJOR` of the room on (free blocks: `MAJOR_FREE`), and the heaviest major one
is the verdict. Where none is, the limit in force or else a full device is the verdict;
where it is not full either, the heaviest that holds; where there is none, it is unsure.
So it is where the device had room and no limit was recorded, and where nothing says how
much the device has: a full device is then no more likely than one that is shared.
All others are named beside it, and so is what does not hold, from `MINOR` of the room on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.collector.format.sizes import capitalized, counted
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.analysis.oom.case import NAMES
from memboard.tb_plugin.analysis.oom.evidence import evidence_of
from memboard.tb_plugin.analysis.oom.live_advice import category_of, live_advice
from memboard.tb_plugin.analysis.oom.suspects import capacity, consumers, unusable_free
from memboard.tb_plugin.api.findings import Finding, HeldBy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.oom.case import Case, Cause, OomFacts, Suspect
    from memboard.tb_plugin.api.findings import Advice

MAX_ADVICE: Final = 6

RULES: Final = (
    unusable_free.fitting_block_free,
    unusable_free.fragmented,
    consumers.single_giant,
    consumers.non_torch,
    unusable_free.private_pools,
    unusable_free.pending_free,
    consumers.growth,
    consumers.imbalance,
    consumers.uncollected_cycles,
)

_SHORT: Final = frozenset(("growth", "uncollected_cycles", "imbalance", "non_torch"))
"""Causes with which less live memory would have helped as well."""

GOES_ON: Final = 20
"""Allocations behind an error from which on a program has survived it: unwinding makes
none, and a handler few."""


class Verdict(NamedTuple):
    """The cause, and what is named beside it, the heaviest first."""

    leads: Suspect
    beside: tuple[Suspect, ...]

    @property
    def cause(self) -> Cause:
        return self.leads.cause

    @property
    def also(self) -> tuple[Cause, ...]:
        return tuple(suspect.cause for suspect in self.beside)


def verdict(case: Case) -> Verdict:
    """The verdict that the facts allow."""
    suspects = [suspect for rule in RULES if (suspect := rule(case)) is not None]
    suspects.sort(key=lambda suspect: -suspect.num_bytes)
    is_limited = case.facts.is_limited or case.setup.is_rejected
    if case.facts.has_room and not is_limited:
        # Whatever took memory, the device had enough: it explains nothing.
        return Verdict(capacity.refused(case), ())
    leads = next(
        (suspect for suspect in suspects if unusable_free.fits_here(case, suspect)),
        None,
    )
    if leads is None:
        leads = next((suspect for suspect in suspects if suspect.is_major), None)
    if leads is None and is_limited:
        leads = capacity.process_limit(case)
    if leads is None and capacity.is_full(case.facts):
        is_known = capacity.knows_total(case.facts)
        leads = capacity.really_full(case) if is_known else capacity.unknown_total(case)
    if leads is None:
        holding = (suspect for suspect in suspects if suspect.holds)
        leads = next(holding, None) or capacity.unsure(case)
    beside = [suspect for suspect in suspects if suspect is not leads]
    if is_limited and leads.cause != "process_limit":
        beside.insert(0, capacity.process_limit(case))
    return Verdict(leads, tuple(beside))


def oom_finding(
    finding_id: str, case: Case, *, num_earlier: int = 0, num_later: int = 0
) -> Finding:
    """An out-of-memory error: its cause, what holds beside it, and what to do.

    Args:
        finding_id: Of the finding.
        case: What is known of the error.
        num_earlier: Errors before it that the program survived.
        num_later: Allocations after it; see `GOES_ON`.
    """
    judged = verdict(case)
    leads = judged.leads
    asked = _asked_text(case)
    why = leads.why if asked else capitalized(leads.why)
    asides = [suspect.aside for suspect in judged.beside if suspect.aside]
    sentence = " ".join([asked + why, *asides])
    return Finding(
        id=finding_id,
        key=leads.cause,
        severity="error",
        title=f"Out of memory: {NAMES[leads.cause]}",
        sentence=sentence + survived_text(num_earlier, num_later),
        line=_culprit(case, leads.cause),
        device=case.device,
        cost=float(leads.num_bytes) or None,
        also=tuple(NAMES[cause] for cause in judged.also),
        evidence=evidence_of(case, leads.decisive),
        advice=_advice(case, judged),
        rule=leads.rule,
    )


def ended_finding(
    finding_id: str, case: Case, *, by_signal: bool, message: str
) -> Finding:
    """A process that ended without running out of memory; `message`: how it ended."""
    return Finding(
        id=finding_id,
        key="ended",
        severity="error",
        title=f"Ended by {'a signal' if by_signal else 'an exception'}",
        sentence=_ended_text(case.facts, message),
        line=case.asked_at,
        device=case.device,
        evidence=evidence_of(case, ()),
    )


def _culprit(case: Case, cause: Cause) -> str:
    """The line that the memory went to; empty where no line is to blame."""
    growth, pending = case.facts.growth, case.facts.pending
    lines: Sequence[str] = ()
    if cause in ("single_giant", "unsure"):
        lines = (case.asked_at,)
    elif cause == "growth" and growth is not None:
        lines = growth.lines
    elif cause == "pending_free" and pending is not None:
        lines = pending.lines
    elif cause in ("really_full", "process_limit", "imbalance"):
        lines = [holder.label for holder in case.holders]
    return next(iter(lines), "")


def _advice(case: Case, judged: Verdict) -> tuple[Advice, ...]:
    """For the cause first, then for what holds beside it."""
    advice = list(judged.leads.advice)
    for suspect in judged.beside:
        advice += suspect.advice if suspect.beside is None else suspect.beside
    if judged.cause in _SHORT:
        advice += live_advice(case)
    unique = {(item.text, item.setting): item for item in advice}
    return tuple(unique.values())[:MAX_ADVICE]


def _asked_text(case: Case) -> str:
    """What failed, and where; a limit that is in force comes first."""
    facts = case.facts
    asked, unused = facts.requested_bytes, facts.device_free_bytes
    if asked is None:
        return ""
    where = f" at {case.asked_at}" if case.asked_at else ""
    failed = f"n allocation of {size_text(asked)}{where}"
    if unused is None:
        return f"A{failed} failed: "
    if not facts.has_room:
        looks_alike = size_text(asked) == size_text(unused) and asked > unused
        less = f", {size_text(asked - unused)} too little" if looks_alike else ""
        return f"A{failed} failed with {size_text(unused)} free on the device{less}: "
    if facts.limit_bytes is None or not facts.is_limited:
        return f"A{failed} failed though the device had {size_text(unused)} free: "
    return (
        f"A limit of {size_text(facts.limit_bytes)} on this process ({case.setup.limited_by}) refused"
        f" a{failed}, though the device had {size_text(unused)} free: "
    )


def survived_text(num_earlier: int, num_later: int) -> str:
    """How many errors the program survived before this one, and whether it went on."""
    sentences = ""
    if num_earlier == 1:
        sentences = " The program had already survived one out-of-memory error."
    elif num_earlier:
        sentences = (
            f" The program had already survived {num_earlier:,} out-of-memory errors."
        )
    if num_later >= GOES_ON:
        sentences += (
            f" The program also continued after this one: {counted(num_later, 'allocation')}"
            " followed."
        )
    return sentences


def _ended_text(facts: OomFacts, message: str) -> str:
    """What was held when a process ended otherwise."""
    live_bytes, share = facts.held_bytes, capacity.full_share(facts)
    how = message.strip().splitlines()[0][:200] if message.strip() else "cause unknown"
    ended = f"The process ended ({how})"
    if live_bytes is None:
        return f"{ended}; its memory was not recorded."
    of_room = ""
    if share is not None and facts.room_bytes is not None:
        of_room = f" of the {size_text(facts.room_bytes)} available to torch"
    return f"{ended} while {size_text(live_bytes)} was live{of_room}."


def held_by(case: Case) -> tuple[HeldBy, ...]:
    """The lines that held the memory, and those whose blocks wait to be freed."""
    return tuple(
        HeldBy(
            label=holder.label,
            category=category_of(holder),
            bytes=float(holder.num_bytes),
            share=holder.share,
            num_blocks=holder.num_blocks,
            is_pending=holder.is_pending,
        )
        for holder in case.active or case.holders
    )
