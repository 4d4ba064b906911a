"""The HTTP contract: one frozen dataclass per response, spoken by both ends.

Both ends ship together, so this contract lives one release only. It imports nothing
but the standard library; `tb_plugin/typescript.py` generates
`frontend/src/api/types.gen.ts` from it, and a test fails when the two differ.

On the wire a response is one binary body (`application/octet-stream`)::

    u32 LE  header length in bytes, padding included
    ...     UTF-8 JSON: {"api_version", "response": class name, "data": {...},
            "columns": [{"dtype", "offset", "length"}, ...]}, padded with spaces
    ...     columns, each starting at a multiple of 8 bytes counted from the body's
            start; `offset` counts from the body's start, `length` is in elements

A column stands in `data` as `{"$column": index}`. Numbers are little-endian. In f64
columns NaN means "not recorded": absence is never zero. Times are milliseconds since
the epoch; sizes are bytes (an f64 holds bytes exactly up to 9 PB).

Requests are GET with these parameters (all optional unless the route says so)::

    run     RunSummary.id, from our own index, never a path
    rank    one rank: narrows the view to it
    ranks   "0-7,64": the ranks to draw; absent means all
    pinned  "12,40": ranks drawn as lines even where bands are drawn
    series  SeriesInfo.key
    x       "step" | "relative" | "wall"
    x0, x1  visible range in units of x
    px      width in pixels the answer will be drawn on
    rows    height in pixels (heatmap)
    phase   name of the phase whose steps are drawn (default: the training phase)
    window  ModuleWindow.id
    module  a module's fqn
    state   ModuleState; call: which of a module's calls, from 0; device: by its name
    measure "total" | "own"
    against "state" | "window" | "rank" | "median": what is compared with, chosen by
            against_state, against_window, against_rank
    axis    "time" | "event" (module timeline)
    function, iteration, attempt  one collected call (with phase and rank)
    stat    FunctionStat.name

Errors are JSON (`application/json`, HTTP 4xx/5xx) of the shape of `ErrorResponse`.
Every data route answers `ETag`; a poll with `If-None-Match` costs a 304.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

API_VERSION = 1
"""Raised whenever a response changes shape; the page asks for a reload on mismatch."""

XKind: TypeAlias = Literal["step", "relative", "wall"]
"""Training step; milliseconds since the attempt began; milliseconds since the epoch."""

Unit: TypeAlias = Literal[
    "bytes",
    "bytes_per_step",
    "bytes_per_second",
    "count",
    "per_second",
    "percent",
    "seconds",
    "celsius",
    "watts",
]

CapacityKind: TypeAlias = Literal["device", "cgroup_limit", "host_memory", "none"]
"""What bounds the memory: the device, the control group's limit, or all of the host."""


@dataclass(frozen=True, slots=True)
class F64Column:
    """Little-endian float64; NaN where nothing was recorded."""

    data: bytes


@dataclass(frozen=True, slots=True)
class I32Column:
    """Little-endian int32."""

    data: bytes


@dataclass(frozen=True, slots=True)
class U16Column:
    """Little-endian uint16."""

    data: bytes


@dataclass(frozen=True, slots=True)
class U8Column:
    """uint8."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """What went wrong, where, and what to do about it."""

    what: str
    where: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be read whole. Nothing else is lost by it."""

    severity: Literal["warning", "error"]
    path: str
    """Relative to the logdir."""
    what: str
    where: str
    """Byte offset or record, for a person."""
    salvaged: str
    """What was read in spite of it."""
    remedy: str
    rank: int | None


@dataclass(frozen=True, slots=True)
class ForeignFiles:
    """Other tools' files seen in the logdir, by kind."""

    kind: Literal["tfevents", "snapshot_pickle", "kineto_trace", "memprofiler", "other"]
    num_files: int
    example: str
    """One path, relative to the logdir."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One training job: what the run picker shows."""

    id: str
    name: str
    """As TensorBoard names it; may hold any text, show as text."""
    num_ranks: int
    world_size: int
    num_attempts: int
    first_ms: float
    last_ms: float
    """When the newest row was written."""
    last_step: int | None
    live: bool
    """Rows arrived within the last 30 s and no rank's last attempt has closed."""
    simulated: bool
    device_type: str
    """cuda, xpu, mps ... or cpu where no accelerator was recorded."""
    num_problems: int


@dataclass(frozen=True, slots=True)
class RunsResponse:
    """Route `/runs`: everything the logdir holds."""

    logdirs: tuple[str, ...]
    """What was looked at, as the user gave it."""
    runs: tuple[RunSummary, ...]
    foreign: tuple[ForeignFiles, ...]
    problems: tuple[Problem, ...]
    """Problems that belong to no run."""
    plugin_version: str


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
    ended: Literal["closed", "exception", "lost", "running"]
    """lost: no closing record and no new rows: killed, or the disk went away."""
    overlaps_previous: bool
    """Two jobs wrote into this run at the same time."""


@dataclass(frozen=True, slots=True)
class Headline:
    """One of the six headline numbers."""

    key: Literal[
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
    value: float | None
    unit: Unit
    rank: int | None
    """The worst rank, where the number is a rank's."""
    step: int | None
    sparkline: F64Column
    """At most 120 values over the run, of the worst rank."""
    caveats: tuple[
        Literal[
            "sampled",
            "estimated",
            "cumulative_peak",
            "no_limit",
            "few_steps",
            "after_warmup",
            "one_host",
        ],
        ...,
    ]
    absent_reason: str | None
    """Why there is no value; set exactly when value is None."""


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
    outliers: tuple[int, ...]
    """Ranks far above the others (see analysis/ranks.py), worst first, at most 16."""


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
class OverviewResponse:
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


ModuleState: TypeAlias = Literal[
    "before_pre_forward",
    "after_pre_forward",
    "before_post_forward",
    "after_post_forward",
    "peak_forward",
    "before_pre_backward",
    "after_pre_backward",
    "before_post_backward",
    "after_post_backward",
    "peak_backward",
    "pre_forward_ac",
    "post_forward_ac",
    "window_start",
    "window_peak",
    "before_optimizer",
    "after_optimizer",
    "window_end",
]
"""Moments at which module memory is shown. The last five are one moment for all modules;
the others are each module's own. `peak_*` is the highest total between the module's
boundaries, `*_ac` what activation checkpointing recomputes in backward."""

ModuleMeasure: TypeAlias = Literal["total", "own"]
"""All that the rank held at a module's moment (what torch's trackers print); or only what
the module and those below it own of that."""

CategoryGroup: TypeAlias = Literal[
    "param", "grad", "optimizer", "activation", "comm", "temp", "unknown"
]
"""What has a colour."""


@dataclass(frozen=True, slots=True)
class ModuleWindow:
    """One tracked call of a function, on however many ranks."""

    id: str
    """For the parameter `window`; stays the same while the run grows."""
    function: str
    """`step` for a whole step."""
    phase: str
    iteration: int
    """1-based; 0 where it was taken by hand."""
    attempt: int
    step: int | None
    time_ms: float
    """When it ended."""
    num_ranks: int


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What is known of the chosen window on the chosen rank."""

    source: Literal["recorded", "simulated", "imported"]
    backend: str
    """fsdp2 or plain; empty where an imported report does not say."""
    world: str
    root: str
    estimate: str
    """Not empty: how the numbers differ from what really ran, e.g. `eager estimate`."""
    incomplete: bool
    """The window ended early: an error, or the process died."""
    inputs: str
    """forward, given or none: how the batch was found."""
    num_optimizers: int | None
    rounding_bytes: int | None
    """Sizes are rounded up to this, as the allocator does."""
    torch_version: str
    num_events: int | None
    """None for reports that hold states only; they have no step timeline."""
    num_events_dropped: int
    reasons: tuple[str, ...]
    """What was not tracked and why, in words."""
    has_own: bool
    """Whether the modules' own bytes are known."""
    peak_bytes: float | None
    """The highest total of the window on the chosen device."""
    peak_us: float | None
    """When, since the window began."""


@dataclass(frozen=True, slots=True)
class ModuleBaseline:
    """What values are compared with."""

    kind: Literal["state", "window", "rank", "median"]
    state: ModuleState
    window: str
    rank: int | None
    """None for the median."""
    num_ranks: int
    """Ranks that were read for it; of the median, fewer than `of_ranks` where time or
    memory did not allow all."""
    of_ranks: int


@dataclass(frozen=True, slots=True)
class ModuleCategory:
    """One category's column over the modules."""

    name: str
    """Fine name, e.g. `unsharded_param`."""
    group: CategoryGroup
    bytes: F64Column
    """Of the chosen measure; NaN where the module has no such state."""
    baseline_bytes: F64Column | None
    """The same of what is compared with; NaN where that has no such module or state."""


@dataclass(frozen=True, slots=True)
class ModuleTree:
    """The modules, parents before children; all columns have one value per module.

    A module's fqn is its parent's, a dot, and its name; a root's is its name.
    """

    names: tuple[str, ...]
    name: I32Column
    """Index into `names`."""
    types: tuple[str, ...]
    type: I32Column
    """Index into `types`; -1 where unknown."""
    parent: I32Column
    """Row of the parent; -1 for a root."""
    is_fsdp: U8Column
    param_bytes: F64Column
    """This rank's part of the module's own parameters, not its children's; NaN: unknown."""
    buffer_bytes: F64Column


@dataclass(frozen=True, slots=True)
class ModulesResponse:
    """Route `/modules`: one rank's memory by module.

    Parameters: run, rank, window, state, call, device, measure, against, against_state,
    against_window, against_rank. What is not asked for, or is not there, has a default: the last window, the rank with
    the highest recorded peak, the device that holds most, `after_post_forward` or, where
    that has no values, the next state that has; of a module called more than once the
    call with the highest total. The answer says what it shows.
    """

    run: RunSummary
    windows: tuple[ModuleWindow, ...]
    """In order of time; the newest 1,000."""
    num_windows: int
    window: str | None
    """None where the run has no module memory (then `absent` says why)."""
    ranks: I32Column
    """Ranks that have this window."""
    rank: int | None
    state: ModuleState
    states: tuple[ModuleState, ...]
    """Those with values in this window."""
    call: int | None
    """From 0; None: of each module the call with the highest total."""
    max_calls: int
    """Most calls that any module has at this state."""
    device: str
    devices: tuple[str, ...]
    measure: ModuleMeasure
    facts: ModuleFacts | None
    baseline: ModuleBaseline | None
    tree: ModuleTree
    num_calls: I32Column
    """Calls of each module at this state; 0: it has no such state."""
    call_shown: I32Column
    """Which of them is shown; -1 for none."""
    time_us: F64Column
    """When, since the window began; NaN where unknown."""
    total_bytes: F64Column
    """All that the rank held then."""
    own_bytes: F64Column
    """What the module and those below it owned of it; NaN where unknown."""
    baseline_total_bytes: F64Column | None
    baseline_own_bytes: F64Column | None
    categories: tuple[ModuleCategory, ...]
    """Those that occur, in their fixed order; their sum is the measure's."""
    absent: tuple[Recorded, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class ModuleSeries:
    """One category beside the sums `total_bytes` and `own_bytes` of what holds it."""

    name: str
    group: CategoryGroup
    total_bytes: F64Column
    own_bytes: F64Column


@dataclass(frozen=True, slots=True)
class ModuleOverWindows:
    """One module at one state, on one rank, window by window; in order of time."""

    windows: tuple[str, ...]
    """ModuleWindow.id."""
    step: F64Column
    """NaN where the window has none."""
    total_bytes: F64Column
    """NaN where the window has no such module or state."""
    own_bytes: F64Column
    categories: tuple[ModuleSeries, ...]
    of_windows: int
    """All that this rank has; more than are listed where time did not allow all."""


@dataclass(frozen=True, slots=True)
class ModuleOverRanks:
    """One module at one state, in one window, rank by rank; ranks ascend."""

    rank: I32Column
    total_bytes: F64Column
    own_bytes: F64Column
    categories: tuple[ModuleSeries, ...]
    of_ranks: int
    """All that have the window; more than are listed where time did not allow all."""


@dataclass(frozen=True, slots=True)
class ModuleMoments:
    """One module through one window on one rank: a row per state and call, by time."""

    state_names: tuple[ModuleState, ...]
    state: I32Column
    """Index into `state_names`."""
    call: I32Column
    time_us: F64Column
    total_bytes: F64Column
    own_bytes: F64Column
    categories: tuple[ModuleSeries, ...]
    num_left_out: int
    """Rows of further calls that are not listed."""


@dataclass(frozen=True, slots=True)
class ModuleResponse:
    """Route `/module` (run, module, rank, window, state, call, device): one module.

    `module` is its fqn; the other parameters and defaults are those of `/modules`.
    """

    run: RunSummary
    module: str
    path: str
    """As `named_modules()` has it; empty for the root."""
    type: str
    is_fsdp: bool
    param_bytes: float | None
    buffer_bytes: float | None
    window: str
    rank: int
    state: ModuleState
    call: int | None
    device: str
    moments: ModuleMoments
    over_windows: ModuleOverWindows
    over_ranks: ModuleOverRanks
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class ModuleSpans:
    """Forwards and backwards of modules on the x axis, outer ones first.

    Those narrower than about two pixels are left out, with all inside them.
    """

    modules: tuple[str, ...]
    """Fqns that occur."""
    module: I32Column
    """Index into `modules`."""
    kinds: tuple[Literal["forward", "backward", "recompute"], ...]
    kind: U8Column
    """Index into `kinds`."""
    call: I32Column
    depth: I32Column
    """Row: spans of one row do not overlap, and lie inside those of the rows above."""
    x0: F64Column
    x1: F64Column
    num_left_out: int


@dataclass(frozen=True, slots=True)
class ModuleMark:
    """An instant of the whole window, e.g. the optimizer's start."""

    kind: Literal["before_optimizer", "after_optimizer", "peak"]
    x: float


@dataclass(frozen=True, slots=True)
class ModuleTimelineResponse:
    """Route `/module_timeline`: categories through one window.

    Parameters: run, rank, window, device, axis, x0, x1, px.
    `axis` is `time` (microseconds since the window began) or `event` (allocations and
    frees counted from its start: nothing is hidden by long kernels). Column c covers
    x0 + c * x_per_column and the following; its values are those at the moment of the
    highest total inside it, so peaks never vanish.
    """

    run: RunSummary
    window: str | None
    rank: int | None
    device: str
    devices: tuple[str, ...]
    axis: Literal["time", "event"]
    x_low: float
    x_high: float
    """Full extent."""
    x0: float
    x_per_column: float
    total_bytes: F64Column
    peak_x: F64Column
    """Where inside the column its highest total stands."""
    categories: tuple[ModuleCategory, ...]
    spans: ModuleSpans
    marks: tuple[ModuleMark, ...]
    facts: ModuleFacts | None
    absent: tuple[Recorded, ...]
    problems: tuple[Problem, ...]


FunctionKind: TypeAlias = Literal["snaps", "hooks", "activations", "modules", "history"]
"""What was collected around a function's calls."""


@dataclass(frozen=True, slots=True)
class CollectedFunction:
    """One profiled function in one phase, over all ranks and attempts."""

    function: str
    """`step` for a whole step."""
    phase: str
    kinds: tuple[FunctionKind, ...]
    num_ranks: int


@dataclass(frozen=True, slots=True)
class FunctionCalls:
    """Collected calls of one function on one rank, in order of time.

    All columns, and those of `FunctionStat`, have one value per call. The snap that
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
    kinds: U8Column
    """Bit 1: snaps, 2: hooks, 4: activations, 8: modules, 16: history."""


FunctionGroup: TypeAlias = Literal["device", "process", "hook"]
"""What a stat is about; hook: what the root module's hooks left on it."""


@dataclass(frozen=True, slots=True)
class FunctionStat:
    """One recorded number at the start and end of each call; NaN: not recorded."""

    name: str
    """As recorded, e.g. `allocated_bytes.all.current`, `rss_bytes`, `hook.rss_diff`."""
    unit: Unit
    group: FunctionGroup
    start: F64Column
    end: F64Column
    difference: F64Column
    """End less start."""


@dataclass(frozen=True, slots=True)
class FunctionOverRanks:
    """One stat of one call, rank by rank; ranks ascend."""

    stat: str
    unit: Unit
    rank: I32Column
    start: F64Column
    end: F64Column
    difference: F64Column
    of_ranks: int
    """All that may have the call; more than were read where time did not allow all."""


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """Modules of one capture, by their `named_modules()` path; the root's is empty."""

    paths: tuple[str, ...]
    types: tuple[str, ...]
    """Class names; as many as paths."""


@dataclass(frozen=True, slots=True)
class HookAttribute:
    """What hooks set on modules under one name."""

    name: str
    unit: Unit
    values: F64Column
    """One per row of `HookValues.module`; NaN where the module has none."""


@dataclass(frozen=True, slots=True)
class HookValues:
    """What hooks said of every module in one call."""

    modules: ModuleNames
    module: I32Column
    """Index into `modules`, row by row."""
    attributes: tuple[HookAttribute, ...]
    incomplete: bool
    """The call ended in an error."""


@dataclass(frozen=True, slots=True)
class SavedActivations:
    """Tensors that autograd saved for backward in one call, by module and dtype."""

    modules: ModuleNames
    module: I32Column
    """Index into `modules`, row by row; -1: saved outside any module."""
    dtypes: tuple[str, ...]
    dtype: I32Column
    """Index into `dtypes`."""
    num_tensors: F64Column
    bytes: F64Column
    """Of distinct storages, without parameters and their views."""
    npp_compat_bytes: F64Column
    """The sum MemProfiler reports: every tensor that is not a parameter counts."""
    total_bytes: float
    total_npp_compat_bytes: float
    incomplete: bool
    """The call ended in an error."""


@dataclass(frozen=True, slots=True)
class HistoryReference:
    """A captured allocator history, or a file that holds one."""

    id: str
    """Names it in requests; stays the same while the run grows."""
    rank: int
    attempt: int
    function: str
    """Empty where it was taken by hand."""
    phase: str
    iteration: int
    """0 where it was taken by hand."""
    context: Literal["start", "end", ""]
    label: str
    step: int | None
    time_ms: float
    num_bytes: int
    """On disk."""
    path: str
    """Of a file beside the run's records, relative to the logdir; empty: recorded."""


@dataclass(frozen=True, slots=True)
class FunctionsResponse:
    """Route `/functions` (run, rank, function, phase, attempt, iteration, stat).

    Memory around calls of functions: which functions, the calls of one of them on one
    rank, and what was collected in one call. What is not asked for, or is not there,
    has a default: the first function, the lowest rank that has it, the newest call, the
    first stat. The answer says what it shows.
    """

    run: RunSummary
    source: Literal["recorded", "imported"]
    functions: tuple[CollectedFunction, ...]
    """At most 1,000."""
    function: str | None
    """None where nothing was collected (then `absent` says why)."""
    phase: str
    ranks: I32Column
    """Ranks that have the function in this phase."""
    rank: int | None
    calls: FunctionCalls
    """The newest 1,000."""
    num_calls: int
    """All there are; about, where they are many."""
    stats: tuple[FunctionStat, ...]
    attempt: int | None
    """With `iteration`: the call that the fields below are about."""
    iteration: int | None
    over_ranks: FunctionOverRanks | None
    hooks: HookValues | None
    activations: SavedActivations | None
    histories: tuple[HistoryReference, ...]
    """Of the rank: of every function and by hand, by time; the newest 1,000."""
    module_window: str | None
    """ModuleWindow.id of the call, where its modules were tracked."""
    absent: tuple[Recorded, ...]
    problems: tuple[Problem, ...]
