"""Routes `/distributed` and `/distributed_heatmap`: ranks of one profiling cycle together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from tb_plugin.analysis.findings.ranks import last_in_collectives
from tb_plugin.analysis.series.heatmap import farthest_ranks, size_of, step_edges
from tb_plugin.api.base import Problem
from tb_plugin.api.distributed import (
    DistributedCollectives,
    DistributedGroups,
    DistributedHeatmapResponse,
    DistributedPart,
    DistributedResponse,
)
from tb_plugin.api.timeline import HeatmapResponse, SeriesInfo
from tb_plugin.contract.parameters import Count, Pixels, Query
from tb_plugin.contract.routes import Asked, route
from tb_plugin.contract.wire import f64, i32
from tb_plugin.formats.recording.profiles import world_size_of
from tb_plugin.pages.profile.asked import MS, profiler_traces, profiles
from tb_plugin.pages.timeline.heatmap import cells_response
from tb_plugin.rank_set import RankSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tb_plugin.analysis.arrays import Floats, Ints
    from tb_plugin.analysis.ranks.distributed import (
        CollectiveRow,
        ComparedRanks,
        GroupRow,
    )
    from tb_plugin.api.base import F64Column, RunSummary
    from tb_plugin.api.findings import Finding
    from tb_plugin.formats.recording.profiles import RankSummary
    from tb_plugin.jobs.trace_sources import TraceJob

MAX_ROWS: Final = 2_000
"""Of the table of collectives: those that take longest."""
MAX_GROUPS: Final = 200
MAX_NAMES_LENGTH: Final = 60_000
"""Of the names of groups in all, so that an answer stays small whatever they are."""
MAX_PROBLEMS: Final = 20
MAX_MISSING: Final = 20
_MAX_TEXT: Final = 200

OPEN_SECONDS: Final = 2.0
"""How long an answer waits for traces that are being opened."""

_SECOND: Final = 1e9


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
    num_traces: int
    """Of the ranks that are asked for."""
    summaries: Sequence[RankSummary]
    """Of those that are open."""
    failed: Sequence[TraceJob]

    @property
    def num_opening(self) -> int:
        """Traces that are on their way."""
        return max(self.num_traces - len(self.summaries) - len(self.failed), 0)

    @property
    def ranks(self) -> list[RankSummary]:
        """By rank, ascending; of several traces of one the last."""
        by_rank = {one.rank: one for one in self.summaries}
        return [by_rank[rank] for rank in sorted(by_rank)]


def cycle_of(asked: Asked[CycleQuery]) -> tuple[RunSummary, Cycle]:
    """What there is of the ranks and the cycle that are asked for.

    Raises:
        NotFoundError: there is no such run.
        HeldError: the client holds the answer already.
    """
    query = asked.query
    listed = asked.state.traces.listed(query.run)
    traces = profiler_traces(listed.sources)
    cycles = sorted({one.cycle for one in traces if one.cycle is not None})
    newest = traces[-1].cycle if traces else None
    number = query.cycle if query.cycle in cycles else newest
    own = [
        one
        for one in traces
        if one.cycle == number
        and (query.ranks is None or (one.rank or 0) in query.ranks)
    ]
    found, failed = profiles(asked.state).summaries(query.run, own, OPEN_SECONDS)
    keys = [(one.id, *one.key) for one in traces]
    asked.decided_by(keys, len(found), len(failed))
    return listed.summary, Cycle(tuple(cycles), number, len(own), found, failed)


@route("distributed", DistributedQuery)
def distributed(asked: Asked[DistributedQuery]) -> DistributedResponse:
    """The ranks whose traces are open, beside each other."""
    run, cycle = cycle_of(asked)
    together = profiles(asked.state).compared(cycle.summaries)
    query, shown = asked.query, cycle.ranks
    numbers = np.concatenate([*(one.step for one in shown), np.empty(0, np.int64)])
    steps = np.unique(numbers)
    step = query.step if query.step in steps else None
    total, computation, communication, overlap = _times(shown, step) / MS
    transfer_ms, all_ms = _moved(shown, together, step) / MS
    missing = _missing(shown)
    rows = together.rows
    return DistributedResponse(
        run=run,
        cycles=i32(np.minimum(cycle.cycles, np.iinfo(np.int32).max)),
        cycle=cycle.number,
        steps=i32(np.minimum(steps, np.iinfo(np.int32).max)),
        step=step,
        rank=i32([one.rank for one in shown]),
        step_ms=f64(total),
        computation_ms=f64(computation - overlap),
        overlap_ms=f64(overlap),
        communication_ms=f64(communication - overlap),
        other_ms=f64(total - computation - communication + overlap),
        transfer_ms=f64(transfer_ms),
        waiting_ms=f64(all_ms - transfer_ms),
        collectives=_table(_shown(rows)),
        num_collectives=len(rows),
        groups=_groups(together.groups[:MAX_GROUPS]),
        num_groups=len(together.groups),
        num_matched=together.num_matched,
        missing=i32(list(islice(missing, MAX_MISSING))),
        num_missing=max(world_size_of(shown) - len(shown), 0),
        num_traces=cycle.num_traces,
        num_opening=cycle.num_opening,
        num_failed=len(cycle.failed),
        findings=straggler(shown, together),
        problems=tuple(_problems(cycle, shown))[:MAX_PROBLEMS],
    )


def _missing(shown: Sequence[RankSummary]) -> Iterator[int]:
    """Ranks of the training that are not among those compared, ascending."""
    known = {one.rank for one in shown}
    return (rank for rank in range(world_size_of(shown)) if rank not in known)


def _problems(cycle: Cycle, shown: Sequence[RankSummary]) -> Iterator[Problem]:
    """Traces that cannot be read, then those that are not whole."""
    for failed in cycle.failed:
        if failed.problem is not None:
            yield failed.problem
    for one in shown:
        if one.problem is not None:
            yield Problem(
                severity="warning",
                path=f"rank {one.rank}",
                what=one.problem.what,
                where=one.problem.where,
                salvaged="" if one.is_empty else "The rest of its trace counts.",
                rank=one.rank,
            )


def _times(shown: Sequence[RankSummary], step: int | None) -> Floats:
    """(4, ranks): step, computation, communication, overlap of a step, or in the mean."""
    index = np.repeat(np.arange(len(shown)), [len(one.step) for one in shown])
    columns = ("duration_ns", "computation_ns", "communication_ns", "overlap_ns")
    none = np.empty(0, dtype=np.int64)
    numbers = np.concatenate([*(one.step for one in shown), none])
    counted = np.full(len(index), True) if step is None else numbers == step
    index = index[counted].astype(np.int64)
    num = np.bincount(index, minlength=len(shown))
    found = np.full((4, len(shown)), np.nan)
    for at, name in enumerate(columns):
        values = np.concatenate([*(getattr(one, name) for one in shown), none])
        sums = np.bincount(index, values[counted], len(shown))
        np.divide(sums, num, found[at], where=num > 0)
    return found


def _moved(
    shown: Sequence[RankSummary], together: ComparedRanks, step: int | None
) -> Floats:
    """(2, ranks): of collectives, while data moved and in all; of a step, or of all.

    NaN where the rank has no such step, or the trace of a rank that took part in one of
    them is missing. What lies at the end of what was profiled, and so in few of the
    traces, counts as neither.
    """
    none = np.zeros(len(shown), dtype=bool)
    index = np.searchsorted([one.rank for one in shown], together.rank)
    counted = np.full(len(index), True)
    if step is not None:
        spans = np.array([_span(one, step) for one in shown]).reshape(-1, 2)
        begins, ends = spans.astype(np.int64).T
        counted = together.start_ns >= begins[index]
        counted &= together.start_ns < ends[index]
        none = ends <= begins
    columns = (together.transfer_ns, together.duration_ns)
    none |= np.bincount(index[counted & together.is_missed], minlength=len(shown)) > 0
    counted &= together.is_compared
    sums = np.stack(
        [np.bincount(index[counted], one[counted], len(shown)) for one in columns]
    )
    return np.where(none, np.nan, sums)


def _span(one: RankSummary, step: int) -> tuple[int, int]:
    """When a step began and ended; nothing lies in one that the rank has not."""
    at = np.flatnonzero(one.step == step)
    if not len(at):
        return 0, 0
    start = int(one.start_ns[at[0]])
    return start, start + int(one.duration_ns[at[0]])


def _groups(rows: Sequence[GroupRow]) -> DistributedGroups:
    return DistributedGroups(
        kind=tuple(row.kind for row in rows),
        group=tuple(row.group[:_MAX_TEXT] for row in rows),
        num_ranks=i32([row.num_ranks for row in rows]),
        num_matched=i32([row.num_matched for row in rows]),
        mean_skew_ms=_known(rows, "mean_skew_ns", MS),
        max_skew_ms=_known(rows, "max_skew_ns", MS),
        last_rank=i32([-1 if row.last_rank is None else row.last_rank for row in rows]),
        last_share=_known(rows, "last_share"),
    )


def _known(rows: Sequence[object], name: str, factor: float = 1.0) -> F64Column:
    """A column; NaN where it is not known."""
    values = [getattr(row, name) for row in rows]
    return f64([np.nan if v is None else v / factor for v in values])


def _shown(rows: Sequence[CollectiveRow]) -> Sequence[CollectiveRow]:
    lengths = np.cumsum([min(len(row.group), _MAX_TEXT) for row in rows[:MAX_ROWS]])
    return rows[: int(np.searchsorted(lengths, MAX_NAMES_LENGTH, "right"))]


def _table(rows: Sequence[CollectiveRow]) -> DistributedCollectives:
    sizes = [-1 if row.group_size is None else row.group_size for row in rows]
    return DistributedCollectives(
        rank=i32([row.rank for row in rows]),
        kind=tuple(row.kind for row in rows),
        group=tuple(row.group[:_MAX_TEXT] for row in rows),
        group_size=i32(np.clip(sizes, -1, np.iinfo(np.int32).max)),
        num_calls=_known(rows, "num_calls"),
        num_bytes=_known(rows, "num_bytes"),
        total_ms=_known(rows, "total_ns", MS),
        num_compared=_known(rows, "num_compared"),
        transfer_ms=_known(rows, "transfer_ns", MS),
        bus_bytes_per_second=_known(rows, "bus_bytes_per_second"),
        num_last=_known(rows, "num_last"),
    )


def straggler(
    shown: Sequence[RankSummary], together: ComparedRanks
) -> tuple[Finding, ...]:
    """The rank that the others wait for."""
    steps_ns = {one.rank: int(one.duration_ns.sum()) for one in shown}
    return tuple(last_in_collectives(together, steps_ns))


Step = Annotated[float, Meta(ge=-1e12, le=1e12, description="a step")]


class DistributedHeatmapQuery(CycleQuery, frozen=True):
    """One part of the steps' time, in a range of steps."""

    part: DistributedPart = "communication"
    x0: Step | None = None
    x1: Step | None = None
    px: Pixels = 1200
    rows: Pixels = 800


@route("distributed_heatmap", DistributedHeatmapQuery)
def distributed_heatmap(
    asked: Asked[DistributedHeatmapQuery],
) -> DistributedHeatmapResponse:
    """One part of the steps of the ranks whose traces are open."""
    (run, cycle), query = cycle_of(asked), asked.query
    return DistributedHeatmapResponse(
        part=query.part,
        cycle=cycle.number,
        cells=_cells(run, cycle.ranks, cycle.num_opening, query),
        num_traces=cycle.num_traces,
        num_opening=cycle.num_opening,
        num_failed=len(cycle.failed),
    )


def _cells(
    run: RunSummary,
    shown: Sequence[RankSummary],
    num_opening: int,
    query: DistributedHeatmapQuery,
) -> HeatmapResponse:
    steps = np.concatenate([*(one.step for one in shown), np.empty(0, np.int64)])
    low, high = (float(steps.min()), float(steps.max())) if len(steps) else (0.0, 0.0)
    x0 = min(max(low, low if query.x0 is None else np.floor(query.x0)), high)
    x1 = max(min(high, high if query.x1 is None else np.ceil(query.x1)), x0)
    # No more columns than steps: a cycle has few, and ranks stay apart.
    width = max(1, min(query.px, int(x1 - x0) + 1))
    num_rows, px = size_of(len(shown), width, query.rows)
    edges, per_column = step_edges(x0, x1, px)
    values = _matrix(shown, steps, query.part, edges, per_column)
    series = SeriesInfo(
        key=f"profile/{query.part}_seconds",
        unit="seconds",
        group="timing",
        headline=False,
        num_ranks=len(shown),
    )
    cells = cells_response(
        *(run, series, [one.rank for one in shown], values, edges, num_rows),
        farthest_ranks,
        x_low=low,
        x_high=high,
        exact=num_opening == 0,
    )
    return cells if cells.values.any() else replace(cells, series=None)


def _matrix(
    shown: Sequence[RankSummary],
    steps: Ints,
    part: DistributedPart,
    edges: Floats,
    per_column: int,
) -> Floats:
    """(ranks, columns): the longest of each rank in each column; NaN: it has none."""
    found = np.full((len(shown), len(edges) - 1), np.nan)
    if not len(steps):
        return found
    row = np.repeat(np.arange(len(shown)), [len(one.step) for one in shown])
    column = (steps - int(edges[0])) // per_column
    inside = (column >= 0) & (column < found.shape[1])
    seconds = np.concatenate([_part(one, part) for one in shown]) / _SECOND
    np.fmax.at(found, (row[inside], column[inside]), seconds[inside])
    return found


def _part(one: RankSummary, part: DistributedPart) -> Ints:
    """Nanoseconds of each step; all parts but `step` add up to it."""
    computation: Ints = one.computation_ns - one.overlap_ns
    communication: Ints = one.communication_ns - one.overlap_ns
    parts: dict[DistributedPart, Ints] = {
        "step": one.duration_ns,
        "computation": computation,
        "overlap": one.overlap_ns,
        "communication": communication,
        "other": one.duration_ns - computation - communication - one.overlap_ns,
    }
    return parts[part]
