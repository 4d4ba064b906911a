"""The function, rank and call that an answer of `/functions` is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.series.functions import (
    NO_STEP,
    NO_TIME,
    CallTable,
    CapturedCall,
    calls_of,
    sides,
    with_captures,
)
from memboard.tb_plugin.contract.parameters import Count, Text
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.formats.recording.functions import bit_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.memprofiler.imports import Imports
    from memboard.tb_plugin.formats.memprofiler.names import FunctionKey
    from memboard.tb_plugin.formats.recording.functions import (
        Entry,
        FunctionsReader,
        Snaps,
    )

MAX_CALLS: Final = 1000
USUAL_STATS: Final = ("allocated_bytes.all.current", "rss_bytes")
"""The first of them that was recorded is shown, where the query names no other."""
_MAX_COMPARED: Final = 16
"""Of more ranks the first is shown: reading all takes too long."""
_MAX_ITERATION: Final = 2**31 - 1


class FunctionsQuery(RanksQuery, frozen=True):
    """One function, and one of its collected calls."""

    function: Text | None = None
    attempt: Count | None = None
    iteration: Count | None = None
    step: Count | None = None
    """Where the query names no iteration: of the calls the one nearest to it."""
    stat: Text | None = None
    """`FunctionStat.name`: the one that is drawn."""
    stats: Text | None = None
    """Those in the table, between commas; the one that is drawn where none is one."""
    sides: Text = "start,end,difference"


@dataclass(frozen=True, slots=True, eq=False)
class ShownCalls:
    """A function's newest calls on one rank, and one of them."""

    key: FunctionKey
    rank: int
    ranks: Sequence[int]
    entries: Sequence[Entry]
    snaps: Snaps
    calls: CallTable
    num_calls: int
    at: int | None
    """Which of the calls was chosen."""
    largest_rise: float
    """In one of the calls, bytes; -inf where it was not measured."""

    @property
    def call(self) -> tuple[int, int, int] | None:
        """Attempt, iteration and step of the chosen one."""
        if self.at is None:
            return None
        columns = (self.calls.attempt, self.calls.iteration, self.calls.step)
        attempt, iteration, step = (int(column[self.at]) for column in columns)
        return attempt, iteration, step


def shown_of(
    reader: FunctionsReader,
    view: View[FunctionsQuery],
    collected: Mapping[FunctionKey, Mapping[int, int]],
) -> ShownCalls | None:
    """What the query names, else what is nearest to it; None: nothing was collected."""
    query, budget = view.query, view.budget
    key = _chosen(collected, query)
    if key is None:
        return None
    ranks = sorted(collected[key])
    if query.rank is not None and query.rank in collected[key]:
        return _of_rank(reader, view, key, ranks, query.rank)
    shown = _of_rank(reader, view, key, ranks, ranks[0])
    for rank in ranks[1:] if len(ranks) <= _MAX_COMPARED else ():
        if not budget.allows():
            break
        other = _of_rank(reader, view, key, ranks, rank)
        if other.largest_rise > shown.largest_rise:
            shown = other
    return shown


def _of_rank(
    reader: FunctionsReader,
    view: View[FunctionsQuery],
    key: FunctionKey,
    ranks: Sequence[int],
    rank: int,
) -> ShownCalls:
    run, budget = view.run, view.budget
    snaps = reader.snaps(run, rank, key, budget)
    entries = reader.entries(run, rank, budget)
    captured = _captured(entries, key)
    if run.imported is not None:
        captured += _reported(run.imported, rank, key)
    calls = with_captures(calls_of(snaps.table), captured)
    calls = calls.take(np.flatnonzero(calls.iteration <= _MAX_ITERATION))
    newest = calls.take(slice(-MAX_CALLS, None))
    rises = _rises(snaps, newest)
    return ShownCalls(
        key=key,
        rank=rank,
        ranks=ranks,
        entries=entries,
        snaps=snaps,
        calls=newest,
        num_calls=len(calls) + snaps.num_left_out // 2,
        at=_chosen_call(newest, rises, view.query),
        largest_rise=float(np.nanmax(rises, initial=-np.inf)),
    )


def usual_stat(stats: Container[str]) -> str | None:
    """What calls are chosen by and drawn of; None: none of `USUAL_STATS` was recorded."""
    return next((stat for stat in USUAL_STATS if stat in stats), None)


def _rises(snaps: Snaps, calls: CallTable) -> Floats:
    """(calls,): what memory rose by in each; NaN: not measured on both sides."""
    stat = usual_stat(snaps.table.stats)
    if stat is None:
        return np.full(len(calls), np.nan)
    return sides(snaps.table, calls, stat)[2]


def _chosen(
    collected: Mapping[FunctionKey, Mapping[int, int]], query: FunctionsQuery
) -> FunctionKey | None:
    """The function that the query names, or the first that is nearest to it."""

    def distance(key: FunctionKey) -> tuple[object, ...]:
        return (
            key.function != query.function,
            key.phase != query.phase,
            *place(key),
        )

    return min(collected, key=distance, default=None)


def place(key: FunctionKey) -> tuple[object, ...]:
    """The order of the list: training first, in each phase the whole step, then names."""
    return key.phase != "train", key.phase, key.function != "step", key.function


def _chosen_call(calls: CallTable, rises: Floats, query: FunctionsQuery) -> int | None:
    """That of the request; else the one in which memory rose most, of equal ones the newest."""
    same = np.ones(len(calls), bool)
    if query.iteration is not None:
        same &= calls.iteration == query.iteration
    if query.attempt is not None:
        same &= calls.attempt == query.attempt
    rows = np.flatnonzero(same)
    if len(rows) == 0:
        rows = np.arange(len(calls))
    if query.iteration is None and query.step is not None:
        rows = rows[calls.step[rows] != NO_STEP]
        away = np.abs(calls.step[rows] - query.step)
        rows = rows[away == away.min()] if len(rows) else np.arange(len(calls))
    is_free = query.iteration is None and query.step is None
    if is_free and len(rows) and not np.isnan(rises[rows]).all():
        rows = rows[rises[rows] == np.nanmax(rises[rows])]
    return int(rows[-1]) if len(rows) else None


def _captured(entries: Sequence[Entry], key: FunctionKey) -> list[CapturedCall]:
    return [
        CapturedCall(
            attempt=attempt,
            iteration=entry.iteration,
            step=NO_STEP if entry.step is None else entry.step,
            time_ns=entry.time_ns,
            kinds=bit_of(entry.kind),
        )
        for attempt, _, entry in entries
        if (entry.function, entry.phase) == key
        and bit_of(entry.kind)
        and entry.iteration > 0
    ]


def _reported(imports: Imports, rank: int, key: FunctionKey) -> list[CapturedCall]:
    """Calls that another tool's files are about, as their names say."""
    iterations = [
        (window.iteration, "modules")
        for window, files in imports.windows.items()
        if rank in files and (window.function, window.phase) == key
    ]
    iterations += [
        (file.said.iteration, "history")
        for file in imports.snapshots.of_rank(rank)
        if (file.said.function, file.said.phase) == key
    ]
    return [
        CapturedCall(1, iteration, NO_STEP, NO_TIME, bit_of(kind))
        for iteration, kind in iterations
    ]
