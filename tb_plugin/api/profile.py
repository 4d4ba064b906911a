"""Responses about profiled steps: of one trace, its kernels, and all ranks of a cycle."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tb_plugin.api.base import (
    NO_F64,
    NO_I32,
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
    U8Column,
)
from tb_plugin.api.findings import Finding
from tb_plugin.api.timeline import HeatmapResponse
from tb_plugin.api.trace import TraceState

ProfileRole: TypeAlias = Literal[
    "kernel",
    "memcpy",
    "memset",
    "communication",
    "runtime",
    "dataloader",
    "cpu_exec",
    "other",
]
"""In the order in which they claim time: each moment counts for the first one."""


class ProfiledTrace(Struct, frozen=True):
    """A profiler's trace that may be chosen."""

    id: str
    name: str
    rank: int | None
    cycle: int | None
    """Number of the profiling window; None: the only one, or not known."""
    num_bytes: float
    time_ms: float | None
    """About when it was recorded, since 1970."""


class ProfileChoice(Struct, frozen=True, kw_only=True):
    """Which trace an answer is about, and how far opening it is."""

    traces: tuple[ProfiledTrace, ...]
    """Of the run, by cycle and rank; the newest where there are very many."""
    num_traces: int
    source: str | None = None
    """The one chosen; None: the run has none."""
    state: TraceState = "ready"
    progress: float = 1.0
    """0 to 1."""
    doing: str = ""
    problem: Problem | None = None
    """Why it cannot be opened."""
    problems: tuple[Problem, ...] = ()
    """What was left out of the one that is open, or set right."""


class ProfilePart(Columns, frozen=True):
    """Time of one role; a column of steps."""

    role: ProfileRole
    ms: F64Column
    mean_ms: float
    share: float
    """Of the time of all steps; 0 to 1."""


class ProfiledDevice(Struct, frozen=True):
    """A device of the trace, and how it was used; null: the trace does not say it."""

    device: int
    name: str | None
    total_bytes: float | None
    capability: str | None
    """Compute capability."""
    num_sms: int | None
    num_kernels: int
    """All of the trace; of one step those that began in it."""
    kernel_ms: float
    """Sum over kernels; those that run at once count each. Of one step what lies in it."""
    busy_ms: float
    span_ms: float
    utilization: float | None
    """Shares are 0 to 1."""
    sm_efficiency: float | None
    occupancy: float | None
    tensor_core_share: float | None


class ProfileFact(Struct, frozen=True):
    """Something the trace says of where and how it was recorded."""

    name: str
    value: str


class ProfileResponse(Columns, frozen=True, kw_only=True):
    """Route `/profile` (run, source, step): step time by role, devices, findings."""

    run: RunSummary
    choice: ProfileChoice
    step: I32Column = NO_I32
    """Numbers of the profiled steps; 0 where the trace marks none and counts as one."""
    are_marked: bool = False
    start_ms: F64Column = NO_F64
    """Since the first step's start."""
    duration_ms: F64Column = NO_F64
    parts: tuple[ProfilePart, ...] = ()
    computation_ms: F64Column = NO_F64
    """Kernels; without a device what computes on the host: not what waits for others."""
    communication_ms: F64Column = NO_F64
    overlap_ms: F64Column = NO_F64
    """Of communication, what computation hides."""
    devices: tuple[ProfiledDevice, ...] = ()
    devices_step: int | None = None
    """Of which profiled step they tell; null: of all, from the first one's start to the
    last one's end."""
    findings: tuple[Finding, ...] = ()
    facts: tuple[ProfileFact, ...] = ()


ModuleBackward: TypeAlias = Literal[
    "arrows", "sequence_numbers", "not_run", "not_linked", "not_in_modules"
]
"""What says whose an operator of backward is: the profiler's arrows or its numbers; or
why nothing does: no backward ran, its operators name none of forward, or those that they
name lie in no module."""


class ModuleTimesResponse(Columns, frozen=True):
    """Route `/module_times` (run, source): modules of a trace, parents first."""

    run: RunSummary
    choice: ProfileChoice
    name: tuple[str, ...]
    parent: I32Column
    """Row of the module around it; -1: none."""
    num_calls: F64Column
    num_operators: F64Column
    """Operators that it called itself."""
    host_ms: F64Column
    host_self_ms: F64Column
    device_ms: F64Column
    device_self_ms: F64Column
    backward_host_ms: F64Column
    """Of what it and the modules in it called. All four are NaN where nobody knows."""
    backward_host_self_ms: F64Column
    """Of the operators that it called itself."""
    backward_device_ms: F64Column
    backward_device_self_ms: F64Column
    backward: ModuleBackward
    has_devices: bool
    has_modules: bool
    """False: the trace was recorded without stacks or modules."""
    num_modules: int
    """All there are; more than rows where there are very many."""


class KernelsResponse(Columns, frozen=True):
    """Route `/kernels` (run, source, by, sort, text, top): the table of kernels."""

    run: RunSummary
    choice: ProfileChoice
    by: Literal["name", "properties"]
    name: tuple[str, ...]
    operator: tuple[str, ...]
    """That launched it; empty where unknown, or where `by` is name; so are the next."""
    grid: tuple[str, ...]
    block: tuple[str, ...]
    registers: I32Column
    """Per thread; -1: not known."""
    shared_memory_bytes: F64Column
    num_calls: F64Column
    total_ms: F64Column
    min_us: F64Column
    mean_us: F64Column
    max_us: F64Column
    blocks_per_sm: F64Column
    """Mean, weighted by time; NaN: not said."""
    occupancy: F64Column
    """Est. achieved; 0 to 1."""
    uses_tensor_cores: U8Column
    is_communication: U8Column
    num_rows: int
    total_all_ms: float
    tensor_core_ms: float
    has_kernels: bool


DistributedPart: TypeAlias = Literal[
    "step", "computation", "overlap", "communication", "other"
]
"""The step's time, or one of the parts that add up to it; communication is exposed."""


class DistributedCollectives(Columns, frozen=True):
    """Collectives by rank, kind and process group; columns of equal length."""

    rank: I32Column
    kind: tuple[str, ...]
    group: tuple[str, ...]
    """Name of the process group; empty where the trace does not say it."""
    group_size: I32Column
    """-1: not known."""
    num_calls: F64Column
    num_bytes: F64Column
    """Of all calls; NaN: not known."""
    total_ms: F64Column
    num_compared: F64Column
    """Calls that the traces of all ranks which took part show. The next columns are of
    these, and NaN where a rank's trace is missing."""
    transfer_ms: F64Column
    """While data moved; the rest is waiting for other ranks."""
    bus_bytes_per_second: F64Column
    """nccl-tests' bus bandwidth while data moved; NaN: not known."""
    num_last: F64Column
    """Calls in which the others waited for this rank."""


class DistributedGroups(Columns, frozen=True):
    """Collectives that several ranks' traces show, by kind and process group.

    Columns of equal length, the longest waits in all first.
    """

    kind: tuple[str, ...]
    group: tuple[str, ...]
    num_ranks: I32Column
    num_matched: I32Column
    """Collectives."""
    mean_skew_ms: F64Column
    """How long the first rank waits for the last one, in the mean; and at most. NaN where
    a rank's trace is missing, likewise `last_share`."""
    max_skew_ms: F64Column
    last_rank: I32Column
    """The rank that came last most often: the straggler. -1: not known."""
    last_share: F64Column
    """Of the collectives, in which it did; 0 to 1."""


class DistributedResponse(Columns, frozen=True):
    """Route `/distributed` (run, cycle, ranks, step): computation and communication."""

    run: RunSummary
    cycles: I32Column
    """Those of the run, ascending."""
    cycle: int | None
    steps: I32Column
    """Profiled steps that any rank has."""
    step: int | None
    """The one shown; None: the mean of all."""
    rank: I32Column
    """Ranks whose traces are open, ascending; the next columns are theirs."""
    step_ms: F64Column
    computation_ms: F64Column
    """Without what runs at the same time as communication."""
    overlap_ms: F64Column
    communication_ms: F64Column
    """Exposed: nothing hides it."""
    other_ms: F64Column
    transfer_ms: F64Column
    """Of the step's communication, or all of the cycle's where none is chosen, while data
    moved; likewise the next. NaN where the trace of a rank that took part is missing."""
    waiting_ms: F64Column
    collectives: DistributedCollectives
    num_collectives: int
    groups: DistributedGroups
    num_groups: int
    num_matched: int
    """Collectives that the traces of all ranks which took part show."""
    missing: I32Column
    """Ranks of the training that are not among those compared: the first of them."""
    num_missing: int
    num_traces: int
    """Of the cycle."""
    num_opening: int
    """Traces that are still being opened: ask again."""
    num_failed: int
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


class DistributedHeatmapResponse(Struct, frozen=True):
    """Route `/distributed_heatmap` (run, cycle, ranks, part, x0, x1, px, rows).

    Ranks by profiled steps, in seconds. Of a cell that covers several steps the longest
    is shown; of several ranks the one that is farthest from the middle of all.
    """

    part: DistributedPart
    cycle: int | None
    cells: HeatmapResponse
    num_traces: int
    """Of the cycle."""
    num_opening: int
    """Traces that are still being opened: ask again."""
    num_failed: int
