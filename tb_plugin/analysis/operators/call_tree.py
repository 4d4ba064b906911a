"""Calls of a trace by their place: modules, annotations and operators, what is inside what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, Table, picked, sums, with_below
from memboard.tb_plugin.analysis.operators.module_times import module_names
from memboard.tb_plugin.analysis.operators.operators import IN_NO_OPERATOR
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.texts import texts_in

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes
    from memboard.tb_plugin.analysis.trace.trace import Slices

MAX_STACKS: Final = 100_000
"""Different ones; what would be another one counts for the stack around it."""
_STEP: Final = re.compile(r"(ProfilerStep)#\d+")


def merged_stacks(
    slices: Slices, tree: SliceTree, name: Ints
) -> tuple[Ints, list[int], list[int]]:
    """(slices,): each slice's stack; and of each stack the one around it and its name.

    Args:
        slices: of a trace.
        tree: those that are frames of stacks.
        name: (slices,), numbers from 0 on.
    """
    num_names = int(name.max(initial=0)) + 1
    stack_of = np.full(len(slices), NOTHING, dtype=np.int64)
    stacks: dict[tuple[int, int], int] = {}
    parents: list[int] = []
    names: list[int] = []
    for level in slices.by_level:
        rows = level[tree.kept[level]]
        up = tree.parent[rows]
        around = np.where(up == NOTHING, NOTHING, stack_of[np.maximum(up, 0)])
        # A stack may be met at several levels: all its slices are of one.
        keys = (around + 1) * num_names + name[rows].astype(np.int64)
        distinct, index = np.unique(keys, return_inverse=True)
        stack_numbers = []
        for key in distinct.tolist():
            parent, stack_name = divmod(key, num_names)
            number = stacks.get((parent - 1, stack_name))
            if number is None and len(stacks) >= MAX_STACKS and parent:
                number = parent - 1
            elif number is None:
                number = stacks[parent - 1, stack_name] = len(stacks)
                parents.append(parent - 1)
                names.append(stack_name)
            stack_numbers.append(number)
        stack_of[rows] = np.array(stack_numbers, dtype=np.int64)[index]
    return stack_of, parents, names


@dataclass(frozen=True, slots=True, eq=False)
class CallTree(Table):
    """One row per call and place; a parent's row comes before those below it."""

    name: tuple[str, ...]
    parent: Ints
    first_ns: Ints
    """When the first of its calls began; the row of what is in no operator is last."""
    num_calls: Ints
    host_self_ns: Ints
    host_total_ns: Ints
    device_self_ns: Ints
    device_total_ns: Ints


def call_tree(times: OperatorTimes) -> CallTree:
    """Calls of a trace; steps are one, whatever their number.

    What launched work outside operators is a call too, as `cudaGraphLaunch`. Device self
    adds up to all that devices did.
    """
    trace, slices = times.trace, times.trace.slices
    launched_by = times.launched_by
    is_call = times.nodes.kept | np.isin(slices.name, list(module_names(trace)))
    is_call[launched_by[launched_by != NOTHING]] = True
    labels: dict[str, int] = {}
    label_of = np.zeros(len(trace.strings), np.int64)
    for row, text in texts_in(trace.strings, slices.name):
        label_of[row] = labels.setdefault(_STEP.sub(r"\1", text), len(labels))
    tree = SliceTree(slices, is_call)
    node_of, parents, names = merged_stacks(slices, tree, label_of[slices.name])
    texts = [*labels]
    rows = np.flatnonzero(node_of != NOTHING)
    nodes, num = node_of[rows], len(parents)
    first_ns = np.full(num, np.iinfo(np.int64).max)
    np.minimum.at(first_ns, nodes, slices.starts(rows))
    work_node = picked(node_of, launched_by)
    is_known = work_node != NOTHING
    device_self = sums(work_node[is_known], times.work_ns[is_known], num)
    parent = np.array(parents, np.int64)
    row_names = [texts[name] for name in names]
    columns = {
        "first_ns": first_ns,
        "num_calls": np.bincount(nodes, minlength=num),
        "host_self_ns": sums(nodes, times.host_self_ns[rows], num),
        "host_total_ns": sums(nodes, times.host_total_ns[rows], num),
        "device_self_ns": device_self,
    }
    if not is_known.all():
        unknown = {
            "first_ns": np.iinfo(np.int64).max,
            "device_self_ns": int(times.work_ns[~is_known].sum()),
        }
        columns = {
            key: np.append(values, unknown.get(key, 0))
            for key, values in columns.items()
        }
        parent = np.append(parent, NOTHING)
        row_names.append(IN_NO_OPERATOR)
    return CallTree(
        name=tuple(row_names),
        parent=parent,
        device_total_ns=with_below(parent, columns["device_self_ns"]),
        **columns,
    )
