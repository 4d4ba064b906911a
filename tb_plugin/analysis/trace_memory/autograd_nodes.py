"""Memory that autograd nodes allocated and released, from the slices of a trace.

The slice `autograd::engine::evaluate_function: X` is around all that the engine does for
one node: inside it lies the slice `X` of the node's function. When that has returned, the
engine lets go of what came in, then of what the node had saved. So memory that one node
made, and that the engine itself let go of in a later one, is a gradient that was handed
on: a parameter's where the later node is AccumulateGrad, else an activation's.

What several nodes hand to one is added up behind the functions of all but the first of
them, and the engine lets go of the summands there. They are what their sum is.

A gradient that goes into the node of a part of a parameter, as FSDP1's modules have them,
is neither: that node has one result, and AccumulateGrad, which the engine prefers to all
other nodes, follows it at once.

A checkpoint runs its forward again inside one node, and the engine below that. What the
node made itself and a node below it let go of was saved by that forward.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, picked
from memboard.tb_plugin.analysis.categories.gradients import BackwardLives
from memboard.tb_plugin.analysis.categories.marks import MODULE
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes

_EVALUATE: Final = "autograd::engine::evaluate_function: "
_ACCUMULATE: Final = re.compile(rf"({_EVALUATE})?torch::autograd::AccumulateGrad")
_OF_PART: Final = re.compile(
    rf"{_EVALUATE}(Split|SplitWithSizes|Chunk|Unbind|Slice|Select|Narrow|AsStrided)"
    r"Backward\w*"
)

_ADDS: Final = frozenset(("aten::add", "aten::add_"))
MAX_SUMMANDS: Final = 64
"""Sums of sums that are followed; a node of more ways in has summands of no category."""


class _Nodes:
    """The nodes of a trace; columns of (slices,)."""

    def __init__(self, times: OperatorTimes) -> None:
        slices, strings = times.trace.slices, times.trace.strings
        self._times = times
        is_node = are(strings, slices.name, lambda text: text.startswith(_EVALUATE))
        self.tree = SliceTree(slices, is_node)
        sums = are(strings, slices.name, _ADDS.__contains__)
        sums &= picked(is_node, slices.parent, False).astype(np.bool_)
        self._sums = np.flatnonzero(sums)
        """What the engine itself adds up, in order of time within a node."""
        self._sum_tree = SliceTree(slices, sums)
        self.accumulates: Flags = are(strings, slices.name, _ACCUMULATE.match)
        """Whether it is AccumulateGrad, or its function."""
        self.of_part = np.zeros(len(slices), np.bool_)
        """Whether what comes in may be the gradient of a part of a parameter."""
        rows = np.flatnonzero(is_node)
        rows = rows[np.lexsort((slices.start_ns[rows], slices.track[rows]))]
        before, after = rows[:-1], rows[1:]
        follows = slices.track[before] == slices.track[after]
        follows &= self.tree.parent[before] == self.tree.parent[after]
        follows &= self.accumulates[after]
        is_of_part = are(strings, slices.name, _OF_PART.fullmatch)
        self.of_part[before[follows & is_of_part[before]]] = True

    def around(self, events: Ints) -> Ints:
        """The node of each memory event, or NOTHING."""
        return self.tree.around(picked(self._times.memory_slices, events))

    def sum_around(self, events: Ints) -> Ints:
        """The engine's own sum that makes something there, or NOTHING."""
        return self._sum_tree.around(picked(self._times.memory_slices, events))

    def last_sum(self, nodes: Ints, events: Ints) -> Ints:
        """The engine's last sum in a node before an event in it, or NOTHING."""
        slices, memory = self._times.trace.slices, self._times.trace.memory
        rows = self._sums
        rows = rows[np.lexsort((slices.start_ns[rows], slices.track[rows]))]
        track, sums = slices.track[rows], np.full(len(events), NOTHING)
        for index in np.unique(track).tolist():
            own = rows[track == index]
            chosen = np.flatnonzero(picked(slices.track, nodes) == index)
            time_ns = memory.time_ns[events[chosen]]
            place = np.searchsorted(slices.start_ns[own], time_ns, "right") - 1
            last = picked(own, place)
            inside = picked(slices.parent, last) == nodes[chosen]
            sums[chosen[inside]] = last[inside]
        return sums

    def let_go(self, events: Ints) -> Flags:
        """Whether the engine itself is at work there, or AccumulateGrad's function."""
        innermost = picked(self._times.memory_slices, events)
        accumulates: Flags = picked(self.accumulates, innermost, False).astype(np.bool_)
        accumulates |= innermost == self.around(events)
        return accumulates


def backward_lives(
    times: OperatorTimes, marks: Ints, born: Ints, released: Ints
) -> BackwardLives:
    """Of allocations: events that made and released them, or NOTHING; `marks` by slice."""
    nodes, slices = _Nodes(times), times.trace.slices
    maker, later = nodes.around(born), nodes.around(released)
    is_known: Flags = (maker != NOTHING) & (later != NOTHING) & nodes.let_go(released)
    is_known &= ~picked(nodes.accumulates, maker, False).astype(np.bool_)
    is_recomputed = is_known & (picked(nodes.tree.parent, later) == maker)
    # A backward of which another is made saves what it makes.
    is_known &= picked(marks, maker, 0) & MODULE == 0
    added_in = np.full(len(born), NOTHING)
    rows = np.flatnonzero(is_known & ~is_recomputed)
    added_in[rows] = nodes.last_sum(later[rows], released[rows])
    handed_on = is_known & (maker != later) & ~is_recomputed & (added_in == NOTHING)
    rows = np.flatnonzero(handed_on)
    has_ended = slices.ends(maker[rows]) <= slices.start_ns[later[rows]]
    handed_on[rows[~has_ended]] = False
    is_parameters = picked(nodes.accumulates, later, False).astype(np.bool_)
    is_of_part = picked(nodes.of_part, later, False).astype(np.bool_)
    is_activations = handed_on & ~is_parameters & ~is_of_part
    _add_summands(is_activations, added_in, nodes.sum_around(born))
    return BackwardLives(
        is_parameter_gradient=handed_on & is_parameters,
        is_activation_gradient=is_activations,
        is_recomputed=is_recomputed,
    )


def _add_summands(is_activations: Flags, added_in: Ints, made_by: Ints) -> None:
    """Summands of an activation's gradient; `added_in`, `made_by`: sums (slices)."""
    for _ in range(MAX_SUMMANDS):
        sums = np.unique(made_by[is_activations])
        summands = ~is_activations & (added_in != NOTHING) & np.isin(added_in, sums)
        if not summands.any():
            return
        is_activations |= summands
