"""Stacks in the folded form that flame graph tools read: `a;b;c 123`, one per line.

Python's calls, operators, annotations and calls of the runtime, by what is inside what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, sums
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes
    from memboard.tb_plugin.analysis.trace.trace import Trace

MAX_STACKS: Final = 100_000
"""Different ones; what would be another one counts for the stack around it."""

_MAX_NAME: Final = 300


def python_calls(trace: Trace) -> Flags:
    """(slices,): whether each is a call of Python's."""
    return are(
        trace.strings,
        trace.slices.category,
        lambda text: text.lower() == "python_function",
    )


def folded_stacks(
    times: OperatorTimes, metric: Literal["self_cpu", "self_device"]
) -> str:
    """Each stack with its own time in microseconds, those without any left out."""
    slices = times.trace.slices
    tree = SliceTree(slices, times.tree.kept | python_calls(times.trace))
    if metric == "self_device":
        own = times.device_self_ns
    else:
        duration = times.host_ns
        own = np.maximum(duration - tree.inner_sums(duration), 0)
    stack_of, parents, names = _stacks(times.trace, tree)
    inside = np.flatnonzero(stack_of != NOTHING)
    own_us = np.rint(sums(stack_of[inside], own[inside], len(parents)) / 1000)
    strings = times.trace.strings
    lines = []
    for bottom in np.flatnonzero(own_us > 0).tolist():
        path, node = [], bottom
        while node != NOTHING:
            path.append(_plain(strings[names[node]]))
            node = parents[node]
        lines.append(f"{';'.join(reversed(path))} {int(own_us[bottom])}\n")
    return "".join(lines)


def _stacks(trace: Trace, tree: SliceTree) -> tuple[Ints, list[int], list[int]]:
    """(slices,): each slice's stack; and of each stack the one around it and its name."""
    slices, num_names = trace.slices, max(len(trace.strings), 1)
    stack_of = np.full(len(slices), NOTHING, dtype=np.int64)
    stacks: dict[tuple[int, int], int] = {}
    parents: list[int] = []
    names: list[int] = []
    for level in slices.by_level:
        rows = level[tree.kept[level]]
        up = tree.parent[rows]
        around = np.where(up == NOTHING, NOTHING, stack_of[np.maximum(up, 0)])
        # A stack may be met at several levels: all its slices are of one.
        keys = (around + 1) * num_names + slices.name[rows].astype(np.int64)
        distinct, index = np.unique(keys, return_inverse=True)
        stack_numbers = []
        for key in distinct.tolist():
            parent, name = divmod(key, num_names)
            number = stacks.get((parent - 1, name))
            if number is None and len(stacks) >= MAX_STACKS and parent:
                number = parent - 1
            elif number is None:
                number = stacks[parent - 1, name] = len(stacks)
                parents.append(parent - 1)
                names.append(name)
            stack_numbers.append(number)
        stack_of[rows] = np.array(stack_numbers, dtype=np.int64)[index]
    return stack_of, parents, names


def _plain(frame: str) -> str:
    return " ".join(frame.replace(";", ":").split())[:_MAX_NAME] or "?"
