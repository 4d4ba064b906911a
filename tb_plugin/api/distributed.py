"""Responses about ranks beside each other in one profiling cycle."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from tb_plugin.api.base import Columns, F64Column, I32Column, Problem, RunSummary
from tb_plugin.api.findings import Finding
from tb_plugin.api.timeline import HeatmapResponse

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
