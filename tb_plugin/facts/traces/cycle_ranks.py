"""The ranks of one profiling cycle beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.findings.stragglers import waited_for
from memboard.tb_plugin.analysis.ranks.rank_steps import RankSteps
from memboard.tb_plugin.analysis.ranks.waiting import waiting_costs
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.facts.steps.stragglers import stragglers_of
from memboard.tb_plugin.facts.view import View
from memboard.tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.ranks.distributed import ComparedRanks
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.findings import Finding
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.formats.recording.rank_summaries import RankSummary
    from memboard.tb_plugin.jobs.trace_sources import FoundSource

_SECONDS: Final = 0.3
"""Of one answer for reading the ranks' steps; the next one goes on from there."""


def steps_of(ranks: Sequence[RankSummary]) -> RankSteps:
    """The profiled steps of these ranks, one rank after the other."""
    num_steps = [len(rank.step) for rank in ranks]

    def joined(name: str) -> Ints:
        return np.concatenate(
            [*(getattr(rank, name) for rank in ranks), np.empty(0, np.int64)]
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


def straggler_of(
    readers: RunReaders,
    summary: RunSummary,
    shown: Sequence[RankSummary],
    together: ComparedRanks | None = None,
) -> tuple[Finding | None, bool]:
    """The rank that the others of a run wait for; whether that will stay so.

    There is one, whatever page names it: of all recorded steps where they tell one, else
    of the collectives in a cycle's traces.

    Args:
        readers: of the plugin.
        summary: of the run.
        shown: ranks of one profiling cycle.
        together: their collectives; None: compared here.
    """
    if summary.virtual_gpu:
        return None, True  # its times are not real
    with readers.reading(summary.id) as (run, _):
        if len(run.ranks) > 1 and run.made_of == "recording":
            budget = Budget(_SECONDS)
            view = View(
                readers.store.series, run, summary, RanksQuery(run=summary.id), budget
            )
            steps = stragglers_of(view)
            if steps.num_left_out and budget.exhausted:
                return None, False
            for finding in steps.findings:
                if finding.key == "straggler":
                    return finding, True
                if finding.key == "overloaded":
                    return None, True  # each waits for a core, none for a rank
    if len(shown) < 2:
        return None, True
    if together is None:
        together = readers.rank_summaries.compared(shown)
    return waited_for(waiting_costs(steps_of(shown), together)), True


MAX_BESIDE: Final = 64 << 20
"""Bytes of the files of a cycle's ranks that are opened to tell who of them comes last;
of more the ones that were looked at already count."""


def compared_with(
    readers: RunReaders, run_id: str, traces: Sequence[FoundSource], source: FoundSource
) -> list[RankSummary]:
    """What there is of the ranks of a trace's cycle, one for each."""
    own = [trace for trace in traces if trace.cycle == source.cycle]
    if len(own) < 2:
        return []
    is_small = sum(trace.num_bytes for trace in own) <= MAX_BESIDE
    opens = is_small and not any(is_remote(trace.path or "") for trace in own)
    summaries = readers.rank_summaries.beside(run_id, own, opens=opens)
    by_rank = {summary.rank: summary for summary in summaries}
    return [by_rank[rank] for rank in sorted(by_rank)]
