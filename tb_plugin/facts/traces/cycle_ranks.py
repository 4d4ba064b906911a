"""The ranks of one profiling cycle beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.findings.ranks import last_in_collectives
from memboard.tb_plugin.analysis.ranks.rank_steps import RankSteps
from memboard.tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.ranks.distributed import ComparedRanks
    from memboard.tb_plugin.api.findings import Finding
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.formats.recording.rank_summaries import RankSummary
    from memboard.tb_plugin.jobs.trace_sources import FoundSource


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
    )


def straggler(
    shown: Sequence[RankSummary], together: ComparedRanks
) -> tuple[Finding, ...]:
    """The rank that the others wait for."""
    steps_ns = {rank.rank: int(rank.duration_ns.sum()) for rank in shown}
    return tuple(last_in_collectives(together, steps_ns))


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
