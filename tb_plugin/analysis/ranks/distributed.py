"""Collectives of several ranks beside each other: who waited for whom.

A collective ends for nobody before its last rank has begun. So of the durations that
its ranks measured the shortest is the transfer of data, and what another rank's takes
longer it has waited: for the rank that measured the shortest, which came last. That
needs no common clock.

Ranks' collectives belong together by group and number (`Seq`) where the profiler says
them, else by their order within group and kind.

Where the trace of a rank that takes part is not there, the last rank may be that one: how
long the others waited is not known then, and neither is how long data moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    begins,
    grouped,
    highest,
    nth,
    numbered,
    sums,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.ranks.collectives import RankCollectives


_BUS_FACTORS: Final = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
}
"""Bytes on the busiest link per byte of the collective, as nccl-tests counts them."""


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """Collectives of one kind and group on one rank."""

    rank: int
    kind: str
    group: str
    num_calls: int
    num_bytes: int | None
    """Of all calls; None where no call says it."""
    total_ns: int
    group_size: int | None
    num_compared: int
    """Calls that the traces of all ranks which took part show; the next are of them, and
    None where a rank's trace is missing."""
    transfer_ns: int | None
    waiting_ns: int | None
    """The rest of their time: spent waiting for other ranks."""
    lead_ns: int | None
    """What the others waited in these calls beyond its own waiting, in the mean of them;
    negative: it waited for the others."""
    moved_bytes: int | None = None
    """Of those that say it, likewise the next."""
    moving_ns: int = 0

    @property
    def mean_ns(self) -> float:
        """Of a call, waiting included."""
        return self.total_ns / self.num_calls

    @property
    def lead_seconds(self) -> float | None:
        return None if self.lead_ns is None else self.lead_ns / 1e9

    @property
    def bus_bytes_per_second(self) -> float | None:
        """Bus bandwidth while data moved, by nccl-tests' definition."""
        if self.moved_bytes is None or self.moving_ns <= 0:
            return None
        size = self.group_size or 0
        factor = _BUS_FACTORS.get(self.kind)
        if factor is None:
            share = 1.0
        elif size < 2:
            return None
        else:
            share = factor(size)
        return self.moved_bytes * share / (self.moving_ns * 1e-9)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """Collectives of one kind and group that several ranks' traces show."""

    kind: str
    group: str
    num_ranks: int
    num_matched: int
    mean_skew_ns: float | None
    """How long the first rank waits for the last one, in the mean; and at most. None where
    a rank's trace is missing."""
    max_skew_ns: int | None


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRanks:
    """All that is told of the collectives of several ranks."""

    num_matched: int
    """Collectives that all ranks which took part show."""
    rows: tuple[CollectiveRow, ...]
    groups: tuple[GroupRow, ...]
    rank: Ints
    """(calls,): of all collectives, one rank after the other; likewise the next three."""
    start_ns: Ints
    duration_ns: Ints
    transfer_ns: Ints
    """While data moved; the rest is waiting."""
    is_compared: Flags
    """Whether all ranks that took part show it; `transfer_ns` says nothing where not."""
    is_missed: Flags
    """Whether it is not, because the trace of a rank is missing."""
    lead_ns: Ints
    """How much longer the others' calls took, in the mean; 0 where not all are there."""
    collective: Ints
    """Which one of several ranks it is part of; NOTHING where not all ranks' parts are
    there."""
    kind: Ints
    """(collectives,): which of `names` each is."""
    names: tuple[tuple[str, str], ...]
    """Group and kind of each such collective."""


def compared(
    ranks: Mapping[int, RankCollectives], world_size: int = NOTHING
) -> ComparedRanks:
    """The collectives of these ranks beside each other.

    `world_size`: how many ranks the training has, where their traces say it.
    """
    every = _JoinedCollectives(ranks, world_size)
    duration = every.column("duration_ns")
    together = _matched(every, duration)
    transfer = duration.copy()
    transfer[together.place] = together.transfer_ns[together.collective]
    is_compared: Flags = every.column("group_size") == 1
    is_compared[together.place] = together.is_whole[together.collective]
    is_missed = ~is_compared & every.misses_ranks
    is_whole = together.is_whole[together.collective]
    collective = np.full(len(duration), NOTHING, np.int64)
    collective[together.place[is_whole]] = together.collective[is_whole]
    kind_of_collective = np.zeros(len(together.transfer_ns), np.int64)
    kind_of_collective[together.collective] = every.kind[together.place]
    lead = np.zeros(len(duration), np.int64)
    lead[together.place[is_whole]] = _leads(
        together.collective[is_whole], duration[together.place[is_whole]]
    )
    return ComparedRanks(
        num_matched=int(together.is_whole.sum()),
        rows=_rows(every, transfer, is_compared, is_missed, lead),
        groups=_groups(every, together),
        rank=every.rank,
        start_ns=every.column("start_ns"),
        duration_ns=duration,
        transfer_ns=transfer,
        is_compared=is_compared,
        is_missed=is_missed,
        lead_ns=lead,
        collective=collective,
        kind=kind_of_collective,
        names=tuple(every.names),
    )


class _JoinedCollectives:
    """Columns of the collectives of all ranks, one rank after the other."""

    def __init__(self, ranks: Mapping[int, RankCollectives], world_size: int) -> None:
        own = sorted(ranks)
        self._tables = [ranks[rank] for rank in own]
        sizes = [len(table) for table in self._tables]
        self.rank = np.repeat(np.array(own, dtype=np.int64), sizes)
        names = zip(self._texts("group"), self._texts("kind"), strict=True)
        kinds_by_name: dict[tuple[str, str], int] = {}
        kinds = [kinds_by_name.setdefault(name, len(kinds_by_name)) for name in names]
        self.kind: Ints = np.array(kinds, dtype=np.int64)
        """Number of its group and kind."""
        self.names = list(kinds_by_name)
        size = self.column("group_size")
        num_ranks = max(world_size, own[-1] + 1 if own else 0)
        is_all = len(own) >= num_ranks
        self.wanted: Ints = np.where(size > 0, size, 2 if is_all else num_ranks)
        """How many ranks' traces show one that is whole.

        The size of its group; where that is not said, all ranks that there are, but at
        least two: of one alone nothing says who else took part.
        """

    @property
    def misses_ranks(self) -> Flags:
        """Whether fewer ranks show any of its kind and group than take part.

        Where as many do, the call itself lies at the end of what was profiled.
        """
        first, _ = numbered(self.kind, self.rank)
        num_ranks = np.bincount(self.kind[first], minlength=len(self.names))
        missed: Flags = num_ranks[self.kind] < self.wanted
        return missed

    def column(self, column_name: str) -> Ints:
        columns = [getattr(table, column_name) for table in self._tables]
        return np.concatenate([*columns, np.empty(0, np.int64)]).astype(np.int64)

    def _texts(self, column_name: str) -> list[str]:
        return [text for table in self._tables for text in getattr(table, column_name)]


class _MatchedCollectives(NamedTuple):
    """Collectives that several ranks took part in."""

    transfer_ns: Ints
    """(collectives,): the shortest duration of its ranks; likewise the next two."""
    longest_ns: Ints
    is_whole: Flags
    """(collectives,): whether all ranks that took part are there."""
    collective: Ints
    """(parts,): which of them a rank took part in."""
    place: Ints
    """(parts,): where that stands in the columns of all ranks."""


def _matched(every: _JoinedCollectives, duration: Ints) -> _MatchedCollectives:
    is_named = np.array([group != "" for group, _ in every.names], dtype=bool)
    number = every.column("sequence")
    number = np.where(is_named[every.kind] & (number >= 0), number, NOTHING)
    # A number may come again (coalesced calls): then order decides among them.
    same = numbered(every.kind, number)[1]
    together = numbered(same, nth(numbered(every.rank, same)[1]))[1]
    num_ranks = np.bincount(together)[together]
    place = np.flatnonzero(num_ranks > 1)
    matches, collective = grouped(together[place])
    lacks = (num_ranks < every.wanted)[place]
    rank, took = every.rank[place], duration[place]
    # Of a collective the shortest comes first, and of equals the lowest rank.
    order = np.lexsort((rank, took, collective))
    firsts = np.flatnonzero(begins(collective[order]))
    lasts = np.append(firsts[1:], len(order))[: len(firsts)] - 1
    return _MatchedCollectives(
        transfer_ns=took[order[firsts]],
        longest_ns=took[order[lasts]],
        is_whole=np.bincount(collective[lacks], minlength=len(matches)) == 0,
        collective=collective,
        place=place,
    )


def _leads(collective: Ints, duration: Ints) -> Ints:
    """(parts,): how much longer the other ranks' parts of the same collective took."""
    num_ranks = np.bincount(collective)[collective]
    total = np.bincount(collective, duration)[collective]
    leads = (total - duration) / (num_ranks - 1) - duration
    return np.rint(leads).astype(np.int64)


def _groups(
    every: _JoinedCollectives, together: _MatchedCollectives
) -> tuple[GroupRow, ...]:
    """The table of collectives per kind and group, the longest waits in all first."""
    kind, rank = every.kind[together.place], every.rank[together.place]
    of_collective = np.zeros(len(together.transfer_ns), dtype=np.int64)
    of_collective[together.collective] = kind
    skew = together.longest_ns - together.transfer_ns
    rows = []
    for kind_row in np.unique(kind).tolist():
        shown = of_collective == kind_row
        chosen = shown & together.is_whole
        is_known = bool(chosen.any())
        group, name = every.names[kind_row]
        rows.append(
            GroupRow(
                kind=name,
                group=group,
                num_ranks=len(np.unique(rank[kind == kind_row])),
                num_matched=int(shown.sum()),
                mean_skew_ns=float(skew[chosen].mean()) if is_known else None,
                max_skew_ns=int(skew[chosen].max()) if is_known else None,
            )
        )
    return tuple(
        sorted(rows, key=lambda row: -(row.mean_skew_ns or 0) * row.num_matched)
    )


def _rows(
    every: _JoinedCollectives,
    transfer: Ints,
    is_compared: Flags,
    is_missed: Flags,
    lead: Ints,
) -> tuple[CollectiveRow, ...]:
    """The table of collectives per rank, kind and group, the longest first."""
    first, group = numbered(every.rank, every.kind)

    def added(values: Ints, where: Flags | None = None) -> Ints:
        chosen = slice(None) if where is None else where
        return sums(group[chosen], values[chosen], len(first))

    num_bytes, size = every.column("num_bytes"), every.column("group_size")
    duration, ones = every.column("duration_ns"), np.ones_like(group)
    says_bytes, says_size = num_bytes >= 0, size >= 0
    num_compared = added(ones, is_compared)
    is_told = (num_compared > 0) & (added(ones, is_missed) == 0)
    is_moved = is_compared & says_bytes
    one_size = highest(group[says_size], size[says_size], len(first))
    is_one_size = added(ones, says_size) > 0
    is_one_size &= added(ones, says_size & (size != one_size[group])) == 0
    columns = zip(
        every.rank[first].tolist(),
        (every.names[kind] for kind in every.kind[first].tolist()),
        added(ones).tolist(),
        _where(added(num_bytes, says_bytes), added(ones, says_bytes) > 0),
        added(duration).tolist(),
        _where(one_size, is_one_size),
        num_compared.tolist(),
        _where(added(transfer, is_compared), is_told),
        _where(added(duration - transfer, is_compared), is_told),
        _where(added(lead, is_compared), is_told),
        _where(added(num_bytes, is_moved), is_told & (added(ones, is_moved) > 0)),
        added(transfer, is_moved).tolist(),
        strict=True,
    )
    rows = [CollectiveRow(rank, kind, of, *more) for rank, (of, kind), *more in columns]
    return tuple(sorted(rows, key=lambda row: -row.total_ns))


def _where(values: Ints, is_known: Flags) -> list[int | None]:
    """None where it is not known."""
    known_flags = is_known.tolist()
    return [
        value if k else None
        for value, k in zip(values.tolist(), known_flags, strict=True)
    ]
