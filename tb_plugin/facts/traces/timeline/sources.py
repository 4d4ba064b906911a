"""Chooses the sources that a run's timeline shows: some ranks, one cycle of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.contract.parameters import SourceId, Whole
from memboard.tb_plugin.facts.series.selection import OfRanksQuery
from memboard.tb_plugin.rank_set import RankSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.jobs.trace_sources import FoundSource

DEFAULT_RANKS: Final = 4
"""More at once are opened only where the query names them."""


class TraceQuery(OfRanksQuery, frozen=True):
    """Ranks whose sources are shown, the cycle of the schedule they are of, and a step.

    `source`: of the cycle of this file, where the query names none.
    """

    cycle: Whole | None = None
    step: Whole | None = None
    source: SourceId | None = None
    pinned: RankSet = RankSet()
    """Shown among the first where no ranks are named."""

    @property
    def is_open(self) -> bool:
        """Whether it leaves the choice of ranks to the server."""
        return self.rank is None and self.ranks is None


@dataclass(frozen=True, slots=True)
class ShownSources:
    """What is shown of all that a run has."""

    sources: tuple[FoundSource, ...]
    ranks: tuple[int, ...]
    """Ranks shown; of sources that tell no rank -1."""
    num_ranks: int


def choose(
    every: Sequence[FoundSource], query: TraceQuery, first: Sequence[int]
) -> ShownSources:
    """The sources that a question is about, by rank, spans before traces.

    Of each rank those of the newest cycle that has any, or of the query's. Where no
    rank is, the ranks that come `first`, and others beside them.
    """
    ranks = sorted({rank_of(source) for source in every})
    wanted = [rank for rank in ranks if rank == -1 or query.wants(rank)]
    if query.is_open:
        # What tells no rank counts as one of them.
        wanted = first_ranks(ranks, first)
    cycle = query.cycle
    if cycle is None:
        cycle = next(
            (source.cycle for source in every if source.id == query.source), None
        )
    chosen: list[FoundSource] = []
    for rank in wanted:
        own = [source for source in every if rank_of(source) == rank]
        chosen += [source for source in own if source.kind == "spans"]
        chosen += _of_cycle([source for source in own if source.kind == "trace"], cycle)
    return ShownSources(tuple(chosen), tuple(wanted), sum(rank >= 0 for rank in ranks))


def first_ranks(ranks: Sequence[int], first: Sequence[int]) -> list[int]:
    """At most DEFAULT_RANKS of `ranks`, those that come `first` before others."""
    pinned = [rank for rank in first if rank in ranks]
    others = (rank for rank in ranks if rank not in pinned)
    return [*pinned, *others][:DEFAULT_RANKS]


def _of_cycle(traces: list[FoundSource], cycle: int | None) -> list[FoundSource]:
    if cycle is None:
        # Files that say nothing of cycles: the one written last.
        newest = max(
            traces,
            key=lambda trace: (
                trace.is_recorded,
                trace.cycle or 0,
                trace.time_ns,
                trace.name,
            ),
            default=None,
        )
        return [] if newest is None else [newest]
    return [trace for trace in traces if trace.cycle == cycle]


def rank_of(source: FoundSource) -> int:
    """Of a source that tells no rank -1."""
    return -1 if source.rank is None else source.rank
