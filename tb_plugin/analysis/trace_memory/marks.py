"""Marks and phases of a training, told from the slices of a trace.

The same marks as `stack_marks` finds in recorded stacks, from the names of slices: frames
of Python where the trace has them, and what torch, its optimizers, FSDP2 and data loaders
annotate in any trace. Operators that an arrow `fwdbwd` leaves are a forward's, with what
is in the outermost operator around them.

A phase begins where the first slice of its kind does, on whichever thread of the host,
and goes on until one of another kind begins: so what runs between two modules of a
forward belongs to it. Where a closure ran a forward and a backward inside an optimizer,
that goes on behind them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.marks import (
    ACCUMULATE,
    ALL_GATHER,
    BACKWARD,
    COPY,
    DATA,
    MODULE,
    OPTIMIZER,
    REDUCE_SCATTER,
    UNSHARD,
    python_marks,
)
from memboard.tb_plugin.analysis.categories.phases import (
    BACKWARD_PHASE,
    FORWARD,
    NONE,
    OPTIMIZER_PHASE,
    PHASES,
    Phases,
)
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.texts import are, looked_up

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes
    from memboard.tb_plugin.analysis.trace.trace import Trace


ZERO_GRAD: Final = 1 << 16
"""Beside the marks of stacks: an optimizer lets go of gradients. And:"""
COLLECTIVE: Final = 1 << 17

_RULES: Final = tuple(
    (mark, re.compile(pattern))
    for mark, pattern in (
        (MODULE, r"nn\.Module: |\[pl\]\[module\]|(Distributed)?DataParallel\.forward$"),
        (MODULE, r"FSDP::(root_)?(pre|post)_forward"),
        (BACKWARD, r"autograd::engine::evaluate_function: |\w+Backward\d*$"),
        (BACKWARD, r"FSDP::(root_)?(pre_backward|post_backward|backward_prefetch)"),
        (
            ACCUMULATE,
            r"(autograd::engine::evaluate_function: )?torch::autograd::Accumu",
        ),
        (OPTIMIZER, r"Optimizer\.step#"),
        (ZERO_GRAD, r"Optimizer\.zero_grad#"),
        (UNSHARD, r"FSDP::all_gather_copy_out"),
        (ALL_GATHER, r"FSDP::all_gather|(c10d|nccl|gloo)::?_?all_?gather"),
        (REDUCE_SCATTER, r"FSDP::post_backward_reduce"),
        (REDUCE_SCATTER, r"(c10d|nccl|gloo)::?_?reduce_scatter"),
        (COLLECTIVE, r"(c10d|nccl|gloo)::?\w"),
        (DATA, r"enumerate\(Data(Loader|Pipe)\)#|DataLoader.*__next__"),
        (COPY, r"aten::(to|_to_copy|pin_memory|_pin_memory)$"),
    )
)
_FRAME: Final = re.compile(r"(.*)\(\d+\): (.*)", re.DOTALL)
_LETTING_GO: Final = len(PHASES)
_KINDS: Final = (
    # A module that runs again inside a backward belongs to it; see `_kinds_of`.
    (MODULE, FORWARD),
    (OPTIMIZER, OPTIMIZER_PHASE),
    (BACKWARD, BACKWARD_PHASE),
    (ZERO_GRAD, _LETTING_GO),
)


@dataclass(frozen=True, slots=True, eq=False)
class TraceMarks:
    own: Ints
    kind: Ints
    """Phase (`phases.PHASES`) that it is in by its own marks and those around it."""


def trace_marks(times: OperatorTimes) -> TraceMarks:
    """The marks of a trace's slices on the host; others have none."""
    trace = times.trace
    own = looked_up(trace.strings, trace.slices.name, _marks_of, np.int64)
    own[_forward_operators(times)] |= MODULE
    own[~_on_host(trace)] = 0
    return TraceMarks(own, _kinds_of(trace, own))


def _marks_of(frame_text: str) -> int:
    frame = _FRAME.fullmatch(frame_text)
    if frame is not None and frame[2] == "zero_grad":
        return ZERO_GRAD
    if frame is not None:
        # Paths are relative to what Python imports from: a package has nothing before.
        return python_marks(frame[2], f"/{frame[1]}")
    return sum({mark for mark, pattern in _RULES if pattern.match(frame_text)})


def _on_host(trace: Trace) -> Flags:
    of_track = np.array(
        [track.kind in ("host", "python", "span") for track in trace.tracks], bool
    )
    is_host: Flags = of_track[trace.slices.track]
    return is_host


def _forward_operators(times: OperatorTimes) -> Ints:
    """The outermost operators around what an arrow `fwdbwd` leaves."""
    flows, operators = times.trace.flows, times.operators
    rows: Ints = flows.from_row[
        are(times.trace.strings, flows.category, "fwdbwd".__eq__)
    ]
    rows = np.unique(rows[rows != NOTHING]).astype(np.int64)
    while True:
        around = operators.parent[rows]
        inner = around != NOTHING
        if not inner.any():
            return rows
        rows = np.where(inner, around, rows)


def _kinds_of(trace: Trace, own: Ints) -> Ints:
    """By slice, the phase of the innermost mark, but for two things.

    What runs in a backward is of it, modules that run again too; and zero_grad is of no
    phase, wherever it is called.
    """
    kind: Ints = np.full(len(own), NONE, dtype=np.int64)
    for mark, value in _KINDS:
        kind[(own & mark) != 0] = value
    tree = SliceTree(trace.slices, kind != NONE)
    for inner, outer in (
        (FORWARD, BACKWARD_PHASE),
        (OPTIMIZER_PHASE, _LETTING_GO),
        (FORWARD, _LETTING_GO),
    ):
        _taken_over(kind, tree, inner, outer)
    below = np.flatnonzero((kind == NONE) & (tree.parent != NOTHING))
    kind[below] = kind[tree.parent[below]]
    kind[kind == _LETTING_GO] = NONE
    return kind


def _taken_over(kind: Ints, tree: SliceTree, inner: int, outer: int) -> None:
    """Make slices of one kind of another where that is around them, with none between."""
    rows = np.flatnonzero(kind == inner)
    around = tree.parent[rows]
    while len(rows):
        kind_around = np.where(around == NOTHING, NONE, kind[np.maximum(around, 0)])
        kind[rows[kind_around == outer]] = outer
        goes_on = kind_around == inner
        rows, around = rows[goes_on], tree.parent[around[goes_on]]


def trace_phases(trace: Trace, marks: TraceMarks, time_ns: Ints) -> tuple[Phases, Ints]:
    """Instances of phases of a trace, with the one that holds each of these times.

    And when each begins, but for the first, which is there from the start.
    """
    begins_ns, kinds = _changes(trace, marks)
    of_time = np.searchsorted(begins_ns, time_ns, "right")
    return Phases(of_time, np.concatenate(([NONE], kinds))), begins_ns


def _changes(trace: Trace, marks: TraceMarks) -> tuple[Ints, Ints]:
    """When another phase begins, and its kind; ascending."""
    slices = trace.slices
    tree = SliceTree(slices, (marks.own != 0) & (marks.kind != NONE))
    rows = np.flatnonzero(tree.kept)
    starts = slices.starts(rows)
    # What is around goes on behind the last slice of another kind in it.
    inner = rows[tree.parent[rows] != NOTHING]
    ends = slices.ends(inner)
    around = tree.parent[inner]
    by = np.lexsort((ends, around))
    last = by[np.append(np.diff(around[by]) != 0, True)[: len(by)]]
    time_ns = np.concatenate((starts, ends[last]))
    kind = np.concatenate((marks.kind[rows], marks.kind[around[last]]))
    # At one time what ends comes before what begins, and the outer before the inner.
    is_start = np.arange(len(time_ns)) < len(rows)
    level = np.concatenate((slices.level[rows], np.zeros(len(last), np.int64)))
    order = np.lexsort((level, is_start, time_ns))
    time_ns, kind = time_ns[order], kind[order]
    changes = np.diff(kind, prepend=NONE) != 0
    return time_ns[changes], kind[changes]
