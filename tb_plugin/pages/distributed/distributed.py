"""Route `/distributed`: the ranks of one profiling cycle beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted, part_of
from memboard.tb_plugin.analysis.findings.render import with_markdown
from memboard.tb_plugin.analysis.ranks.rank_steps import (
    collective_times,
    mean_times,
)
from memboard.tb_plugin.api.base import Problem, i32_clipped
from memboard.tb_plugin.api.time.distributed import DistributedResponse
from memboard.tb_plugin.contract.parameters import Count, Query
from memboard.tb_plugin.facts.traces.cycle_ranks import named_cycle, straggler_of
from memboard.tb_plugin.facts.traces.profiled import profiler_traces
from memboard.tb_plugin.formats.recording.rank_summaries import (
    one_each,
    steps_of,
    world_size_of,
)
from memboard.tb_plugin.pages.distributed.tables import (
    collectives_table,
    groups_table,
    missing_text,
    ranks_table,
    spread_text,
    step_text,
)
from memboard.tb_plugin.rank_set import RankSet
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.analysis.ranks.rank_steps import RankSteps
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.formats.recording.rank_summaries import RankSummary
    from memboard.tb_plugin.jobs.trace_sources import TraceJob

MAX_PROBLEMS: Final = 20

_UNKNOWN: Final = "How long ranks wait for each other is not known."

OPEN_SECONDS: Final = 2.0
"""Longest wait of an answer for traces that are being opened."""


class CycleQuery(Query, frozen=True):
    """Ranks of a profiling cycle; the newest one where none is named."""

    cycle: Count | None = None
    ranks: RankSet | None = None


class DistributedQuery(CycleQuery, frozen=True):
    """One step of the ranks' parts, where the cycle has it."""

    step: Count | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """What there is of a profiling cycle."""

    cycles: tuple[int, ...]
    """All of the run, ascending."""
    number: int | None
    named: int | None
    """That number where the run has several."""
    num_traces: int
    """Of the ranks of the query."""
    num_ranks: int
    """Those ranks; traces that say none are of one rank."""
    summaries: Sequence[RankSummary]
    """Of those that are open."""
    failed: Sequence[TraceJob]
    stamp: tuple[object, ...]
    """Another one where any of this is."""

    @property
    def num_opening(self) -> int:
        """Traces that are on their way."""
        return max(self.num_traces - len(self.summaries) - len(self.failed), 0)

    @property
    def ranks(self) -> list[RankSummary]:
        """By rank, ascending; of several traces of one the last."""
        return one_each(self.summaries)

    @property
    def steps(self) -> RankSteps:
        """The profiled steps of `ranks`."""
        return steps_of(self.ranks)


def cycle_of(asked: RouteRequest[CycleQuery]) -> tuple[RunSummary, Cycle]:
    """What there is of the query's ranks and cycle.

    Raises:
        NotFoundError: there is no such run.
    """
    query = asked.query
    listed = asked.state.traces.listed(query.run)
    traces = profiler_traces(listed.sources)
    cycles = sorted({trace.cycle for trace in traces if trace.cycle is not None})
    newest = traces[-1].cycle if traces else None
    number = query.cycle if query.cycle in cycles else newest
    own = [
        trace
        for trace in traces
        if trace.cycle == number
        and (query.ranks is None or (trace.rank or 0) in query.ranks)
    ]
    summaries, failed = asked.state.rank_summaries.summaries(
        query.run, own, OPEN_SECONDS
    )
    num_ranks = len({trace.rank or 0 for trace in own})
    keys = [(trace.id, *trace.key) for trace in traces]
    stamp = (*keys, len(summaries), len(failed))
    return listed.summary, Cycle(
        cycles=tuple(cycles),
        number=number,
        named=named_cycle(traces, number),
        num_traces=len(own),
        num_ranks=num_ranks,
        summaries=summaries,
        failed=failed,
        stamp=stamp,
    )


@route("distributed", DistributedQuery)
def distributed(asked: RouteRequest[DistributedQuery]) -> DistributedResponse:
    """The ranks whose traces are open, beside each other."""
    run, cycle = cycle_of(asked)
    query, shown = asked.query, cycle.ranks
    # Of some of the ranks another one comes last.
    straggler = straggler_of(
        asked.state, run, () if cycle.num_opening else shown, cycle.named
    )
    asked.decided_by(*cycle.stamp, *straggler.stamp)
    together = asked.state.rank_summaries.compared(shown)
    of_ranks = cycle.steps
    steps = of_ranks.numbers
    step = query.step if query.step in steps else None
    transfer, spent = collective_times(of_ranks, together, step)
    ranks = [summary.rank for summary in shown]
    table = ranks_table(ranks, mean_times(of_ranks, step), transfer, spent)
    is_read = together.rows and not cycle.num_opening
    missing = missing_text(shown) if is_read else ""
    late = straggler.finding
    sentences = [step_text(table, None if late is None else late.rank)]
    if late is not None:
        scope = straggler.scope_text("of")
        sentences.insert(0, f"Rank {late.rank} is the straggler{scope}.")
    elif straggler.is_judged:
        scope = straggler.scope_text("in")
        sentences.insert(0, f"No rank stands out{scope}.")
    elif not (
        missing or cycle.num_opening or asked.state.rank_summaries.waiting_costs(shown)
    ):
        # Where collectives are missing the summary says it.
        is_alone = world_size_of(shown) == 1
        sentences.append("One rank alone waits for no other." if is_alone else _UNKNOWN)
    return DistributedResponse(
        run=run,
        cycles=i32_clipped(cycle.cycles),
        cycle=cycle.number,
        steps=i32_clipped(steps),
        step=step,
        sentence=" ".join(filter(None, sentences)),
        summary=" ".join(
            filter(
                None,
                (
                    *_summary(cycle, together.num_matched, query.step, step, table),
                    missing,
                ),
            )
        ),
        ranks=table,
        groups=groups_table(together.groups),
        collectives=collectives_table(together.rows),
        num_traces=cycle.num_traces,
        num_opening=cycle.num_opening,
        findings=with_markdown(() if late is None else (late,)),
        problems=tuple(_problems(cycle, shown))[:MAX_PROBLEMS],
    )


def _summary(
    cycle: Cycle,
    num_matched: int,
    wanted: int | None,
    step: int | None,
    ranks: TableRows,
) -> Iterator[str]:
    parts = [part_of(ranks.num_rows, cycle.num_ranks, "rank")]
    if cycle.num_traces > cycle.num_ranks:
        parts[0] += f" of {counted(cycle.num_traces, 'trace')}"
        parts.append("the last trace of a rank counts")
    if cycle.num_opening:
        parts.append(f"{cycle.num_opening:,} still being read")
    if cycle.failed:
        parts.append(f"{len(cycle.failed):,} cannot be read")
    if num_matched:
        parts.append(f"{counted(num_matched, 'collective')} that all their ranks show")
    yield f"{'; '.join(parts)}."
    if wanted != step:
        yield f"Step {wanted:,} is none of those profiled."
    yield spread_text(ranks)


def _problems(cycle: Cycle, shown: Sequence[RankSummary]) -> Iterator[Problem]:
    """Traces that cannot be read, then those that are not whole."""
    for failed in cycle.failed:
        if failed.problem is not None:
            yield failed.problem
    for summary in shown:
        if summary.problem is not None:
            yield Problem(
                severity="warning",
                path=f"rank {summary.rank}",
                what=summary.problem.what,
                where=summary.problem.where,
                salvaged="" if summary.is_empty else "The rest of its trace counts.",
                rank=summary.rank,
            )
