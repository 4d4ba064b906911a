"""Small summaries of all ranks of a cycle: there are more of them than open traces."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.ranks.distributed import ComparedRanks, compared
from memboard.tb_plugin.analysis.ranks.rank_steps import RankSteps
from memboard.tb_plugin.analysis.ranks.waiting import waiting_costs
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.cache import Cache, held_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.ranks.collectives import RankCollectives
    from memboard.tb_plugin.analysis.ranks.waiting import WaitingCost
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace.trace import Problem
    from memboard.tb_plugin.jobs.trace_sources import (
        FoundSource,
        TraceJob,
        TraceSources,
    )

    Ints: TypeAlias = npt.NDArray[Any]

_COST_BYTES: Final = 512
"""Of one rank's cost, with its texts."""
_GLANCE_SECONDS: Final = 0.05
_IN_FLIGHT: Final = 8
"""Traces that are compared at once, so that none is let go before it was looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class RankSummary:
    """What ranks are compared by; columns of (steps,)."""

    rank: int
    step: Ints
    start_ns: Ints
    duration_ns: Ints
    computation_ns: Ints
    communication_ns: Ints
    overlap_ns: Ints
    loading_ns: Ints
    collectives: RankCollectives
    world_size: int = NOTHING
    """How many ranks the training has; NOTHING where its trace does not say it."""
    problem: Problem | None = None
    """The first thing that was left out of its trace."""
    is_empty: bool = False
    """Whether its trace has nothing to show."""


class RankSummaries:
    """All of one plugin. Safe for threads."""

    def __init__(self, sources: TraceSources) -> None:
        self._sources = sources
        self._summaries = Cache()
        self._compared = Cache()

    def summaries(
        self, run_id: str, traces: Sequence[FoundSource], seconds: float
    ) -> tuple[list[RankSummary], list[TraceJob]]:
        """Those there are after at most so long, and traces that cannot be opened.

        Traces that are neither are still being opened: ask again.
        """
        until = time.monotonic() + seconds
        summary_by_place: dict[int, RankSummary] = {}
        failed: list[TraceJob] = []
        waiting: list[tuple[int, FoundSource]] = []
        for place, trace in enumerate(traces):
            known_summary = self._known(run_id, trace)
            if known_summary is None:
                waiting.append((place, trace))
            else:
                summary_by_place[place] = known_summary
        while waiting and (not summary_by_place or time.monotonic() < until):
            now, waiting = waiting[:_IN_FLIGHT], waiting[_IN_FLIGHT:]
            asked = [
                (place, trace, self._sources.open(run_id, trace))
                for place, trace in now
            ]
            for place, trace, opening in asked:
                opening.wait(max(0.0, until - time.monotonic()))
                summary = self._summarised(run_id, trace, opening)
                if summary is not None:
                    summary_by_place[place] = summary
                elif opening.problem is not None:
                    failed.append(opening)
            if time.monotonic() >= until:
                break
        return [summary_by_place[place] for place in sorted(summary_by_place)], failed

    def beside(
        self, run_id: str, traces: Sequence[FoundSource], *, opens: bool
    ) -> tuple[list[RankSummary], bool]:
        """Summaries of all that can be opened, and whether some are being opened.

        There are none before all are there: of some ranks another one comes last. Hardly
        waits. `opens`: whether those that are not open are opened, some at a time.
        """
        if opens:
            summaries, failed = self.summaries(run_id, traces, _GLANCE_SECONDS)
            num_done = len(summaries) + len(failed)
        else:
            made = (self._known(run_id, trace) for trace in traces)
            summaries = [summary for summary in made if summary is not None]
            num_done = len(summaries) + sum(
                self._has_failed(run_id, trace) for trace in traces
            )
        is_whole = num_done == len(traces)
        return summaries if is_whole else [], opens and not is_whole

    def add(self, run_id: str, trace: FoundSource, summary: RankSummary) -> None:
        """Take the summary of a trace that somebody else has open."""
        key = (run_id, trace.id, *trace.key)
        self._summaries.put(key, summary, held_bytes(summary))

    def compared(self, summaries: Sequence[RankSummary]) -> ComparedRanks:
        """The collectives of ranks beside each other; of each rank the last one counts."""
        key = tuple(summaries)
        comparison: ComparedRanks | None = self._compared.get(key)
        if comparison is None:
            of_rank = {summary.rank: summary.collectives for summary in summaries}
            comparison = compared(of_rank, world_size_of(summaries))
            self._compared.put(key, comparison, held_bytes(comparison))
        return comparison

    def waiting_costs(self, summaries: Sequence[RankSummary]) -> Sequence[WaitingCost]:
        """What each of these ranks, one summary a rank, costs the others."""
        key = ("waiting", *summaries)
        costs: Sequence[WaitingCost] | None = self._compared.get(key)
        if costs is None:
            costs = waiting_costs(steps_of(summaries), self.compared(summaries))
            self._compared.put(key, costs, len(costs) * _COST_BYTES)
        return costs

    def _known(self, run_id: str, trace: FoundSource) -> RankSummary | None:
        summary: RankSummary | None = self._summaries.get(
            (run_id, trace.id, *trace.key)
        )
        return summary

    def _has_failed(self, run_id: str, trace: FoundSource) -> bool:
        job = self._sources.known((run_id, trace.id, *trace.key))
        return job is not None and job.failure is not None

    def _summarised(
        self, run_id: str, trace: FoundSource, opening: TraceJob
    ) -> RankSummary | None:
        if opening.result is None:
            return None
        profile = opening.result.profile
        summary = opening.derived(lambda _: rank_summary_of(profile, trace.rank))
        if summary is None:
            return None
        self.add(run_id, trace, summary)
        return summary


def steps_of(ranks: Sequence[RankSummary]) -> RankSteps:
    """The profiled steps of these ranks, one rank after the other."""
    num_steps = [len(rank.step) for rank in ranks]

    def joined(attribute: str) -> Ints:
        return np.concatenate(
            [*(getattr(rank, attribute) for rank in ranks), np.empty(0, np.int64)]
        )

    return RankSteps(
        ranks=np.array([rank.rank for rank in ranks], np.int64),
        row=np.repeat(np.arange(len(ranks)), num_steps),
        step=joined("step"),
        start_ns=joined("start_ns"),
        duration_ns=joined("duration_ns"),
        computation_ns=joined("computation_ns"),
        communication_ns=joined("communication_ns"),
        overlap_ns=joined("overlap_ns"),
        loading_ns=joined("loading_ns"),
    )


def world_size_of(summaries: Iterable[RankSummary]) -> int:
    """How many ranks there are at least, as traces say it, or by the highest rank."""
    sizes = [max(summary.world_size, summary.rank + 1) for summary in summaries]
    return max(sizes, default=0)


def one_each(summaries: Iterable[RankSummary]) -> list[RankSummary]:
    """By rank, ascending; of several traces of a rank the last."""
    by_rank = {summary.rank: summary for summary in summaries}
    return [by_rank[rank] for rank in sorted(by_rank)]


def rank_summary_of(profile: TraceProfile, rank: int | None) -> RankSummary:
    """What is kept of one rank; `rank`: as its file is listed, None: as its trace says."""
    steps, parts = profile.steps, profile.parts
    return RankSummary(
        rank=profile.trace.facts.rank if rank is None else rank,
        step=steps.number,
        start_ns=steps.start_ns,
        duration_ns=steps.end_ns - steps.start_ns,
        computation_ns=parts.computation_ns,
        communication_ns=parts.communication_ns,
        overlap_ns=parts.overlap_ns,
        loading_ns=parts.parts_ns[:, Role.DATALOADER],
        collectives=profile.collectives,
        world_size=profile.trace.facts.world_size,
        problem=next(iter(profile.trace.problems), None),
        is_empty=profile.trace.is_empty,
    )
