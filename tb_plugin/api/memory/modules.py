"""Responses about the memory of modules."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    NO_F64,
    NO_I32,
    NO_U8,
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
    U8Column,
)
from memboard.tb_plugin.api.overview import SourceStatus
from memboard.tb_plugin.api.tables import NO_ROWS, TableRows

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

ModuleMeasure: TypeAlias = Literal["held", "total"]
"""Bytes of a module and those below it; or the total at the module's moment (what
torch's trackers print). A total is of what the call tracked: parameters, gradients, optimizer states,
inputs and all that was allocated during the call. What the program held before and no model
or optimizer knows of is not in it; the allocator's own totals are in `/functions`."""

CategoryGroup: TypeAlias = Literal[
    "param",
    "grad",
    "optimizer",
    "activation",
    "activation_grad",
    "comm",
    "temp",
    "unknown",
]

CATEGORY_LABELS: Final = {
    "param": "Params",
    "sharded_param": "Sharded params",
    "unsharded_param": "Unsharded params",
    "buffer": "Buffers",
    "grad": "Grads",
    "sharded_grad": "Sharded grads",
    "unsharded_grad": "Unsharded grads",
    "optimizer": "Optimizer",
    "activation": "Activations",
    "input": "Inputs",
    "activation_grad": "Activation grads",
    "comm": "Comm",
    "all_gather": "All-gather",
    "reduce_scatter": "Reduce-scatter",
    "bucket": "DDP buckets",
    "temp": "Temp",
    "other": "Other",
    "unknown": "Unknown",
}
"""By fine name and by group, where there is little room: in legends and over columns."""


class ModuleMoment(Struct, frozen=True):
    """A state, as the page says it."""

    state: ModuleState
    words: str
    group: str


class ModuleWindow(Struct, frozen=True):
    """One tracked call of a function, on however many ranks."""

    id: str
    """For the parameter `window`; stays the same while the run grows."""
    words: str  # `step 100, iteration 3`
    group: str
    """Its function, and its phase and attempt where they tell calls apart."""
    function: str
    """`step` for a whole step."""
    phase: str
    iteration: int
    """1-based; 0 where it was taken by hand."""
    attempt: int
    step: int | None
    time_ms: float
    num_ranks: int


class ModuleFacts(Struct, frozen=True):
    """What is known of the chosen window on the chosen rank."""

    source: Literal["recorded", "simulated", "imported"]
    estimate: str
    """Not empty: how the numbers differ from what really ran, e.g. `eager estimate`."""
    incomplete: bool
    """The window ended early: an error, or the process died."""
    num_events: int | None
    """None for reports that hold states only; they have no step timeline."""
    num_events_dropped: int
    reasons: tuple[str, ...]
    """What was not tracked and why, in words."""
    has_held: bool
    """Whether it is known which module holds what."""
    window_peak_bytes: float | None
    """The highest total of the window on the chosen device."""


class ModuleBaseline(Struct, frozen=True):
    """What values are compared with."""

    kind: Literal["state", "window", "rank", "median"]
    state: ModuleState
    window: str
    rank: int | None  # None for the median
    num_ranks: int
    """Ranks that were read for it; of the median, fewer than `of_ranks` where time or
    memory did not allow all."""
    of_ranks: int
    words: str = ""


class ModuleCaveat(Struct, frozen=True):
    """What a reader must know before trusting the numbers."""

    head: str
    text: str


class ModuleLead(Struct, frozen=True):
    """What takes most, in a sentence: `before`, the module, `after`."""

    before: str
    module: str | None
    """By its fqn, or that of a row that stands for layers; None: the sentence ends with
    `before`, or names no module."""
    after: str
    rest: str
    """What belongs to no module, and what is compared with."""


class ModuleCategory(Struct, frozen=True):
    """A category of memory, for its colour."""

    name: str  # Fine name, e.g. `unsharded_param`
    group: CategoryGroup


class CategorySeries(Columns, frozen=True):
    """Bytes of one category over time."""

    name: str  # Fine name, e.g. `unsharded_param`
    group: CategoryGroup
    bytes: F64Column


class ModuleTree(Columns, frozen=True, kw_only=True):
    """Where each row of the table stands, parents before children."""

    fqn: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    """Its name in its parent; of equal layers `40 x layers.*`, `16 x layers.{0,2,…}`."""
    parent: I32Column = NO_I32
    """Row of the parent; -1 for a root."""
    num_equal: I32Column = NO_I32
    """Its children, where they are numbered and all of one type: layers that one row can
    stand for. Else 0."""
    fold: I32Column = NO_I32
    """Row that stands for it among siblings of several types; that row's own is itself.
    It is no module: `{0,2,…}` is its name, its bytes are the sums of what it stands for.
    -1: none."""


class ModuleSplit(Struct, frozen=True):
    """All that a call tracked on a rank at one moment: by modules, and by none."""

    total_bytes: float
    held_bytes: float
    """Sum of the modules without a parent."""
    unattributed_bytes: float
    """The rest: inputs, the optimizer's own work, what the call allocated outside modules."""


class ModulesResponse(Columns, frozen=True, kw_only=True):
    """Route `/modules`: one rank's memory by module.

    Parameters: run, rank, window, step, state, call, device, measure, against (`median`,
    `rank:3`, `window:ID`, `state:NAME`). What the query leaves out, or is not there, has a
    default: the window of `step`; else the window and rank whose step has the highest
    recorded peak (where none is recorded, the last window), the device that holds most,
    the window's peak (of reports without the modules' own bytes, `after_post_forward` or
    the next state that has values); of a module called more than once the call with the
    highest total. The answer says what it shows.
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
    state: ModuleState = "window_peak"
    states: tuple[ModuleMoment, ...] = ()
    """Those with values in this window, in order of time."""
    call: int | None
    """From 0; None: of each module the call with the highest total."""
    max_calls: int = 0
    """Most calls that any module has at this state."""
    device: str = ""
    devices: tuple[str, ...] = ()
    measure: ModuleMeasure = "total"
    facts: ModuleFacts | None = None
    fact_words: tuple[str, ...] = ()
    """What else is known of the window, in short."""
    caveats: tuple[ModuleCaveat, ...] = ()
    lead: ModuleLead | None = None
    baseline: ModuleBaseline | None = None
    tree: ModuleTree = ModuleTree()  # it is frozen
    table: TableRows = NO_ROWS
    """What each module, or what stands for several, holds.

    `rank_total_bytes`, `held_bytes` and `own_bytes`, and `NAME_bytes` of each category,
    whose sum is the measure's; where there is a baseline, too, `baseline_NAME_bytes` and
    the difference. At one moment for all modules `held_bytes` is the sum of
    `own_bytes` and of the module's children. `num_calls` counts the module's calls at
    this state (0: it has no such state), `call` says which is shown, `time_us` when it
    was, since the window began. `own_param_bytes` is this rank's part of the module's own
    parameters, not its children's.
    """
    split: ModuleSplit | None = None
    """None where each module has a moment of its own."""
    categories: tuple[ModuleCategory, ...] = ()
    """Those of the table, in their fixed order."""
    absent: tuple[SourceStatus, ...]
    problems: tuple[Problem, ...]


class ModuleOverWindows(Columns, frozen=True):
    """One module at one state, on one rank, window by window; in order of time."""

    windows: tuple[str, ...]
    step: F64Column
    """NaN where the window has none."""
    time_ms: F64Column
    total_bytes: F64Column
    """NaN where the window has no such module or state."""
    held_bytes: F64Column
    of_windows: int
    """All that this rank has; more than are listed where time did not allow all."""


class ModuleOverRanks(Columns, frozen=True):
    """One module at one state, in one window, rank by rank; ranks ascend."""

    rank: I32Column
    total_bytes: F64Column
    held_bytes: F64Column
    of_ranks: int
    """All that have the window; more than are listed where time did not allow all."""


class ModuleResponse(Struct, frozen=True):
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
    moments: TableRows
    """The module through the window on the rank: a row per state and call, by time. For
    requests, without headings: `state_name` and `call`. `num_all` counts further calls,
    which are not listed."""
    over_windows: ModuleOverWindows
    over_ranks: ModuleOverRanks
    problems: tuple[Problem, ...]


SpanKind: TypeAlias = Literal["forward", "backward", "recompute"]


class ModuleSpans(Columns, frozen=True, kw_only=True):
    """Forwards and backwards of modules on the x axis, outer ones first.

    Those narrower than about two pixels are left out, with all inside them.
    """

    modules: tuple[str, ...] = ()
    module: I32Column = NO_I32  # Index into `modules`
    kinds: tuple[SpanKind, ...]
    kind: U8Column = NO_U8  # Index into `kinds`
    call: I32Column = NO_I32
    depth: I32Column = NO_I32
    """Row: spans of one row do not overlap, and lie inside those of the rows above."""
    x0: F64Column = NO_F64
    x1: F64Column = NO_F64
    num_left_out: int = 0


class ModuleMark(Struct, frozen=True):
    """An instant of the whole window, e.g. the optimizer's start."""

    kind: Literal["before_optimizer", "after_optimizer", "peak"]
    x: float


class ModuleTimelineResponse(Columns, frozen=True):
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
    axis: Literal["time", "event"]
    x_low: float
    x_high: float
    x0: float
    x_per_column: float
    total_bytes: F64Column
    peak_x: F64Column
    """Where inside the column its highest total stands."""
    categories: tuple[CategorySeries, ...]
    spans: ModuleSpans
    marks: tuple[ModuleMark, ...]
