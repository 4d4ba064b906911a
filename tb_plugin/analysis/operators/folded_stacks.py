"""Stacks in the folded form that flame graph tools read: `a;b;c 123`, one per line.

Python's calls, operators, annotations and calls of the runtime, by what is inside what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, sums
from memboard.tb_plugin.analysis.operators.call_tree import merged_stacks
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes
    from memboard.tb_plugin.analysis.trace.trace import Trace

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
    stack_of, parents, names = merged_stacks(slices, tree, slices.name)
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


def _plain(frame: str) -> str:
    return " ".join(frame.replace(";", ":").split())[:_MAX_NAME] or "?"
