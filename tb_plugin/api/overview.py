"""Responses about a run as a whole."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tb_plugin.api.base import (
    CapacityKind,
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
    U8Column,
    Unit,
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


class Attempt(Struct, frozen=True):
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
    """The worst end of its ranks; exception: nobody caught it, or it left `record`'s
    with-block; signal: one that ends the process, where `oom.on_sigterm` records it;
    lost: no closing record and no new rows, killed or its machine or disk was lost."""
    overlaps_previous: bool
    """Two jobs wrote into this run at the same time."""


class Headline(Columns, frozen=True):
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


class RankStrip(Columns, frozen=True):
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
    """Ranks shown that are far above all others (see analysis/ranks/outliers.py), worst first, at
    most 16."""
    num_unread: int
    """Ranks still being read: nothing is said of all ranks before it is 0."""


class Recorded(Struct, frozen=True):
    """One source: was it recorded, and if not, why and what to do."""

    source: str
    status: Literal["recorded", "absent", "off", "failed"]
    num_ranks: int
    """Ranks with this status."""
    reason: str
    remedy: str
    cost: str = ""


class RunFact(Struct, frozen=True):
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


class Estimate(Struct, frozen=True):
    """What takes memory of a real device and not of a virtual one: a range."""

    name: str
    low_bytes: float
    high_bytes: float
    """As low_bytes where it was measured."""
    source: str


class PredictedDevice(Struct, frozen=True):
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


class Prediction(Struct, frozen=True):
    """Whether a run on a virtual GPU fits a real one, as `memboard run --on` says it."""

    fit: Literal["fits", "does not fit", "too close to call", "cannot say"]
    """Of all ranks asked for: the worst counts."""
    reason: str
    """One sentence, without the word itself."""
    decides: str
    """Where it is too close to call: what would decide, one sentence; may be empty."""
    rank: int
    """Whose answer it is; the rest is this rank's."""
    num_ranks: int
    """Ranks that were predicted."""
    estimates: tuple[Estimate, ...]
    """Outside of torch's allocator, on each device."""
    capacity_bytes: float
    """Of each device."""
    devices: tuple[PredictedDevice, ...]
    """Those it used; empty before its end."""


class OverviewResponse(Struct, frozen=True):
    """Route `/overview` (run, rank)."""

    run: RunSummary
    rank: int | None
    headlines: tuple[Headline, ...]
    strip: RankStrip
    recorded: tuple[Recorded, ...]
    attempts: tuple[Attempt, ...]
    problems: tuple[Problem, ...]
    facts: tuple[RunFact, ...]
    planted: tuple[str, ...]
    """Simulated runs say which faults were planted; empty for real runs."""
    prediction: Prediction | None
    """Of a run on a virtual GPU; None: of a real one, or nothing was predicted."""
