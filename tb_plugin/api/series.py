"""Responses about the course of a run: overview, timeline, heatmap, host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from tb_plugin.api.base import (
        CapacityKind,
        F64Column,
        I32Column,
        Problem,
        RunSummary,
        U8Column,
        U16Column,
        Unit,
        XKind,
    )


HeadlineKey: TypeAlias = Literal[
    "peak_allocated",
    "peak_reserved",
    "headroom",
    "fragmentation",
    "non_torch",
    "growth",
    "rss_peak",
    "rss_headroom",
    "rss_growth",
    "step_time",
    "cpu",
    "workers_rss",
]

HeadlineCaveat: TypeAlias = Literal[
    "sampled",
    "estimated",
    "cumulative_peak",
    "no_limit",
    "few_steps",
    "after_warmup",
    "one_host",
]


EndedHow: TypeAlias = Literal["exception", "signal", "lost"]
"""How a recording ended that did not end in order.

exception  one that nobody caught, or that left `record`'s with-block
signal     one that ends the process, where `oom.on_sigterm` has it listened to
lost       no closing record and no new rows: killed, or its machine or disk was lost
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of the job in the same logdir."""

    index: int
    """1 for the first."""
    started_ms: float
    ended_ms: float | None
    """None while it may still run."""
    first_step: int | None
    last_step: int | None
    num_ranks: int
    ended: Literal["closed", "exception", "signal", "lost", "running"]
    """The worst end of its ranks, see `EndedHow`."""
    overlaps_previous: bool
    """Two jobs wrote into this run at the same time."""


@dataclass(frozen=True, slots=True)
class Headline:
    """One of the six headline numbers."""

    key: HeadlineKey
    value: float | None
    unit: Unit
    rank: int | None
    """The worst rank, where the number is a rank's."""
    step: int | None
    sparkline: F64Column
    """At most 120 values over the run, of the worst rank."""
    caveats: tuple[HeadlineCaveat, ...]
    absent_reason: str | None
    """Why there is no value; set exactly when value is None."""
    other_end: float | None = None
    """Where the value is an end of an estimated range, the worse one: the other one."""


@dataclass(frozen=True, slots=True)
class RankStrip:
    """One entry per rank, in rank order; feeds the strip and the rank table."""

    peak_series: str
    """SeriesInfo.key of the peak shown."""
    capacity_kind: CapacityKind
    rank: I32Column
    host: I32Column
    """Index into `hosts`."""
    peak_bytes: F64Column
    peak_step: F64Column
    capacity_bytes: F64Column
    growth_bytes_per_step: F64Column
    num_alloc_retries: F64Column
    num_ooms: F64Column
    last_step: F64Column
    lost: U8Column
    """1 where the rank's last attempt ended without a closing record."""
    hosts: tuple[str, ...]
    median_peak_bytes: float | None
    """Of all ranks of the run, also where one is shown; None too while some are still
    being read."""
    outliers: tuple[int, ...]
    """Ranks shown that are far above all others (see analysis/ranks.py), worst first, at
    most 16."""
    num_unread: int
    """Ranks still being read: nothing is said of all ranks before it is 0."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One source: was it recorded, and if not, why and what to do."""

    source: str
    status: Literal["recorded", "absent", "off", "failed"]
    num_ranks: int
    """Ranks with this status."""
    reason: str
    remedy: str
    cost: str


@dataclass(frozen=True, slots=True)
class RunFact:
    """A fact of the run's headers, e.g. torch version; `value` is text to show."""

    key: Literal[
        "device_name",
        "torch_version",
        "driver_version",
        "hosts",
        "local_rank",
        "mesh",
        "allocator_settings",
        "memboard_version",
        "python_version",
        "dropped_rows",
    ]
    value: str


@dataclass(frozen=True, slots=True)
class RankEnding:
    """How the last attempt of one rank ended."""

    rank: int
    attempt: int
    how: EndedHow
    message: str
    """Type and first line of the exception, or the signal's name; else empty."""
    step: int | None
    """The training step under way; of lost ones the last that was written."""
    phase: str
    """The phase the exception came from, or under way; empty: not known."""
    time_ms: float
    """Of the end; of lost ones the last sign of life."""
    rss_bytes: float | None
    """Highest resident memory of its last steps."""
    memory_limit_bytes: float | None
    """What its control group may hold."""
    sentence: str
    advice: str
    """Where to look, and what to switch on to know more; may be empty."""


@dataclass(frozen=True, slots=True)
class RankEndings:
    """Ranks that did not end in order: exceptions first, then lost ones, then signals."""

    num_exception: int
    num_signal: int
    num_lost: int
    sentence: str
    """The first of them, and how many others; empty where there is none."""
    ranks: tuple[RankEnding, ...]
    """At most 16 of each kind, the earliest first."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What takes memory of a real device and not of a virtual one: a range."""

    name: str
    low_bytes: float
    high_bytes: float
    """As low_bytes where it was measured."""
    source: str


@dataclass(frozen=True, slots=True)
class PredictedDevice:
    """One device of a process that ran on virtual ones."""

    device: int
    peak_reserved_bytes: float
    others_low_bytes: float
    others_high_bytes: float
    """What other ranks need of it; zero: it is this rank's alone."""
    needed_low_bytes: float | None
    needed_high_bytes: float | None
    """With the low and the high ends of the estimates; None: it did not run its steps, so
    nobody knows."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Whether a run on a virtual GPU fits a real one, as `memboard run --on` says it."""

    fit: Literal["fits", "does not fit", "too close to say", "cannot say"]
    """Of all ranks asked for: the worst counts."""
    reason: str
    """One sentence, without the word itself."""
    decides: str
    """Where it is too close to say: what would decide, one sentence; may be empty."""
    rank: int
    """Whose answer it is; the rest is this rank's."""
    num_ranks: int
    """Ranks that were predicted."""
    estimates: tuple[Estimate, ...]
    """Outside of torch's allocator, on each device."""
    outside_low_bytes: float
    outside_high_bytes: float
    """All estimates together."""
    capacity_bytes: float
    """Of each device."""
    devices: tuple[PredictedDevice, ...]
    """Those it used; empty before its end."""


@dataclass(frozen=True, slots=True)
class OverviewResponse:
    """Route `/overview` (run, rank)."""

    run: RunSummary
    rank: int | None
    headlines: tuple[Headline, ...]
    strip: RankStrip
    recorded: tuple[Recorded, ...]
    attempts: tuple[Attempt, ...]
    endings: RankEndings
    problems: tuple[Problem, ...]
    facts: tuple[RunFact, ...]
    planted: tuple[str, ...]
    """Simulated runs say which faults were planted; empty for real runs."""
    prediction: Prediction | None
    """Of a run on a virtual GPU; None: of a real one, or nothing was predicted."""


@dataclass(frozen=True, slots=True)
class SeriesInfo:
    """A recorded column that can be drawn."""

    key: str
    """`table/column`, e.g. `step/allocated_peak_bytes`."""
    unit: Unit
    group: Literal["device", "process", "timing", "host", "sensor", "progress"]
    headline: bool
    """Kept pre-aggregated: instant at any number of ranks."""
    num_ranks: int
    """Ranks that recorded it."""


@dataclass(frozen=True, slots=True)
class AbsentSeries:
    """A series some source would give, with the reason it is not there."""

    group: Literal["device", "process", "timing", "host", "sensor", "progress"]
    source: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Mark:
    """An instant on the x axis."""

    kind: Literal["attempt", "epoch", "phase", "oom", "retry", "dropped", "user"]
    x: float
    rank: int | None
    label: str


@dataclass(frozen=True, slots=True)
class RankLine:
    """One rank's line; x ascends; columns have equal length.

    Where rows were merged for the width, y is the highest value inside each merged
    group (peaks never vanish) and y_low the lowest; otherwise both are equal.
    """

    rank: int
    why: Literal["selected", "pinned", "high", "low", "oom"]
    x: F64Column
    y: F64Column
    y_low: F64Column


@dataclass(frozen=True, slots=True)
class RankBand:
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


@dataclass(frozen=True, slots=True)
class TimelineResponse:
    """Route `/timeline` (run, rank, ranks, pinned, series, x, x0, x1, px, phase)."""

    run: RunSummary
    series: SeriesInfo | None
    """None where the run has nothing to draw (then `absent` says why)."""
    x: XKind
    x_low: float
    x_high: float
    """Full extent of the data, whatever part was asked for."""
    rows_per_point: int
    """1 where every row is drawn."""
    lines: tuple[RankLine, ...]
    band: RankBand | None
    """Present above 16 ranks."""
    capacity_bytes: float | None
    """The smallest device (or memory limit) among the ranks drawn."""
    capacity_kind: CapacityKind
    marks: tuple[Mark, ...]
    available: tuple[SeriesInfo, ...]
    absent: tuple[AbsentSeries, ...]
    phases: tuple[str, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class HeatmapResponse:
    """Route `/heatmap` (run, ranks, series, x0, x1, px, rows, phase): rank by step.

    `values` is row-major: `num_rows` rows of `num_columns` cells; 0 means nothing was
    recorded, 1..65535 maps linearly onto value_low..value_high. Each cell is the
    highest value inside it. Row i covers `ranks_per_row` ranks from `row_rank[i]`.
    """

    run: RunSummary
    series: SeriesInfo | None
    x_low: float
    x_high: float
    """Full extent in steps."""
    x0: float
    steps_per_column: float
    """Column c covers steps x0 + c * steps_per_column and the following."""
    num_rows: int
    num_columns: int
    ranks_per_row: int
    row_rank: I32Column
    values: U16Column
    value_low: float
    value_high: float
    capacity_bytes: float | None
    exact: bool
    """False while the cells come from pre-aggregated buckets wider than a column."""
    marks: tuple[Mark, ...]
    absent: tuple[AbsentSeries, ...]


@dataclass(frozen=True, slots=True)
class HostLine:
    """One line of a host track."""

    name: str
    """The column, e.g. `cpu_user_pct`, `rss_bytes`, `gpu_temperature_celsius`."""
    rank: int
    """The rank that recorded it."""
    host: str
    """The host it speaks of."""
    x: F64Column
    y: F64Column
    y_low: F64Column


@dataclass(frozen=True, slots=True)
class HostTrack:
    """One chart of the Host view."""

    key: Literal[
        "cpu",
        "memory",
        "process_memory",
        "swap",
        "disk",
        "network",
        "gpu_utilization",
        "gpu_memory",
        "gpu_temperature",
        "gpu_power",
    ]
    unit: Unit
    limit: float | None
    """Total memory, memory limit or 100 %, where one exists."""
    lines: tuple[HostLine, ...]


@dataclass(frozen=True, slots=True)
class HostResponse:
    """Route `/host` (run, rank, x, x0, x1, px).

    One line per host and column: the lowest rank of each host speaks for it, except
    for process and GPU columns, which are the chosen rank's (default: the lowest).
    """

    run: RunSummary
    rank: int
    hosts: tuple[str, ...]
    """The hosts drawn, at most 16."""
    num_hosts: int
    """All there are, or 1 where a rank is chosen."""
    x: XKind
    x_low: float
    x_high: float
    tracks: tuple[HostTrack, ...]
    absent: tuple[AbsentSeries, ...]
    marks: tuple[Mark, ...]
