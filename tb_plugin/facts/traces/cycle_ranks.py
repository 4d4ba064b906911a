"""The ranks of one profiling cycle beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.tb_plugin.analysis.findings.stragglers import waited_for
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.facts.steps.stragglers import stragglers_of
from memboard.tb_plugin.facts.view import View
from memboard.tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.findings import Finding
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.formats.recording.rank_summaries import RankSummary
    from memboard.tb_plugin.jobs.trace_sources import FoundSource

_SECONDS: Final = 0.3
"""Of one answer for reading the ranks' steps; the next one goes on from there."""


class RunStraggler(NamedTuple):
    """The rank that the others of a run wait for, whatever page names it."""

    finding: Finding | None
    is_final: bool = True
    """Whether it stays so: all that decides it was read."""
    is_judged: bool = False
    """Whether the ranks of the cycle were compared: else none of them is cleared."""

    @property
    def stamp(self) -> tuple[object, ...]:
        """Another one where what is said of it changes."""
        sentence = None if self.finding is None else self.finding.sentence
        return sentence, self.is_judged


def straggler_of(
    readers: RunReaders, summary: RunSummary, shown: Sequence[RankSummary]
) -> RunStraggler:
    """Of all recorded steps where they tell one, else of a cycle's collectives.

    Args:
        readers: of the plugin.
        summary: of the run.
        shown: ranks of one profiling cycle, one summary a rank.
    """
    if summary.virtual_gpu:
        return RunStraggler(None)  # its times are not real
    of_steps = _of_recorded_steps(readers, summary)
    if of_steps is not None:
        return of_steps
    costs = readers.rank_summaries.waiting_costs(shown) if len(shown) > 1 else ()
    return RunStraggler(waited_for(costs), is_judged=bool(costs))


def _of_recorded_steps(readers: RunReaders, summary: RunSummary) -> RunStraggler | None:
    """None: steps blame nobody. They are looked at once for each version of the run."""
    with readers.reading(summary.id) as (run, _):
        if len(run.ranks) < 2 or run.made_of != "recording":
            return None
        version, judged = readers.stragglers.get(run.found.id, (None, None))
        if version == run.version:
            return judged
        budget = Budget(_SECONDS)
        query = RanksQuery(run=summary.id)
        steps = stragglers_of(View(readers.store.series, run, summary, query, budget))
        if steps.num_left_out and budget.exhausted:
            return RunStraggler(None, is_final=False)
        by_key = {finding.key: finding for finding in steps.findings}
        judged = None
        if "straggler" in by_key:
            judged = RunStraggler(by_key["straggler"], is_judged=True)
        elif "overloaded" in by_key:
            judged = RunStraggler(None)  # each waits for a core, none for a rank
        readers.stragglers[run.found.id] = run.version, judged
        return judged


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
