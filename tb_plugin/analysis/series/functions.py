"""Memory around calls of functions: snaps at start and end, paired call by call.

Snaps come from the tables a rank recorded, column by column, or one by one from another
tool's report (`table_of`); both end as a `SnapTable`. A call is known by its attempt and
iteration: a job that was started again counts from one again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import Table, picked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints


Context: TypeAlias = Literal["start", "end"]

CONTEXTS: Final[tuple[Context, ...]] = ("start", "end")
"""In tables a context is its index here."""

HOOK_PREFIX: Final = "hook."
"""Stats of this prefix are what hooks left on the root module."""

NO_TIME: Final = -1
NO_STEP: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Snap:
    """What one rank's memory was at the start or end of one call."""

    rank: int
    function: str
    phase: str
    iteration: int  # 1-based
    context: Context
    time_ns: int | None
    """None where the report does not say."""
    values: Mapping[str, float] = field(default_factory=dict)
    """By stat; bytes and counts under torch's flat names, `rss_bytes`, `vms_bytes`,
    `hook.<attribute>`."""
    step: int | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class SnapTable(Table):
    """Snaps of one function in one phase on one rank; a value per snap in each array."""

    attempt: Ints
    iteration: Ints
    context: Ints  # Index into `CONTEXTS`
    time_ns: Ints  # `NO_TIME` where unknown
    step: Ints  # `NO_STEP` where unknown
    stats: Mapping[str, Floats]
    """By name, in the order they are shown; NaN where a snap has no such stat."""


@dataclass(frozen=True, slots=True, eq=False)
class CallTable(Table):
    """Calls in order of time; a value per call in each array."""

    attempt: Ints
    iteration: Ints
    step: Ints  # `NO_STEP` where unknown
    start_ns: Ints
    """`NO_TIME` where there is no snap of the start, or its time is unknown."""
    end_ns: Ints
    start_row: Ints
    """Which row of the snaps it is; -1 for none."""
    end_row: Ints
    kinds: Ints
    """Bits of what was collected; the lowest stands for snaps."""


NO_CALLS: Final = CallTable(*np.empty((8, 0), np.int64))


class CapturedCall(NamedTuple):
    """A call that captures tell of."""

    attempt: int
    iteration: int
    step: int  # `NO_STEP` where unknown
    time_ns: int
    kinds: int
    """Bits of what was captured."""


def table_of(snaps: Sequence[Snap]) -> SnapTable:
    """Snaps of one function, phase and rank as a table, in the order given."""
    names = dict.fromkeys(stat for snap in snaps for stat in snap.values)
    nothing = float("nan")
    return SnapTable(
        attempt=_ints(snap.attempt for snap in snaps),
        iteration=_ints(snap.iteration for snap in snaps),
        context=_ints(CONTEXTS.index(snap.context) for snap in snaps),
        time_ns=_ints(NO_TIME if s.time_ns is None else s.time_ns for s in snaps),
        step=_ints(NO_STEP if s.step is None else s.step for s in snaps),
        stats={
            stat: np.array([s.values.get(stat, nothing) for s in snaps], np.float64)
            for stat in names
        },
    )


def joined(tables: Sequence[SnapTable]) -> SnapTable:
    """Tables as one, in the order of their attempts, inside one of their times.

    A stat that only some of them have is NaN in the others.
    """
    sizes = [len(table) for table in tables]
    ends = np.cumsum([0, *sizes])
    stats: dict[str, Floats] = {}
    for stat in dict.fromkeys(name for table in tables for name in table.stats):
        stats[stat] = np.full(int(ends[-1]), np.nan)
        for table, start, end in zip(tables, ends, ends[1:], strict=False):
            if stat in table.stats:
                stats[stat][start:end] = table.stats[stat]
    keys = [
        np.concatenate([np.empty(0, np.int64), *(getattr(t, key) for t in tables)])
        for key in ("attempt", "iteration", "context", "time_ns", "step")
    ]
    order = np.lexsort((keys[3], keys[0]))
    if len(tables) == 1:
        order = np.arange(sizes[0])
    attempt, iteration, context, time_ns, step = (key[order] for key in keys)
    return SnapTable(
        attempt=attempt,
        iteration=iteration,
        context=context,
        time_ns=time_ns,
        step=step,
        stats={name: values[order] for name, values in stats.items()},
    )


def calls_of(snaps: SnapTable) -> CallTable:
    """Pair starts and ends; of a side that was snapped twice, the later row counts.

    Calls come in the order of their attempts, inside one in that of their times, and
    where no time is known in that of their iterations.
    """
    keys = np.stack([snaps.attempt, snaps.iteration], axis=1)
    calls, of_row = np.unique(keys, axis=0, return_inverse=True)
    rows = np.full((2, len(calls)), -1, np.int64)
    sane = (snaps.context == 0) | (snaps.context == 1)
    sane_rows = np.flatnonzero(sane)
    # A later row overwrites an earlier one.
    rows[snaps.context[sane_rows], of_row.reshape(-1)[sane_rows]] = sane_rows
    has_snap = (rows >= 0).any(axis=0)
    calls, rows = calls[has_snap], rows[:, has_snap]
    start_ns, end_ns = (picked(snaps.time_ns, row, NO_TIME) for row in rows)
    steps = [picked(snaps.step, row, NO_STEP) for row in rows]
    table = CallTable(
        attempt=calls[:, 0],
        iteration=calls[:, 1],
        step=np.where(steps[0] == NO_STEP, steps[1], steps[0]),
        start_ns=start_ns,
        end_ns=end_ns,
        start_row=rows[0],
        end_row=rows[1],
        kinds=np.ones(len(calls), np.int64),
    )
    return table.take(_in_order(table))


def with_captures(calls: CallTable, captures: Iterable[CapturedCall]) -> CallTable:
    """The calls, and those that only captures tell of; each with the bits of both."""
    place = {
        call: row
        for row, call in enumerate(
            zip(calls.attempt.tolist(), calls.iteration.tolist(), strict=True)
        )
    }
    kinds = calls.kinds.copy()
    more: dict[tuple[int, int], CapturedCall] = {}
    for captured in captures:
        key = captured.attempt, captured.iteration
        row = place.get(key)
        if row is not None:
            kinds[row] |= captured.kinds
        else:
            bits = captured.kinds | (more[key].kinds if key in more else 0)
            more[key] = captured._replace(kinds=bits)
    added = list(more.values())
    nothing = np.full(len(added), -1, np.int64)
    times = _ints(call.time_ns for call in added)
    table = CallTable(
        attempt=np.append(calls.attempt, _ints(call.attempt for call in added)),
        iteration=np.append(calls.iteration, _ints(call.iteration for call in added)),
        step=np.append(calls.step, _ints(call.step for call in added)),
        start_ns=np.append(calls.start_ns, np.full(len(added), NO_TIME)),
        end_ns=np.append(calls.end_ns, times),
        start_row=np.append(calls.start_row, nothing),
        end_row=np.append(calls.end_row, nothing),
        kinds=np.append(kinds, _ints(call.kinds for call in added)),
    )
    return table.take(_in_order(table))


def sides(
    snaps: SnapTable, calls: CallTable, stat: str
) -> tuple[Floats, Floats, Floats]:
    """A stat at each call's start, at its end, and the end less the start.

    NaN where a side was not snapped or has no such stat.
    """
    values = snaps.stats.get(stat)
    if values is None:
        nothing = np.full(len(calls), np.nan)
        return nothing, nothing, nothing
    start = picked(values, calls.start_row, np.nan)
    end = picked(values, calls.end_row, np.nan)
    with np.errstate(invalid="ignore"):  # infinite less infinite
        return start, end, end - start


def unit_of(stat: str) -> Literal["bytes", "count"]:
    """The unit that a stat's name tells, for reports that have no units."""
    of_bytes = "bytes" in stat or stat.startswith(("hook.rss_", "hook.npp_"))
    return "bytes" if of_bytes else "count"


def _in_order(calls: CallTable) -> Ints:
    when = np.where(calls.end_ns == NO_TIME, calls.start_ns, calls.end_ns)
    return np.lexsort((calls.iteration, when, calls.attempt))


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
