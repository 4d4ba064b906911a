"""The finding about steps that training took and the recording lacks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from collector.format.sizes import counted, part_of
from tb_plugin.api.findings import Advice, Evidence, Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tb_plugin.api.overview import LostSteps, RankLoss

KEY: Final = "steps_missing"

_MAX_RANGES: Final = 3
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
    lacking = [one for one in losses if one.num_lost]
    if not lacking:
        return None
    worst = max(lacking, key=lambda one: one.num_lost)
    advice = []
    if any(one.num_dropped for one in lacking):
        advice.append(Advice(_BEHIND))
    if any(one.num_unwritten for one in lacking):
        advice.append(Advice(_CUT))
    if any(one.num_damaged for one in lacking):
        advice.append(Advice(_DAMAGED))
    return Finding(
        id=f"{KEY}-{worst.rank}",
        key=KEY,
        severity="warning",
        title="Steps are missing",
        sentence=missing_sentence(losses),
        rank=worst.rank,
        step=next((part.first_step for part in worst.damaged), None),
        evidence=tuple(_evidence(worst)),
        advice=tuple(advice),
        others=tuple(
            f"Rank {one.rank}: {_account(one)}." for one in lacking if one is not worst
        )[:_MAX_OTHERS],
        place=Place("timeline", f"Show rank {worst.rank}", rank=worst.rank),
    )


def loss_line(losses: Sequence[RankLoss]) -> str:
    """All that is or may be missing, in one line; empty where nothing is."""
    stopped = [one for one in losses if one.is_stopped]
    if not stopped:
        return missing_sentence(losses)
    steps = [one.cut_steps for one in stopped if one.cut_steps is not None]
    seconds = max(one.cut_seconds for one in stopped)
    num_ranks = len({one.rank for one in stopped})
    who = f"Rank {stopped[0].rank}" if num_ranks == 1 else counted(num_ranks, "rank")
    about = f" (about {counted(math.ceil(sum(steps)), 'step')})" if steps else ""
    cut = (
        f"{who} stopped without closing the recording: up to the last {seconds:g} s{about}"
        " may be missing."
    )
    return " ".join(filter(None, (missing_sentence(losses), cut)))


def missing_sentence(losses: Sequence[RankLoss]) -> str:
    """The account of all ranks in one line; empty where nothing is lost."""
    lacking = [one for one in losses if one.num_lost]
    if not lacking:
        return ""
    if len(lacking) == 1:
        return f"Rank {lacking[0].rank} lacks {_account(lacking[0])}."
    lost = sum(one.num_lost for one in lacking)
    steps = sum(one.num_steps for one in lacking)
    worst = max(lacking, key=lambda one: one.num_lost)
    ranks = len({one.rank for one in lacking})
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
    dropped = sum(one.num_dropped for one in losses)
    unwritten = sum(one.num_unwritten for one in losses)
    damaged = sum(one.num_damaged for one in losses)
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
    of = f"rank {loss.rank}, attempt {loss.attempt}"
    for key, label, number in (
        ("steps_missing", "steps missing", loss.num_lost),
        ("steps_taken", "steps taken", loss.num_steps),
        ("steps_dropped", "dropped in the queue", loss.num_dropped),
        ("steps_unwritten", "not written when the program ended", loss.num_unwritten),
        ("steps_damaged", "damaged on disk", loss.num_damaged),
    ):
        if number:
            yield Evidence(key, label, float(number), "count", of)
