"""Responses about ranks beside each other in one profiling cycle."""

from __future__ import annotations

from typing import Literal, TypeAlias

from memboard.tb_plugin.api.base import Columns, I32Column, Problem, RunSummary
from memboard.tb_plugin.api.findings import Finding
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.api.timeline import HeatmapResponse

DistributedPart: TypeAlias = Literal[
    "step", "computation", "overlap", "communication", "other"
]
"""The step's time, or one of the parts that add up to it; communication is exposed."""


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
    sentence: str
    """Who waits for whom; where that is not known, what a step's time goes to."""
    summary: str
    """How many ranks and collectives are compared, how far apart ranks are, and what is
    not known for lack of which ranks' traces."""
    ranks: TableRows
    """Those whose traces are open: the parts of a step, which add up to its time."""
    groups: TableRows
    """Collectives that several ranks' traces show, by kind and process group."""
    collectives: TableRows
    """By rank, kind and process group."""
    num_traces: int
    num_opening: int
    """Traces that are still being opened: ask again."""
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


class DistributedHeatmapResponse(HeatmapResponse, frozen=True):
    """Route `/distributed_heatmap` (run, cycle, ranks, part, x0, x1, px, rows).

    Ranks by profiled steps, in seconds. Of a cell that covers several steps the longest
    is shown; of several ranks the one that is farthest from the middle of all. It is not
    exact while traces of the cycle are being opened.
    """
