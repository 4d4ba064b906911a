"""Forward operators that activation checkpointing runs again while backward runs.

- Reentrant (`use_reentrant=True`): all that `CheckpointFunctionBackward` calls itself, and
  not the backward that it runs inside.
- Not reentrant: an operator right inside a node of backward that records itself for autograd
  (it has a sequence number and no forward thread), though no backward ever runs that number.
  Saved tensors are unpacked there, and the first unpacking runs the forward again. What lies
  between the first and the last such operator of a node belongs to it as well.

Backward that is differentiated itself (`create_graph=True`) records its operators too, but
backward runs their numbers later: these are not counted. What torch.compile recomputes in its
own kernels has no operators, and is not known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import highest, picked
from memboard.tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
    from memboard.tb_plugin.analysis.trace.trace import Trace

_ENGINE: Final = "autograd::engine::evaluate_function: "
_NODE: Final = re.compile(r"(?!autograd::engine)(?:\w|::)*Backward\d*")
_REENTRANT: Final = re.compile(r"CheckpointFunctionBackward")


def recomputed(trace: Trace, operators: SliceTree) -> Flags:
    """(slices,): whether an operator runs a forward again, or lies in one that does."""
    strings, slices = trace.strings, trace.slices
    num = len(slices)
    flags = np.zeros(num, bool)
    rows = np.flatnonzero(operators.kept)
    names = slices.name[rows]
    is_node = are(strings, names, _NODE.fullmatch)
    if not is_node.any():
        return flags
    node = np.zeros(num, bool)
    node[rows[is_node]] = True
    inner = rows[picked(node, operators.parent[rows], False)]
    engine = are(strings, slices.name[inner], lambda name: name.startswith(_ENGINE))
    inner = inner[~engine & ~node[inner]]
    parent = operators.parent[inner]
    reentrant = are(strings, slices.name[parent], _REENTRANT.fullmatch)
    flags[inner[reentrant]] = True
    inner, parent = inner[~reentrant], parent[~reentrant]
    flags[_within_runs(trace, inner, parent)] = True
    for level in slices.by_level:
        below = level[operators.kept[level] & picked(flags, operators.parent[level], 0)]
        is_engine = are(
            strings, slices.name[below], lambda name: name.startswith(_ENGINE)
        )
        flags[below[~is_engine]] = True
    return flags


def _within_runs(trace: Trace, inner: Ints, parent: Ints) -> Ints:
    """Operators from the first to the last that a node of backward records itself."""
    operators, slices = trace.operators, trace.slices
    of_backward = operators.sequence[operators.forward_thread > 0]
    records = (operators.sequence >= 0) & (operators.forward_thread <= 0)
    records &= ~np.isin(operators.sequence, of_backward)
    is_recorded = np.zeros(len(slices), bool)
    is_recorded[operators.row[records]] = True
    marks = is_recorded[inner]
    if not marks.any():
        return inner[:0]
    starts = slices.starts(inner)
    first = np.full(len(slices), np.iinfo(np.int64).max)
    np.minimum.at(first, parent[marks], starts[marks])
    last = highest(parent[marks], starts[marks] + 1, len(slices))
    is_within = (starts >= first[parent]) & (starts < last[parent])
    within: Ints = inner[is_within]
    return within
