"""Responses about the calls of functions."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
    Unit,
)
from memboard.tb_plugin.api.overview import SourceStatus
from memboard.tb_plugin.api.tables import TableRows

FunctionKind: TypeAlias = Literal["snaps", "hooks", "activations", "modules", "history"]
"""Kinds of data collected around a function's calls."""


class CollectedFunction(Struct, frozen=True):
    """One profiled function in one phase, over all ranks and attempts."""

    function: str
    """`step` for a whole step."""
    phase: str
    kinds: tuple[FunctionKind, ...]
    num_ranks: int


class FunctionCalls(Columns, frozen=True):
    """Collected calls of one function on one rank, in order of time.

    All columns, and those of `StatOfCalls`, have one value per call. The snap that
    MemProfiler calls `rank.function.iteration.start` is the start of that call.
    """

    attempt: I32Column
    iteration: I32Column
    """1-based; counted per function and phase, from 1 again in another attempt."""
    step: F64Column
    """The training step under way; NaN where unknown."""
    start_ms: F64Column
    """NaN where there is no snap of the start."""
    end_ms: F64Column
    """NaN where there is no snap of the end, e.g. because the process died inside."""
    collected: tuple[str, ...]
    """What else was, besides snaps: `hooks, history`."""


FunctionGroup: TypeAlias = Literal["device", "process", "hook"]
"""Subject of a stat; hook: values that the root module's hooks left on it."""


class FunctionStat(Struct, frozen=True):
    """A number that was recorded at the start or end of calls."""

    name: str
    """As recorded, e.g. `allocated_bytes.all.current`, `rss_bytes`, `hook.rss_diff`."""
    label: str
    unit: Unit
    group: FunctionGroup


class StatOfCalls(Columns, frozen=True):
    """A stat at the start and end of each call; NaN: not recorded."""

    stat: FunctionStat
    start: F64Column
    end: F64Column


class FunctionOverRanks(Columns, frozen=True):
    """One stat of one call, rank by rank; ranks ascend."""

    stat: str
    unit: Unit
    rank: I32Column
    start: F64Column
    end: F64Column
    difference: F64Column
    of_ranks: int
    """All that may have the call; more than were read where time did not allow all."""


class ModuleValues(Struct, frozen=True, kw_only=True):
    """What hooks said of every module in one call, or what autograd saved by module."""

    kind: FunctionKind
    incomplete: bool
    """The call ended in an error."""
    table: TableRows
    """In the order of the model."""


class HistoryReference(Struct, frozen=True):
    """A captured allocator history, or a file that holds one."""

    id: str
    """Names it in requests; stays the same while the run grows."""
    rank: int | None
    """None: a file whose name does not say."""
    attempt: int  # 1 of files
    function: str
    """Empty where it was not taken around a call."""
    phase: str
    iteration: int
    """1-based; 0 where it was not taken around a call."""
    context: Literal["start", "end", ""]
    label: str
    """The user's own name for it, or what a file's name says; may hold any text."""
    step: int | None
    time_ms: float
    """When it was taken; of a file: when it was last written."""
    num_bytes: int
    path: str
    """Of a file beside the run's records, relative to the logdir; empty: recorded."""
    title: str
    """A file's name; of a capture why it was taken, `after iteration 3 of step`."""


class FunctionsResponse(Columns, frozen=True):
    """Route `/functions` (run, rank, function, phase, attempt, iteration, step, stat, stats, sides).

    Memory around calls of functions: which functions, the calls of one of them on one
    rank, and what was collected in one call. What the query leaves out, or is not there,
    has a default: the first function, the rank and call in which memory rose most, or where
    `step` is named the call nearest to it; of stats the allocated bytes, else resident memory,
    by which that is decided too, else the first. The answer says what it shows.
    """

    run: RunSummary
    source: Literal["recorded", "imported"]
    functions: tuple[CollectedFunction, ...]  # At most 1,000
    function: str | None
    """None where nothing was collected (then `absent` says why)."""
    phase: str
    ranks: I32Column
    """Ranks that have the function in this phase."""
    rank: int | None
    calls: FunctionCalls  # The newest 1,000
    num_calls: int
    """All there are; about, where they are many."""
    table: TableRows
    """Of the calls: where and when each was, what was collected, and the query's stats."""
    stats: tuple[FunctionStat, ...]
    """All that any of the calls has."""
    shown: tuple[str, ...]
    drawn: StatOfCalls | None
    """The one over calls and over ranks; None: no stat was recorded."""
    growth: str
    """What one call adds to it, and what all do, in a sentence; or how to record stats."""
    attempt: int | None
    """With `iteration`: the call that the fields below are about."""
    iteration: int | None
    selected: int | None  # Its row of `calls`
    over_ranks: FunctionOverRanks | None
    tables: tuple[ModuleValues, ...]
    """What was collected by module in the call."""
    histories: tuple[HistoryReference, ...]
    """Of the rank: of every function and by hand, by time; the newest 1,000. Those of
    the call first."""
    history_table: TableRows
    """As the page lists them, in the same order."""
    num_own_histories: int
    export_command: str
    """Writes the recorded ones as files; empty: none is recorded."""
    module_window: str | None
    """ModuleWindow.id of the call, where its modules were tracked."""
    absent: tuple[SourceStatus, ...]
    problems: tuple[Problem, ...]
