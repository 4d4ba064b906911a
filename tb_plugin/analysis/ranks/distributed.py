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
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.trace.trace import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from tb_plugin.analysis.ranks.collectives import RankCollectives

    Ints: TypeAlias = npt.NDArray[Any]
    Floats: TypeAlias = npt.NDArray[np.float64]
    Bools: TypeAlias = npt.NDArray[np.bool_]

_BUS_FACTORS: Final = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
}
"""Bytes on the busiest link per byte of the collective, as nccl-tests counts them."""


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Collectives that several ranks took part in."""

    transfer_ns: Ints
    """(collectives,): the shortest duration of its ranks; likewise the next two."""
    longest_ns: Ints
    last_rank: Ints
    """The rank the others waited for: it measured the shortest duration."""
    collective: Ints
    """(parts,): which of them a rank took part in; likewise the next two."""
    rank: Ints
    row: Ints
    """Its place in the rank's `RankCollectives`."""
    is_whole: Bools
    """(collectives,): whether all ranks that took part are there."""

    def __len__(self) -> int:
        return len(self.transfer_ns)


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
    """While data moved."""
    waiting_ns: int | None
    """The rest of their time: spent waiting for other ranks."""
    num_last: int | None
    """Calls in which the others waited for this rank."""
    moved_bytes: int | None = None
    """Of those that say it, likewise the next."""
    moving_ns: int = 0

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
    a rank's trace is missing, likewise the next two."""
    max_skew_ns: int | None
    last_rank: int | None
    """The rank that came last most often."""
    last_share: float | None
    """Of the collectives; 0 to 1."""


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
    is_compared: Bools
    """Whether all ranks that took part show it; `transfer_ns` says nothing where not."""
    is_missed: Bools
    """Whether it is not, because the trace of a rank is missing."""


def compared(
    ranks: Mapping[int, RankCollectives], world_size: int = NOTHING
) -> ComparedRanks:
    """The collectives of these ranks beside each other.

    `world_size`: how many ranks the training has, where their traces say it.
    """
    every = _Joined(ranks)
    together = matched(ranks, world_size)
    moved = transfers(ranks, together)
    is_compared = _compared(every, together)
    is_missed = ~is_compared & _misses_ranks(every, world_size)
    return ComparedRanks(
        num_matched=int(together.is_whole.sum()),
        rows=collective_rows(ranks, together, world_size),
        groups=group_rows(ranks, together),
        rank=every.rank,
        start_ns=every.column("start_ns"),
        duration_ns=every.column("duration_ns"),
        transfer_ns=np.concatenate([*moved.values(), np.empty(0, np.int64)]),
        is_compared=is_compared,
        is_missed=is_missed,
    )


def group_rows(
    ranks: Mapping[int, RankCollectives], together: Matched
) -> tuple[GroupRow, ...]:
    """The table of collectives per kind and group, the longest waits in all first."""
    every = _Joined(ranks)
    kind = every.kind[every.place(together.rank, together.row)]
    of_collective = np.zeros(len(together), dtype=np.int64)
    of_collective[together.collective] = kind
    skew = together.longest_ns - together.transfer_ns
    rows = []
    for one in np.unique(kind).tolist():
        shown = of_collective == one
        chosen = shown & together.is_whole
        is_known = bool(chosen.any())
        own = kind == one
        last, times = np.unique(together.last_rank[chosen], return_counts=True)
        first = int(np.flatnonzero(own)[0])
        rank, place = int(together.rank[first]), int(together.row[first])
        rows.append(
            GroupRow(
                kind=ranks[rank].kind[place],
                group=ranks[rank].group[place],
                num_ranks=len(np.unique(together.rank[own])),
                num_matched=int(shown.sum()),
                mean_skew_ns=float(skew[chosen].mean()) if is_known else None,
                max_skew_ns=int(skew[chosen].max()) if is_known else None,
                last_rank=int(last[np.argmax(times)]) if is_known else None,
                last_share=float(times.max() / chosen.sum()) if is_known else None,
            )
        )
    return tuple(
        sorted(rows, key=lambda row: -(row.mean_skew_ns or 0) * row.num_matched)
    )


def matched(ranks: Mapping[int, RankCollectives], world_size: int = NOTHING) -> Matched:
    """What belongs together of the collectives of these ranks."""
    every = _Joined(ranks)
    named = np.array([name != "" for name in every.texts("group")], dtype=bool)
    number = every.column("sequence")
    number = np.where(named & (number >= 0), number, NOTHING)
    # A number may come again (coalesced calls): then order decides among them.
    same = _numbered(every.kind, number)
    together = _numbered(same, _nth(_numbered(every.rank, same)))
    _, group, num_ranks = np.unique(together, return_inverse=True, return_counts=True)
    several = num_ranks[group] > 1
    wanted = every.wanted_ranks(world_size)
    matches, collective = np.unique(group[several], return_inverse=True)
    is_whole = np.full(len(matches), True)
    np.logical_and.at(is_whole, collective, (num_ranks[group] >= wanted)[several])
    rank, row = every.rank[several], every.row[several]
    duration = every.column("duration_ns")[several]
    # Of a collective the shortest comes first, and of equals the lowest rank.
    order = np.lexsort((rank, duration, collective))
    firsts = np.flatnonzero(np.diff(collective[order], prepend=-1))
    lasts = np.append(firsts[1:], len(order))[: len(firsts)] - 1
    return Matched(
        transfer_ns=duration[order[firsts]],
        longest_ns=duration[order[lasts]],
        last_rank=rank[order[firsts]],
        collective=collective,
        rank=rank,
        row=row,
        is_whole=is_whole,
    )


def transfers(
    ranks: Mapping[int, RankCollectives], together: Matched
) -> dict[int, Ints]:
    """By rank and collective, how long data moved; all of it where nothing compares."""
    every = _Joined(ranks)
    moved = every.column("duration_ns")
    moved[every.place(together.rank, together.row)] = together.transfer_ns[
        together.collective
    ]
    return dict(zip(every.own, np.split(moved, every.starts[1:-1]), strict=False))


def _compared(every: _Joined, together: Matched) -> Bools:
    """(calls,): whether the traces of all ranks that took part show a collective."""
    found: Bools = every.column("group_size") == 1
    found[every.place(together.rank, together.row)] = together.is_whole[
        together.collective
    ]
    return found


def _misses_ranks(every: _Joined, world_size: int) -> Bools:
    """(calls,): whether fewer ranks show any of its kind and group than take part.

    Where as many do, the call itself lies at the end of what was profiled.
    """
    pairs = np.unique(np.stack([every.kind, every.rank]), axis=1)
    num_ranks = np.bincount(pairs[0], minlength=len(every.kind) + 1)
    missed: Bools = num_ranks[every.kind] < every.wanted_ranks(world_size)
    return missed


def collective_rows(
    ranks: Mapping[int, RankCollectives],
    together: Matched,
    world_size: int = NOTHING,
) -> tuple[CollectiveRow, ...]:
    """The table of collectives per rank, kind and group, the longest first."""
    every = _Joined(ranks)
    keys = _numbered(every.rank, every.kind)
    _, first, at = np.unique(keys, return_index=True, return_inverse=True)

    def sums(values: Ints) -> list[int]:
        added = np.zeros(len(first), dtype=np.int64)
        np.add.at(added, at, values)
        return [int(value) for value in added]

    num_bytes = every.column("num_bytes")
    is_known = num_bytes >= 0
    of_rank = transfers(ranks, together)
    moved = np.concatenate([of_rank[rank] for rank in every.own] or [at])
    duration = every.column("duration_ns")
    is_compared = _compared(every, together)
    num_compared = sums(is_compared)
    num_missed = sums(~is_compared & _misses_ranks(every, world_size))
    is_last = together.rank == together.last_rank[together.collective]
    is_last &= together.is_whole[together.collective]
    came_last = np.zeros(len(at), dtype=np.int64)
    came_last[every.place(together.rank[is_last], together.row[is_last])] = 1
    num_calls, num_known = sums(np.ones_like(came_last)), sums(is_known)
    total_bytes = sums(np.where(is_known, num_bytes, 0))
    total_ns = sums(duration)
    transfer_ns = sums(np.where(is_compared, moved, 0))
    waiting_ns = sums(np.where(is_compared, duration - moved, 0))
    is_moved = is_compared & is_known
    num_moved = sums(is_moved)
    moved_bytes = sums(np.where(is_moved, num_bytes, 0))
    moving_ns = sums(np.where(is_moved, moved, 0))
    group_size = _only(every.column("group_size"), at, len(first))
    num_last = sums(came_last)
    rows = []
    for group, one in enumerate(first.tolist()):
        own, place = ranks[int(every.rank[one])], int(every.row[one])
        is_told = num_compared[group] > 0 and not num_missed[group]
        rows.append(
            CollectiveRow(
                rank=int(every.rank[one]),
                kind=own.kind[place],
                group=own.group[place],
                num_calls=num_calls[group],
                num_bytes=total_bytes[group] if num_known[group] else None,
                total_ns=total_ns[group],
                group_size=group_size[group],
                num_compared=num_compared[group],
                transfer_ns=transfer_ns[group] if is_told else None,
                waiting_ns=waiting_ns[group] if is_told else None,
                num_last=num_last[group] if is_told else None,
                moved_bytes=moved_bytes[group]
                if is_told and num_moved[group]
                else None,
                moving_ns=moving_ns[group],
            )
        )
    return tuple(sorted(rows, key=lambda row: -row.total_ns))


class _Joined:
    """Columns of the collectives of all ranks, one rank after the other."""

    def __init__(self, ranks: Mapping[int, RankCollectives]) -> None:
        self._ranks = ranks
        self.own = sorted(ranks)
        sizes = [len(ranks[rank]) for rank in self.own]
        self.starts = np.cumsum([0, *sizes])
        self.rank = np.repeat(np.array(self.own, dtype=np.int64), sizes)
        self.row = np.arange(len(self.rank)) - np.repeat(self.starts[:-1], sizes)

    @cached_property
    def kind(self) -> Ints:
        """Number of its group and kind."""
        known: dict[tuple[str, str], int] = {}
        names = zip(self.texts("group"), self.texts("kind"), strict=True)
        kinds = [known.setdefault(one, len(known)) for one in names]
        return np.array(kinds, dtype=np.int64)

    def wanted_ranks(self, world_size: int) -> Ints:
        """(collectives,): how many ranks' traces show one that is whole.

        The size of its group; where that is not said, all ranks that there are, but at
        least two: of one alone nothing says who else took part.
        """
        size = self.column("group_size")
        num_ranks = max(world_size, self.own[-1] + 1 if self.own else 0)
        is_all = len(self.own) >= num_ranks
        wanted: Ints = np.where(size > 0, size, 2 if is_all else num_ranks)
        return wanted

    def texts(self, name: str) -> list[str]:
        return [text for rank in self.own for text in getattr(self._ranks[rank], name)]

    def column(self, name: str) -> Ints:
        columns = [getattr(self._ranks[rank], name) for rank in self.own]
        return np.concatenate([*columns, np.empty(0, np.int64)]).astype(np.int64)

    def place(self, rank: Ints, row: Ints) -> Ints:
        """Where collectives of ranks stand in the columns."""
        place: Ints = self.starts[np.searchsorted(self.own, rank)] + row
        return place


def _numbered(*columns: Ints) -> Ints:
    """By row, one number that is the same where all columns are the same."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        known, place = np.unique(column, return_inverse=True)
        found = found * len(known) + place
    return found


def _nth(key: Ints) -> Ints:
    """By row, how many rows before it have its key."""
    order = np.argsort(key, kind="stable")
    places = np.arange(len(order))
    begins = np.diff(key[order], prepend=-1) != 0
    nth = np.empty(len(order), dtype=np.int64)
    nth[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return nth


def _only(sizes: Ints, at: Ints, num: int) -> list[int | None]:
    """By group the one size that is said; None where none is, or several are."""
    least = np.full(num, np.iinfo(np.int64).max)
    most = np.full(num, NOTHING, dtype=np.int64)
    is_known = sizes >= 0
    np.minimum.at(least, at[is_known], sizes[is_known])
    np.maximum.at(most, at[is_known], sizes[is_known])
    return [
        int(size) if one else None
        for size, one in zip(most, least == most, strict=True)
    ]
