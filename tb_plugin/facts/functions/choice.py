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
    with_captures,
)
from memboard.tb_plugin.contract.parameters import Count, Text
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.formats.recording.functions import bit_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.memprofiler.imports import Imports
    from memboard.tb_plugin.formats.memprofiler.names import FunctionKey
    from memboard.tb_plugin.formats.recording.functions import (
        Entry,
        FunctionsReader,
        Snaps,
    )

MAX_CALLS: Final = 1000
_MAX_ITERATION: Final = 2**31 - 1


class FunctionsQuery(RanksQuery, frozen=True):
    """One function, and one of its collected calls."""

    function: Text | None = None
    attempt: Count | None = None
    iteration: Count | None = None
    step: Count | None = None
    """Where no iteration is asked for: of the calls the one nearest to it."""
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
    """What was asked for, else what is nearest to it; None: nothing was collected."""
    run, query, budget = view.run, view.query, view.budget
    key = _chosen(collected, query)
    if key is None:
        return None
    ranks = sorted(collected[key])
    rank = ranks[0]
    if query.rank is not None and query.rank in collected[key]:
        rank = query.rank
    snaps = reader.snaps(run, rank, key, budget)
    entries = reader.entries(run, rank, budget)
    captured = _captured(entries, key)
    if run.imported is not None:
        captured += _reported(run.imported, rank, key)
    calls = with_captures(calls_of(snaps.table), captured)
    calls = calls.take(np.flatnonzero(calls.iteration <= _MAX_ITERATION))
    newest = calls.take(slice(-MAX_CALLS, None))
    return ShownCalls(
        key=key,
        rank=rank,
        ranks=ranks,
        entries=entries,
        snaps=snaps,
        calls=newest,
        num_calls=len(calls) + snaps.num_left_out // 2,
        at=_chosen_call(newest, query),
    )


def _chosen(
    collected: Mapping[FunctionKey, Mapping[int, int]], query: FunctionsQuery
) -> FunctionKey | None:
    """The function that was asked for, or the first that is nearest to it."""

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


def _chosen_call(calls: CallTable, query: FunctionsQuery) -> int | None:
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
