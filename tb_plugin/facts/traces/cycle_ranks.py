"""The ranks of one profiling cycle beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.tb_plugin.analysis.findings.stragglers import RunStraggler, waited_for
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.errors import NotReadyError
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.facts.traces.profiled import profiler_traces
from memboard.tb_plugin.facts.view import View
from memboard.tb_plugin.formats.recording.rank_summaries import one_each
from memboard.tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.formats.recording.rank_summaries import RankSummary
    from memboard.tb_plugin.jobs.trace_sources import FoundSource

_SECONDS: Final = 0.3
"""Of one answer for reading the ranks' steps; the next one goes on from there."""


def straggler_of(
    readers: RunReaders,
    summary: RunSummary,
    shown: Sequence[RankSummary],
    cycle: int | None,
    budget: Budget | None = None,
) -> RunStraggler:
    """Of all recorded steps where they tell one, else of a cycle's collectives.

    Args:
        readers: of the plugin.
        summary: of the run.
        shown: ranks of one profiling cycle, one summary a rank.
        cycle: as `named_cycle` says which.
        budget: for reading the ranks' steps; None: a little, and more at the next poll.
    """
    if summary.virtual_gpu:
        return RunStraggler(None)  # its times are not real
    of_steps = _of_recorded_steps(readers, summary, budget or Budget(_SECONDS))
    if of_steps is not None:
        return of_steps
    costs = readers.rank_summaries.waiting_costs(shown) if len(shown) > 1 else ()
    return RunStraggler(waited_for(costs, cycle), is_judged=bool(costs), cycle=cycle)


def _of_recorded_steps(
    readers: RunReaders, summary: RunSummary, budget: Budget
) -> RunStraggler | None:
    """None where the steps blame no rank."""
    with readers.reading(summary.id) as (run, _):
        if len(run.ranks) < 2 or run.made_of != "recording":
            return None
        query = RanksQuery(run=summary.id)
        view = View(readers.store.series, run, summary, query, budget)
        steps = readers.stragglers.of(view)
        if steps.num_left_out and budget.exhausted:
            return RunStraggler(None, is_final=False)
        by_key = {finding.key: finding for finding in steps.findings}
        if "straggler" in by_key:
            return RunStraggler(by_key["straggler"], is_judged=True)
        if "overloaded" in by_key:
            return RunStraggler(None)  # each waits for a core, none for a rank
        return None


MAX_BESIDE: Final = 64 << 20
"""Bytes of the files of a cycle's ranks that are opened to name the straggler, without
anybody looking at the ranks; larger ones count once they were opened."""


class CycleRanks(NamedTuple):
    """One summary of each rank of a profiling cycle, once all that can be are open."""

    summaries: Sequence[RankSummary] = ()
    cycle: int | None = None
    """The number that `named_cycle` returns."""
    is_opening: bool = False
    """Whether they will be there."""


def newest_cycle(traces: Sequence[FoundSource]) -> list[FoundSource]:
    """Those of the newest cycle, of a profiler's traces in their order."""
    return [trace for trace in traces if trace.cycle == traces[-1].cycle]


def named_cycle(traces: Sequence[FoundSource], cycle: int | None) -> int | None:
    """What is said beside a rank that one of a run's cycles names; None: the only one."""
    return cycle if len({trace.cycle for trace in traces}) > 1 else None


def newest_ranks(
    readers: RunReaders, run_id: str, traces: Sequence[FoundSource]
) -> CycleRanks:
    """The ranks of the newest cycle; they are hardly waited for."""
    own = newest_cycle(traces)
    if len(own) < 2:
        return CycleRanks()
    is_small = sum(trace.num_bytes for trace in own) <= MAX_BESIDE
    opens = is_small and not any(is_remote(trace.path or "") for trace in own)
    try:
        summaries, is_opening = readers.rank_summaries.beside(run_id, own, opens=opens)
    except NotReadyError:
        return CycleRanks(is_opening=True)
    cycle = named_cycle(traces, own[0].cycle)
    return CycleRanks(one_each(summaries), cycle, is_opening)


def straggler_in_traces(readers: RunReaders, run_id: str) -> RunStraggler:
    """Of the newest cycle; what recorded steps tell is among a run's findings anyway.

    Raises:
        NotFoundError: there is no such run.
    """
    listed = readers.traces.listed(run_id)
    ranks = newest_ranks(readers, run_id, profiler_traces(listed.sources))
    if len(ranks.summaries) < 2:
        return RunStraggler(None, is_final=not ranks.is_opening)
    return straggler_of(readers, listed.summary, ranks.summaries, ranks.cycle)
