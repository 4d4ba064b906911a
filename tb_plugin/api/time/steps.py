"""Responses about steps: what their time went to, and which ranks the others wait for."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    NO_F64,
    NO_I32,
    Columns,
    F64Column,
    I32Column,
    RunSummary,
    XKind,
)
from memboard.tb_plugin.api.findings import Finding
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.api.timeline import HeatmapResponse, Mark

StepsOf: TypeAlias = Literal["rank", "worst", "median"]
"""Whose steps are shown: one rank's, of each column those of the rank that was slowest
there, or those of the rank in the middle there (of two the faster)."""


class StepPart(Columns, frozen=True):
    """One part of the steps' time, in the order in which parts are stacked."""

    name: str
    """dataloader, forward, backward, optimizer, zero_grad, checkpoint, eval,
    communication; other is what they leave of the step's time."""
    label: str
    help: str
    seconds: F64Column


class ProfilerStep(Struct, frozen=True):
    """Steps whose time is the profiler's own; medians and findings leave them out."""

    first: int
    last: int
    what: Literal["start", "stop", "save", "capture"]
    """What torch's profiler did in them; or a capture of MemBoard's was taken."""


class AbsentPart(Struct, frozen=True):
    """A part no rank recorded, and which setting records it."""

    name: str
    label: str
    reason: str
    remedy: str


class StepRate(Columns, frozen=True, kw_only=True):
    """Throughput, one value per column: of one rank, and of all ranks together."""

    key: Literal["steps", "samples", "tokens", "flops", "mfu"]
    """Per second each; mfu is a percentage of what the devices could do."""
    values: F64Column
    summed: F64Column
    """Over all ranks, of mfu their mean; empty where the query does not want it or nobody knows it."""
    median: float | None
    """Of `values`, over the columns behind the warm-up."""
    summed_median: float | None
    title: str = ""
    help: str = ""
    """What it is; of operations, where their number comes from."""
    text: str = ""
    """The median, of all ranks where that is known, in short."""
    hint: str = ""
    """What `text` is the median of, with every digit."""


class StepFlops(Struct, frozen=True, kw_only=True):
    """Where the number of floating point operations comes from."""

    origin: Literal["settings", "trace", "nothing"] = "nothing"
    """settings: `flops.per_step`, `.per_sample` and `.per_token` of the recording; trace:
    counted by torch's profiler, of the steps of one trace."""
    per_step: float | None = None
    """Of one step on the rank, at the median."""
    device_peak: float | None = None
    """Operations per second that the device could do, as the settings say."""
    missing: str = ""
    """What has to be set for an MFU; empty: nothing is missing."""


class StepsResponse(Columns, frozen=True, kw_only=True):
    """Route `/steps` (run, rank, ranks, x, x0, x1, px, phase, of): the steps' time by part.

    A column holds `steps_per_column` steps and shows the slowest of them: none is ever
    hidden. Columns of parts have one value per column of the picture.
    """

    run: RunSummary
    x: XKind
    of: StepsOf
    rank: int | None = None
    """Whose times place the columns and whose throughput is shown; None: no steps."""
    x_low: float = 0.0
    x_high: float = 0.0
    """Full extent of the data."""
    edges: F64Column = NO_F64
    """Borders of the columns on the x axis: one more than there are columns."""
    steps_per_column: int = 1
    first_step: F64Column = NO_F64
    shown_step: F64Column = NO_F64
    """The step shown, where one was kept by itself; else the first that it may be."""
    column_rank: I32Column = NO_I32
    """Whose step is shown; -1: nothing was recorded."""
    seconds: F64Column = NO_F64
    """Of the step shown: the sum of all parts where any was recorded."""
    parts: tuple[StepPart, ...] = ()
    """Those that were recorded, and other; empty where none was."""
    grain: str = ""
    """What a column shows, and why there are no parts."""
    exact: bool = True
    """False where parts of the slowest step had to be told from means and maxima."""
    num_ranks: int = 0
    """Ranks that were looked at."""
    num_summed: int = 0
    """Ranks of which the throughputs over all ranks are made."""
    rates: tuple[StepRate, ...] = ()
    """The most telling one first."""
    flops: StepFlops = StepFlops()
    profiler_steps: tuple[ProfilerStep, ...] = ()
    """Of the ranks that were looked at, in order, each once; at most 500."""
    absent: tuple[AbsentPart, ...]
    memory_series: str | None
    """`SeriesInfo.key` of the step's memory peak: allocated, else resident."""
    marks: tuple[Mark, ...] = ()
    phases: tuple[str, ...]


class StepHeatmapResponse(HeatmapResponse, frozen=True):
    """Route `/step_heatmap` (run, rank, ranks, x0, x1, px, rows, phase, part).

    Ranks by steps: how far each is beyond the rank in the middle of the same step, in
    per cent of that one's step time. Of a cell that covers several ranks or steps, the
    one that is furthest behind is shown.
    """


class StepPartMean(Struct, frozen=True):
    """What a part takes; the parts of a step sum to it."""

    name: str
    label: str
    help: str
    seconds: float
    """The mean over all steps of all ranks that recorded parts."""
    share: float
    """Of the mean step; 0 to 1."""
    usual: float | None
    """Seconds on the rank in the middle, of its step at the median."""
    of_first: float | None
    """The same on the rank of the first row."""


class StragglersResponse(Struct, frozen=True, kw_only=True):
    """Route `/stragglers` (run, rank, ranks, phase): who is waited for, and what is slow.

    Of all steps. With `rank` or `ranks`, those alone are compared.
    """

    run: RunSummary
    num_ranks: int = 0
    num_steps: int = 0
    sentence: str = ""
    """How long a step takes, the parts that take most of it, and what was left out."""
    step_seconds: float | None = None
    """The middle rank's step: the median of its steps behind the warm-up that are not the
    profiler's own, as Overview and Compare have it."""
    parts: tuple[StepPartMean, ...] = ()
    ranks: TableRows | None = None
    """At most 64, those that cost most first; how many stand out, of how many."""
    late: tuple[int, ...] = ()
    """Ranks that stand out, those that cost most first."""
    num_left_out: int = 0
    """Ranks without step times, or not read for lack of time."""
    part: str = "step"
    """What tells the ranks apart: step, or the part that the others wait for."""
    findings: tuple[Finding, ...] = ()


class StepResponse(Columns, frozen=True):
    """Route `/step` (run, rank, ranks, phase, step): one step on every rank.

    At most 1,024 ranks are listed.
    """

    run: RunSummary
    step: int
    num_ranks: int
    """Ranks that have the step; more than are listed where there are very many."""
    num_unread: int
    """Ranks that were not read, for lack of time: asking again goes on."""
    ranks: TableRows
    """Those listed, the slowest first: parts, memory, and in files when it ran."""
