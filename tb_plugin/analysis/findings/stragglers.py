"""A rule over the ranks of a step: some are slower than all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.collector.format.sizes import agreeing, capitalized, the_other
from memboard.tb_plugin.analysis.findings.text import (
    PART_TEXT,
    duration_text,
    of_rank,
    percent,
    seconds,
    share_text,
    some_of,
)
from memboard.tb_plugin.api.findings import Advice, Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.analysis.ranks.stragglers import Straggler
    from memboard.tb_plugin.analysis.ranks.waiting import WaitingCost

MOST_LATE: Final = 0.25
"""Largest share of stragglers: beyond it there are two kinds of ranks."""
_MOST_NAMED: Final = 6
_GROUP_LENGTH: Final = 40
_SLOW_RANK: Final = (
    "Check that rank's batches (longest sequences?) and, on a GPU, its clock and temperature"
    " (see Timeline)."
)
_STRAGGLER_ADVICE: Final[dict[str, str]] = {
    "dataloader": "Compare that host's disk, CPU load and number of dataloader workers"
    " with the others' (see Timeline); check that its shard of the data is no larger.",
    "forward": _SLOW_RANK,
    "backward": _SLOW_RANK,
    "optimizer": "Check whether that rank holds more parameters than the others.",
    "zero_grad": "Check whether that rank holds more parameters than the others.",
    "eval": "Check whether that rank evaluates more than the others.",
    "checkpoint": "Write checkpoints from all ranks (sharded), or asynchronously.",
    "other": "Record a torch profile of that rank: the extra time is spent outside"
    " the timed parts.",
    "": "Record a torch profile of that rank: which part of its steps takes longer was not"
    " recorded.",
}

_TRACE_PART: Final = {
    "dataloader": PART_TEXT["dataloader"],
    "computation": "computation",
    "other": "work outside operators",
}
_TRACE_ADVICE: Final = {
    "dataloader": _STRAGGLER_ADVICE["dataloader"],
    "computation": _SLOW_RANK,
    "other": "Look at that rank's trace: the extra time is spent outside operators and"
    " collectives (Python, files, locks).",
}


class RunStraggler(NamedTuple):
    """The rank that the others of a run wait for, whatever page names it."""

    finding: Finding | None
    is_final: bool = True
    """Whether it stays so: all that decides it was read."""
    is_judged: bool = False
    """Whether the ranks of the cycle were compared: else none of them is cleared."""
    cycle: int | None = None
    """Of which cycle's collectives; None: of the only one, or of all recorded steps."""

    @property
    def stamp(self) -> tuple[object, ...]:
        """Another one where what is said of it changes."""
        sentence = None if self.finding is None else self.finding.sentence
        return sentence, self.is_judged, self.is_final, self.cycle

    @property
    def of_traces(self) -> Finding | None:
        """The finding, where it is not one of recorded steps."""
        is_late = self.finding is not None and self.finding.key == "late_rank"
        return self.finding if is_late else None

    def scope_text(self, preposition: str) -> str:
        """` of cycle 2`, behind what is said of the rank; empty: of the whole run."""
        return "" if self.cycle is None else f" {preposition} cycle {self.cycle}"


def straggling(
    late: Sequence[Straggler],
    hosts: Mapping[int, str],
    step_seconds: float,
    num_ranks: int,
) -> Finding | None:
    """Some ranks, the worst one first, are slower than all others."""
    if not late or len(late) > max(1, MOST_LATE * num_ranks):
        return None
    worst, part = late[0], late[0].part or "other"
    cost = worst.part_excess_seconds if worst.by_part else worst.excess_seconds
    # What another rank takes longer for is not said of this one.
    is_shared = len({straggler.part for straggler in late}) == 1
    only = "" if is_shared else f"rank {worst.rank} "
    where = f", {only}in {PART_TEXT[part]}" if worst.part else ""
    others = num_ranks - len(late)
    waiting_text = ""
    if worst.by_part:
        ranks = agreeing(others, "rank waits", "ranks wait")
        waiting_text = (
            f" All steps take equally long because the other {ranks} for"
            f" {agreeing(len(late), 'it', 'them')}."
        )
    verb, at_most = agreeing(len(late), "is", "are"), "" if len(late) == 1 else "up to "
    whose = f"rank {worst.rank}"
    label = f"longer in {PART_TEXT[part]}" if worst.by_part else "longer step"
    return Finding(
        id=f"straggler-{worst.rank}",
        key="straggler",
        severity="warning",
        title="Straggler",
        sentence=f"{_who(late, hosts)} {verb} slower than"
        f" {the_other(others, 'rank')}: {at_most}{duration_text(cost)} per step"
        f" ({share_text(cost / step_seconds)}) more than the median rank{where}.{waiting_text}",
        short=f"{_who(late, hosts)}: {at_most}{share_text(cost / step_seconds)} of a step"
        f" more than the median rank{where}.",
        rank=worst.rank,
        cost=cost,
        unit="seconds",
        advice=(
            Advice(
                ("" if is_shared else f"On rank {worst.rank}: ")
                + _STRAGGLER_ADVICE.get(worst.part, _STRAGGLER_ADVICE["other"]),
                cost,
                "seconds",
                ("excess",),
            ),
        ),
        evidence=(
            seconds("excess", label, cost, f"{whose}, median over steps", sure=True),
            percent(
                "slowest",
                "slowest rank",
                worst.slowest_share,
                f"{whose}, share of steps",
                sure=False,
            ),
            seconds("step", "step time of the median rank", step_seconds, "median"),
        ),
        place=of_rank("steps", worst.rank),
        rule="above the median rank by 5 % of the step's time and 5 robust deviations"
        f" of the ranks; at most {share_text(MOST_LATE)} of them",
    )


def waited_for(
    costs: Sequence[WaitingCost], cycle: int | None = None
) -> Finding | None:
    """Some ranks, the worst one first of `costs`, are waited for in collectives.

    `cycle`: of the profiler, which they are of; None: the only one.
    """
    late = [cost for cost in costs if cost.stands_out]
    if not late or len(late) > max(1, MOST_LATE * len(costs)):
        return None
    worst, others = late[0], len(costs) - 1
    where, advice = "", _STRAGGLER_ADVICE["other"]
    if worst.part:
        where = f" Rank {worst.rank} takes longer in {_TRACE_PART[worst.part]}."
        advice = _TRACE_ADVICE[worst.part]
    also = some_of([cost.rank for cost in late[1:]])
    also_text = f" Also waited for: rank {also}." if len(late) == 2 else ""
    if len(late) > 2:
        also_text = f" Also waited for: ranks {also}."
    group, kind = worst.collective
    most_text = (
        f"mostly in {kind}{f' of group {group[:_GROUP_LENGTH]}' if group else ''}"
    )
    seconds_waited = worst.cost_ns / 1e9
    in_cycle = "" if cycle is None else f" in cycle {cycle}"
    steps_text = "profiled steps" if cycle is None else f"the steps of cycle {cycle}"
    return Finding(
        id=f"late_rank-{worst.rank}",
        key="late_rank",
        severity="warning",
        title="Straggler",
        sentence=f"{capitalized(the_other(others, 'rank'))}"
        f" {agreeing(others, 'waits', 'wait')} for rank {worst.rank}{in_cycle}:"
        f" {duration_text(seconds_waited)} per step ({share_text(worst.share)}),"
        f" {most_text}.{where}{also_text}",
        rank=worst.rank,
        cost=100 * worst.share,
        unit="percent",
        evidence=(
            seconds(
                "waiting",
                "the others' waiting beyond its own",
                seconds_waited,
                f"median over {steps_text}",
                sure=True,
            ),
            percent(
                "share", "waiting for it", worst.share, "the median step", sure=True
            ),
            *(
                (
                    seconds(
                        "excess",
                        f"longer in {_TRACE_PART[worst.part]}",
                        worst.part_excess_ns / 1e9,
                        f"rank {worst.rank}, median over {steps_text}",
                        sure=True,
                    ),
                )
                if worst.part
                else ()
            ),
        ),
        advice=(Advice(advice, 100 * worst.share, "percent", ("waiting",)),),
        place=of_rank("trace", worst.rank),
        rule="others wait in collectives beyond its own waiting: 5 % of the step's time,"
        " 5 robust deviations of the ranks, and in more steps than chance makes of any rank"
        " in 1 % of all trainings",
    )


def _who(late: Sequence[Straggler], hosts: Mapping[int, str]) -> str:
    """`Rank 12 on node3`, `3 ranks on node3 (12, 13, 14)`."""
    names = {hosts.get(straggler.rank, "") for straggler in late}
    on = f" on {min(names)}" if len(names) == 1 and min(names) else ""
    if len(late) == 1:
        return f"Rank {late[0].rank}{on}"
    named = ", ".join(str(straggler.rank) for straggler in late[:_MOST_NAMED])
    more = ", ..." if len(late) > _MOST_NAMED else ""
    return f"{len(late):,} ranks{on} ({named}{more})"
