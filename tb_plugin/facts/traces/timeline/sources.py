"""Which sources of a run its timeline shows: of some ranks, of one cycle of each."""

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
"""More at once are opened only where they are asked for."""


class TraceQuery(OfRanksQuery, frozen=True):
    """Ranks whose sources are shown, the cycle of the schedule they are of, and a step.

    `source`: of the cycle of this file, where no cycle is asked for.
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

    Of each rank those of the newest cycle that has any, or of the one asked for. Where no
    rank is, the ranks that come `first`, and others beside them.
    """
    ranks = sorted({rank_of(one) for one in every})
    wanted = [rank for rank in ranks if rank == -1 or query.wants(rank)]
    if query.is_open:
        # What tells no rank counts as one of them.
        wanted = first_ranks(ranks, first)
    cycle = query.cycle
    if cycle is None:
        cycle = next((one.cycle for one in every if one.id == query.source), None)
    found: list[FoundSource] = []
    for rank in wanted:
        own = [one for one in every if rank_of(one) == rank]
        found += [one for one in own if one.kind == "spans"]
        found += _of_cycle([one for one in own if one.kind == "trace"], cycle)
    return ShownSources(tuple(found), tuple(wanted), sum(rank >= 0 for rank in ranks))


def first_ranks(ranks: Sequence[int], first: Sequence[int]) -> list[int]:
    """At most DEFAULT_RANKS of `ranks`, those that come `first` before others."""
    known = [rank for rank in first if rank in ranks]
    others = (rank for rank in ranks if rank not in known)
    return [*known, *others][:DEFAULT_RANKS]


def _of_cycle(traces: list[FoundSource], cycle: int | None) -> list[FoundSource]:
    if cycle is None:
        # Files that say nothing of cycles: the one written last.
        newest = max(
            traces,
            key=lambda one: (one.is_recorded, one.cycle or 0, one.time_ns, one.name),
            default=None,
        )
        return [] if newest is None else [newest]
    return [one for one in traces if one.cycle == cycle]


def rank_of(found: FoundSource) -> int:
    """Of a source that tells no rank -1."""
    return -1 if found.rank is None else found.rank
