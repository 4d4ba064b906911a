"""Which operator of forward each operator of backward undoes.

Profilers since torch 1.13 draw an arrow (`fwdbwd`) from one to the other. What has none,
as the call of the engine around it and all of older traces, still carries a sequence
number: the forward operator that made a node of backward, and what runs that node, have
the same one. Of forward operators that share a number the last to begin made the node,
as the profiler's own arrows say. Numbers count by thread of forward, and backward names
that thread by a number that no track has: so a number that operators of several tracks
carry names none of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from tb_plugin.analysis.trace.texts import are, texts_in
from tb_plugin.analysis.trace.trace import NOTHING

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.trace import Trace

    Ints: TypeAlias = npt.NDArray[Any]

LinkedBy: TypeAlias = Literal["arrows", "sequence_numbers", "not_run", "not_linked"]

_OF_BACKWARD: Final = re.compile(
    r"autograd::engine::evaluate_function|\w*Backward\d*$|torch::autograd::AccumulateGrad"
)


@dataclass(frozen=True, slots=True, eq=False)
class BackwardLinks:
    """Slices; columns of equal length."""

    backward: Ints
    """Ascending, each once; some lie inside others."""
    forward: Ints
    linked_by: LinkedBy
    """`arrows`: the trace has some; or why there are no links: no operator of backward
    is in the trace, or nothing says which one of forward made it."""


def backward_links(trace: Trace) -> BackwardLinks:
    """All that a trace says; where arrows and numbers differ, what arrows say."""
    drawn, numbered = arrows(trace), _by_numbers(trace)
    backward = np.concatenate((drawn[0], numbered[0]))
    backward, first = np.unique(backward, return_index=True)
    forward = np.concatenate((drawn[1], numbered[1]))[first]
    if len(backward):
        by: LinkedBy = "arrows" if len(drawn[0]) else "sequence_numbers"
    else:
        by = "not_linked" if _has_backward(trace) else "not_run"
    return BackwardLinks(backward, forward, by)


def arrows(trace: Trace) -> tuple[Ints, Ints]:
    """Where arrows `fwdbwd` point to, and where they come from, as slices."""
    flows = trace.flows
    chosen = are(trace.strings, flows.category, "fwdbwd".__eq__)
    chosen &= (flows.from_row != NOTHING) & (flows.to_row != NOTHING)
    return flows.to_row[chosen].astype(np.int64), flows.from_row[chosen].astype(
        np.int64
    )


def _by_numbers(trace: Trace) -> tuple[Ints, Ints]:
    """Operators of backward, ascending, and those of forward with their numbers."""
    operators, slices = trace.operators, trace.slices
    numbered = operators.sequence >= 0
    is_backward = numbered & (operators.forward_thread > 0)
    made = numbered & ~is_backward
    number, row = operators.sequence[made], operators.row[made].astype(np.int64)
    # Of each number the last to begin; of two at once the inner one.
    order = np.lexsort((slices.level[row], slices.start_ns[row], number))
    number, row = number[order], row[order]
    is_last = np.append(number[1:] != number[:-1], True)[: len(number)]
    is_first = np.append(True, number[1:] != number[:-1])[: len(number)]
    track = slices.track[row].astype(np.int64)
    group = np.cumsum(is_first) - 1
    of_first = track[is_first][group]
    mixed = np.bincount(group[track != of_first], minlength=int(is_first.sum())) > 0
    number, row = number[is_last][~mixed], row[is_last][~mixed]
    backward = np.unique(operators.row[is_backward].astype(np.int64))
    wanted = operators.sequence[np.searchsorted(operators.row, backward)]
    if not len(number) or not len(backward):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    at = np.minimum(np.searchsorted(number, wanted), len(number) - 1)
    forward = row[at]
    fits = number[at] == wanted
    fits &= slices.start_ns[forward] <= slices.start_ns[backward]
    return backward[fits], forward[fits]


def _has_backward(trace: Trace) -> bool:
    if (trace.operators.forward_thread > 0).any():
        return True
    names = texts_in(trace.strings, trace.slices.name)
    return any(_OF_BACKWARD.match(text) for _, text in names)
