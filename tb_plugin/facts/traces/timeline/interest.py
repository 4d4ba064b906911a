"""The ranks that a timeline opens on: waited for, pinned, or out of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.facts.steps.stragglers import stragglers_of
from memboard.tb_plugin.facts.traces.cycle_ranks import compared_with, straggler
from memboard.tb_plugin.facts.traces.profiled import profiler_traces
from memboard.tb_plugin.facts.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.facts.traces.run_traces import TraceListing

_SECONDS: Final = 0.3
"""Of one answer for reading the ranks' steps; the next one goes on from there."""


class Interest(NamedTuple):
    """A rank, and why it is looked at first."""

    rank: int
    why: str  # `the straggler`
    step: int | None = None
    """The step that it is about; None: none by itself."""


def of_interest(
    readers: RunReaders, run_id: str, listed: TraceListing, pinned: Sequence[int]
) -> tuple[list[Interest], bool]:
    """The rank that others wait for, those pinned and out of memory; whether all is known.

    Times of single steps go before what profilers' traces say.
    """
    interests, is_known = [], True
    with readers.reading(run_id) as (run, _):
        ooms = run.notes.events("oom")
        if len(run.ranks) > 1 and run.made_of == "recording":
            query, budget = RanksQuery(run=run_id), Budget(_SECONDS)
            series = readers.store.series
            seen = stragglers_of(View(series, run, listed.summary, query, budget))
            is_known = not (seen.num_left_out and budget.exhausted)
            late = [*seen.late] if is_known else []
        else:
            late = []
    traces = profiler_traces(listed.sources)
    if not late and len(traces) > 1:
        beside = compared_with(readers, run_id, traces, traces[-1])
        if len(beside) > 1:
            rows = straggler(beside, readers.rank_summaries.compared(beside))
            late = [row.rank for row in rows if row.rank is not None]
    interests += [Interest(rank, "the straggler") for rank in late[:1]]
    interests += [Interest(rank, "which is pinned") for rank in pinned]
    # Of each rank the last time.
    ends = {oom.rank: oom.step for oom in ooms}
    interests += [
        Interest(rank, "which ran out of memory", step) for rank, step in ends.items()
    ]
    return list({interest.rank: interest for interest in reversed(interests)}.values())[
        ::-1
    ], is_known
