"""Responses about a run's series: lines and heatmap."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    NO_I32,
    NO_U16,
    CapacityKind,
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
    U16Column,
    Unit,
    XKind,
)

SeriesGroup: TypeAlias = Literal[
    "device", "process", "timing", "host", "sensor", "progress"
]
"""In the order of the choice of a series."""
GROUPS: Final = get_args(SeriesGroup)


class SeriesInfo(Struct, frozen=True):
    """A recorded column that can be drawn."""

    key: str  # `table/column`, e.g. `step/allocated_peak_bytes`
    label: str
    """Names the table too where two tables have a column of that name."""
    unit: Unit
    group: SeriesGroup
    headline: bool
    """Kept pre-aggregated: instant at any number of ranks."""
    num_ranks: int
    is_flat: bool = False
    """Of the one rank shown, and all that was recorded: its value never changed, or it
    has none."""


class AbsentSeries(Struct, frozen=True):
    """A series some source would give, with the reason it is not there."""

    group: SeriesGroup
    source: str
    reason: str
    remedy: str


class Mark(Struct, frozen=True):
    """An instant on the x axis."""

    kind: Literal["attempt", "epoch", "phase", "oom", "retry", "dropped", "user"]
    x: float
    rank: int | None
    label: str


class RankLine(Columns, frozen=True):
    """One rank's line; x ascends; columns have equal length.

    Where rows were merged for the width, y is the highest value inside each merged
    group (peaks never vanish) and y_low the lowest; otherwise both are equal.
    """

    rank: int
    why: Literal["selected", "pinned", "high", "low", "oom"]
    x: F64Column
    y: F64Column
    y_low: F64Column


class RankBand(Columns, frozen=True):
    """Spread over ranks at each x: columns of equal length."""

    num_ranks: int
    x: F64Column
    low: F64Column
    p5: F64Column
    median: F64Column
    p95: F64Column
    high: F64Column
    high_rank: I32Column
    """Which rank is the highest at each x."""


class TimelineResponse(Struct, frozen=True):
    """Route `/timeline` (run, rank, ranks, pinned, series, x, x0, x1, px, phase)."""

    run: RunSummary
    series: SeriesInfo | None
    """None where the run has nothing to draw (then `absent` says why)."""
    x: XKind
    x_low: float
    x_high: float
    """Full extent of the data, whatever part is shown."""
    rows_per_point: int
    """1 where every row is drawn."""
    lines: tuple[RankLine, ...]
    band: RankBand | None  # Present above 16 ranks
    capacity_bytes: float | None
    """The smallest device (or memory limit) among the ranks drawn."""
    capacity_kind: CapacityKind
    marks: tuple[Mark, ...]
    available: tuple[SeriesInfo, ...]
    absent: tuple[AbsentSeries, ...]
    phases: tuple[str, ...]
    problems: tuple[Problem, ...]


class HeatmapResponse(Columns, frozen=True, kw_only=True):
    """Route `/heatmap` (run, ranks, series, x0, x1, px, rows, phase): rank by step.

    `values` is row-major: `num_rows` rows of `num_columns` cells; 0 means nothing was
    recorded, 1..65535 maps linearly onto value_low..value_high. Each cell is the
    highest value inside it. Row i covers `ranks_per_row` ranks from `row_rank[i]`.
    """

    run: RunSummary
    series: SeriesInfo | None = None
    x_low: float = 0.0
    x_high: float = 0.0
    x0: float = 0.0
    steps_per_column: float = 1.0
    """Column c covers steps x0 + c * steps_per_column and the following."""
    num_rows: int = 0
    num_columns: int = 0
    ranks_per_row: int = 1
    row_rank: I32Column = NO_I32
    values: U16Column = NO_U16
    value_low: float = 0.0
    value_high: float = 0.0
    capacity_bytes: float | None = None
    noise: float = 0.0
    """Of times: cells that differ by less are alike."""
    exact: bool = True
    """False while the cells come from pre-aggregated buckets wider than a column."""
    marks: tuple[Mark, ...] = ()
    absent: tuple[AbsentSeries, ...] = ()
