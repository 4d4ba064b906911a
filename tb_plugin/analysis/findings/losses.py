"""Findings about steps and traces that the recording lacks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted, part_of
from memboard.tb_plugin.api.findings import Advice, Evidence, Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memboard.tb_plugin.api.overview import LostSteps, LostTrace, RankLoss

KEY: Final = "steps_missing"
TRACES_KEY: Final = "traces_missing"
KEYS: Final = frozenset((KEY, TRACES_KEY))

_MAX_RANGES: Final = 3
_MAX_TRACES: Final = 8
"""Of one cause that are named in a sentence."""
_MAX_CAUSES: Final = 4
_TRACE: Final = "profiler trace"
_MAX_OTHERS: Final = 16
_BEHIND: Final = (
    "The writer fell behind. If the disk was slow or full, record to another one: a mirror"
    " (remote.url) copies the files from there later. If all processors were busy, leave one"
    " to it."
)
_CUT: Final = (
    "If the program was ended early, a shorter flush_seconds leaves less to write at its end;"
    " if the disk was slow or full, record to another one."
)
_DAMAGED: Final = (
    "What is damaged cannot be recovered here. If the file is a copy, copy it again; else"
    " check the disk."
)


def steps_missing(losses: Sequence[RankLoss]) -> Finding | None:
    """One finding for all ranks that lack steps; None where none does."""
    lacking = _worst_first(losses, lambda loss: loss.num_lost)
    if not lacking:
        return None
    advice = []
    if any(loss.num_dropped for loss in lacking):
        advice.append(Advice(_BEHIND))
    if any(loss.num_unwritten for loss in lacking):
        advice.append(Advice(_CUT))
    if any(loss.num_damaged for loss in lacking):
        advice.append(Advice(_DAMAGED))
    return _finding(
        KEY,
        "Steps are missing",
        missing_sentence(losses),
        lacking,
        _account,
        first_step=next((part.first_step for part in lacking[0].damaged), None),
        evidence=tuple(_evidence(lacking[0])),
        advice=tuple(advice),
    )


def traces_missing(losses: Sequence[RankLoss]) -> Finding | None:
    """One finding for all ranks that lack traces; None where none does."""
    lacking = _worst_first(losses, lambda loss: loss.num_lost_traces)
    if not lacking:
        return None
    worst = lacking[0]
    evidence = _evidence_of(worst, TRACES_KEY, "traces missing", worst.num_lost_traces)
    return _finding(
        TRACES_KEY,
        "Traces are missing",
        traces_sentence(losses),
        lacking,
        _traces_of,
        first_step=next((trace.first_step for trace in worst.lost_traces), None),
        evidence=(evidence,),
    )


def _worst_first(
    losses: Sequence[RankLoss], number: Callable[[RankLoss], int]
) -> list[RankLoss]:
    """Those that lack something, the one that lacks most before the others."""
    lacking = [loss for loss in losses if number(loss)]
    if lacking:
        lacking.insert(0, lacking.pop(lacking.index(max(lacking, key=number))))
    return lacking


def _finding(
    key: str,
    title: str,
    sentence: str,
    lacking: Sequence[RankLoss],
    account: Callable[[RankLoss], str],
    *,
    first_step: int | None,
    evidence: tuple[Evidence, ...],
    advice: tuple[Advice, ...] = (),
) -> Finding:
    """What ranks lack, in full of the first and by its account of each other one."""
    worst, *others = lacking
    return Finding(
        id=f"{key}-{worst.rank}",
        key=key,
        severity="warning",
        title=title,
        sentence=sentence,
        rank=worst.rank,
        step=first_step,
        evidence=evidence,
        advice=advice,
        others=tuple(f"Rank {other.rank}: {account(other)}." for other in others)[
            :_MAX_OTHERS
        ],
        place=Place("timeline", f"Show rank {worst.rank}", rank=worst.rank),
    )


def traces_sentence(losses: Sequence[RankLoss]) -> str:
    """The account of all ranks in one line; empty where no trace is lost."""
    lacking = [loss for loss in losses if loss.num_lost_traces]
    if not lacking:
        return ""
    worst = max(lacking, key=lambda loss: loss.num_lost_traces)
    ranks = len({loss.rank for loss in lacking})
    if ranks == 1:
        return f"Rank {worst.rank} lacks {_traces_of(worst)}."
    of = part_of(
        sum(loss.num_lost_traces for loss in lacking),
        sum(loss.num_traces for loss in lacking),
        _TRACE,
    )
    return f"{ranks:,} ranks lack {of}. Most on rank {worst.rank}: {_traces_of(worst)}."


def _traces_of(loss: RankLoss) -> str:
    """`2 of 8 profiler traces: steps 12 to 13, steps 16 to 17 (the disk is full)`."""
    by_cause: dict[str, list[str]] = {}
    for trace in loss.lost_traces:
        by_cause.setdefault(trace.why.rstrip(". "), []).append(_steps_of(trace))
    named = [
        f"{', '.join(steps[:_MAX_TRACES])}{_more(len(steps))}{why and f' ({why})'}"
        for why, steps in tuple(by_cause.items())[:_MAX_CAUSES]
    ]
    if len(by_cause) > _MAX_CAUSES:
        named.append(counted(len(by_cause) - _MAX_CAUSES, "more cause"))
    of = part_of(loss.num_lost_traces, loss.num_traces, _TRACE)
    return f"{of}: {'; '.join(named)}"


def _steps_of(trace: LostTrace) -> str:
    first, last = trace.first_step, trace.last_step
    if first is None or last is None:
        return f"cycle {trace.cycle}"
    return f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"


def _more(num_steps: int) -> str:
    more = num_steps - _MAX_TRACES
    return f" and {counted(more, 'further one')}" if more > 0 else ""


def loss_line(losses: Sequence[RankLoss]) -> str:
    """All that is or may be missing, in one line; empty where nothing is."""
    missing = missing_sentence(losses), traces_sentence(losses)
    stopped = [loss for loss in losses if loss.is_stopped]
    if not stopped:
        return " ".join(filter(None, missing))
    steps = [loss.cut_steps for loss in stopped if loss.cut_steps is not None]
    seconds = max(loss.cut_seconds for loss in stopped)
    num_ranks = len({loss.rank for loss in stopped})
    who = f"Rank {stopped[0].rank}" if num_ranks == 1 else counted(num_ranks, "rank")
    about = f" (about {counted(math.ceil(sum(steps)), 'step')})" if steps else ""
    cut = (
        f"{who} stopped without closing the recording: up to the last {seconds:g} s{about}"
        " may be missing; more if the disk hung."
    )
    return " ".join(filter(None, (*missing, cut)))


def missing_sentence(losses: Sequence[RankLoss]) -> str:
    """The account of all ranks in one line; empty where nothing is lost."""
    lacking = [loss for loss in losses if loss.num_lost]
    if not lacking:
        return ""
    if len(lacking) == 1:
        return f"Rank {lacking[0].rank} lacks {_account(lacking[0])}."
    lost = sum(loss.num_lost for loss in lacking)
    steps = sum(loss.num_steps for loss in lacking)
    worst = max(lacking, key=lambda loss: loss.num_lost)
    ranks = len({loss.rank for loss in lacking})
    who = f"{ranks:,} ranks lack" if ranks > 1 else f"Rank {worst.rank} lacks"
    of = part_of(lost, steps, "step")
    most = f" Most on rank {worst.rank}: {_account(worst)}." if ranks > 1 else ""
    causes = "; ".join(_causes(lacking))
    return f"{who} {of}: {causes}.{most}"


def _account(loss: RankLoss) -> str:
    of = part_of(loss.num_lost, loss.num_steps, "step")
    return f"{of}: {'; '.join(_causes([loss]))}"


def _causes(losses: Sequence[RankLoss]) -> Iterator[str]:
    """Each cause with its number of steps."""
    dropped = sum(loss.num_dropped for loss in losses)
    unwritten = sum(loss.num_unwritten for loss in losses)
    damaged = sum(loss.num_damaged for loss in losses)
    if dropped:
        yield f"{dropped:,} dropped in the queue, which was full"
    if unwritten:
        yield f"{unwritten:,} not written when the program ended"
    if damaged:
        ranges = ""
        if len(losses) == 1:
            ranges = f" ({_ranges(losses[0].damaged)})"
        yield f"{damaged:,} damaged on disk{ranges}"


def _ranges(parts: Sequence[LostSteps]) -> str:
    """The longest, in their order."""
    longest = sorted(parts, key=lambda part: -part.num_steps)[:_MAX_RANGES]
    named = ", ".join(_range(part) for part in parts if part in longest)
    more = len(parts) - len(longest)
    return f"{named} and {counted(more, 'more range')}" if more else named


def _range(part: LostSteps) -> str:
    phase = "" if part.phase == "train" else f" of {part.phase}"
    first, last = part.first_step, part.last_step
    if not part.phase:
        return f"{part.num_steps:,} whose place is not known"
    if first is None and last is None:
        return f"all steps{phase}"
    if first is None:
        return f"up to step {last:,}{phase}"
    if last is None:
        return f"from step {first:,}{phase}"
    if first == last:
        return f"step {first:,}{phase}"
    return f"steps {first:,} to {last:,}{phase}"


def _evidence(loss: RankLoss) -> Iterator[Evidence]:
    for key, label, number in (
        (KEY, "steps missing", loss.num_lost),
        ("steps_taken", "steps taken", loss.num_steps),
        ("steps_dropped", "dropped in the queue", loss.num_dropped),
        ("steps_unwritten", "not written when the program ended", loss.num_unwritten),
        ("steps_damaged", "damaged on disk", loss.num_damaged),
    ):
        if number:
            yield _evidence_of(loss, key, label, number)


def _evidence_of(loss: RankLoss, key: str, label: str, number: int) -> Evidence:
    of = f"rank {loss.rank}, attempt {loss.attempt}"
    return Evidence(key, label, float(number), "count", of)
