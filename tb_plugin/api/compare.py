"""Responses of comparisons: two runs or ranks, two moments, the histories of all ranks."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    Columns,
    F64Column,
    I32Column,
    RunStanding,
    RunSummary,
)
from memboard.tb_plugin.api.memory.blocks import AllocationMoment, StackColumns
from memboard.tb_plugin.api.memory.calls import HistoryReference
from memboard.tb_plugin.api.memory.histories import HistoryState
from memboard.tb_plugin.api.tables import TableRows

CompareBy: TypeAlias = Literal["category", "module", "line", "size", "stack"]
"""line: of the user's own code; size: powers of two."""


class CompareTable(Struct, frozen=True):
    """Live bytes of both sides by something, the largest difference first."""

    by: CompareBy
    rows: TableRows
    """The first column has names: a `CategoryGroup`, or any text; of stacks none. NaN:
    that side has no such row."""


class CompareSide(Struct, frozen=True):
    run: RunSummary
    reference: HistoryReference
    device: int
    moment: AllocationMoment
    words: str


class Comparison(Struct, frozen=True):
    """A against B: two runs, or two moments."""

    a: RunSummary | CompareSide
    b: RunSummary | CompareSide
    sentence: str
    """What differs most of all, as far as the data go."""
    figures: TableRows
    """Those that at least one side has."""
    tables: tuple[CompareTable, ...]


class CompareRunsResponse(Comparison, frozen=True):
    """Route `/compare_runs` (run, rank, b_run, b_rank): A against B, by their numbers.

    Figures are of each the worst rank's, as on the Overview. Tables are at the peak of a
    tracked step, equal layers as one, `layers.*`; empty unless one of the runs tracked the
    memory of modules.
    """

    a: RunSummary
    b: RunSummary
    tables_of: str
    """At which moments, in words."""
    moment_figures: TableRows
    """Numbers of these moments, which the tables add up to; no row without tables."""
    still_reading: bool
    """Some ranks were not read yet: what is unknown may become known."""


class RunTableResponse(Struct, frozen=True):
    """Route `/run_table`: every run of the logdir as one row, the worst first.

    Columns whose key begins with `setting:` hold settings that differ between runs.
    """

    standings: tuple[RunStanding, ...]
    """In the order of the rows."""
    table: TableRows
    still_reading: bool
    """Some runs were not read yet: what is unknown may become known."""


StackMatch: TypeAlias = Literal["exact", "function"]
"""exact: the same lines of the same files. function: the same functions of files of the
same name, whatever the line and the folder: for two versions of the code."""


class CompareStacks(StackColumns, frozen=True):
    """Live bytes of both sides by stack, the largest difference first; at most 10,000.

    Lines are 0 where they are not compared.
    """

    a_bytes: F64Column
    b_bytes: F64Column
    num_stacks: int
    """All, of which those beyond the columns were left out."""


class CompareResponse(Comparison, frozen=True):
    """Route `/compare`: what lives at a moment of one history, against another's.

    There is one table per `CompareBy`, of which the last has the rows of `stacks`.
    """

    a: CompareSide
    b: CompareSide
    stacks: CompareStacks


class RankHistory(Struct, frozen=True):
    """One rank's history among those of all ranks."""

    rank: int
    reference: HistoryReference
    state: HistoryState
    """The numbers below are known where it is `ready`."""
    problem: str
    """Why it cannot be opened; else empty."""
    device: int | None
    peak_active_bytes: float | None
    peak_moment: int | None
    num_ooms: int | None


class RankHistoriesResponse(Columns, frozen=True):
    """Route `/rank_histories` (run, history): the same moment's histories of all ranks.

    Of every rank the history that belongs with the query's (same origin, call and
    label), or its newest; opened a few at a time, so ask again while `still_reading`.
    """

    run: RunSummary
    title: str
    """What they have in common, e.g. `oom` or `step 3, end`."""
    sentence: str
    note: str
    ranks: tuple[RankHistory, ...]
    """By rank; at most 4,096, spread evenly over all there are."""
    table: TableRows
    """The same ranks, with the bytes of each of `lines`."""
    median_history_peak_bytes: float | None
    """Of those that are ready. Histories show a few steps of a few
    ranks: the median over all ranks' whole runs is `RankStrip.median_peak_bytes`."""
    lines: tuple[str, ...]
    """The 20 lines whose bytes at the peaks differ most between ranks, or are most."""
    line_bytes: F64Column
    """lines x ranks, row by row; NaN of ranks that are not ready."""
    still_reading: bool


TraceTableName: TypeAlias = Literal[
    "operators", "kernels", "calls", "modules", "memory"
]
TracePer: TypeAlias = Literal["trace", "step"]
"""Sums over each whole trace, or divided by its number of profiled steps."""


class TraceMeasure(Struct, frozen=True):
    """What a table of two traces can compare."""

    name: str
    """In files, with its unit."""
    title: str


class CompareTracesResponse(Columns, frozen=True):
    """Route `/compare_traces`: a table of one trace (run, source) against another's.

    The other one is (b_run, b_source). Rows of equal name are joined in their order; those
    of calls and modules by their place in the tree.
    """

    sentence: str
    """How long a step takes on both sides."""
    roles: TableRows
    """Time of a mean step, and of the whole of it."""
    table: TraceTableName
    rows: TableRows
    """NaN where a side has no such row or number; all other measures are in files."""
    parent: I32Column
    """Of calls and modules the row around each, or -1, before it; else empty."""
    measure: str
    """The one that is compared."""
    measures: tuple[TraceMeasure, ...]
    """Those that at least one side has."""
    per: TracePer
    lacks: str
    """Which side has none of it and why, as a sentence; else empty."""
    note: str
    """Of which devices memory is, and how many rows were left out; may be empty."""
