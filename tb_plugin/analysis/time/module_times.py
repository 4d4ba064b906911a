"""Time of each module of a trace: calls of its forward, and its part of backward.

Modules are the slices `nn.Module: Linear_3` of the Python tracer, or Lightning's
`[pl][module]...: encoder.layer1`. A module below another one is a row below its row;
calls of one module under one parent are one row. Self is without modules and operators
in it. What a module's operators launched on a device is its own. Where Lightning names
modules, the actions that it profiles (`[pl][profile]run_training_batch`) are rows too,
around them.

Backward has no modules of its own: of an operator that backward ran, the profiler says
which forward operator made it (`backward_links`), and that one lies in a module. Self is
backward of the operators that the module called itself, total with those of the modules
in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from tb_plugin.analysis.time.backward_links import LinkedBy, backward_links
from tb_plugin.analysis.time.slice_tree import SliceTree
from tb_plugin.analysis.trace.texts import texts_in
from tb_plugin.analysis.trace.trace import NOTHING

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.time.operator_times import OperatorTimes
    from tb_plugin.analysis.trace.trace import Trace

    Ints: TypeAlias = npt.NDArray[Any]
    Bools: TypeAlias = npt.NDArray[np.bool_]

_MODULE: Final = re.compile(
    r"nn\.Module: (.+)|\[pl\]\[module\](?:[^:]+: )?(.+)", re.DOTALL
)
BackwardBy: TypeAlias = LinkedBy | Literal["not_in_modules"]
"""How backward's part is known, or why it is not: see `LinkedBy`; the last one: no
forward operator of a link lies in a module."""

_LIGHTNING: Final = "[pl][module]"
_ACTION: Final = "[pl][profile]"


@dataclass(frozen=True, slots=True, eq=False)
class ModuleTimes:
    """One row per module and place; a parent's row comes before those below it."""

    name: tuple[str, ...]
    """`Linear_3`; of Lightning the module's path."""
    parent: Ints
    """Row of the module around it, or NOTHING."""
    num_calls: Ints
    num_operators: Ints
    """Operators that it called itself, not one another."""
    host_ns: Ints
    host_self_ns: Ints
    device_ns: Ints
    device_self_ns: Ints
    backward_host_ns: Ints
    """With the modules in it. All four are zero where backward's part is not known."""
    backward_host_self_ns: Ints
    backward_device_ns: Ints
    backward_device_self_ns: Ints
    backward_by: BackwardBy
    example: Ints
    """Slice of the first call."""

    def __len__(self) -> int:
        return len(self.name)


def module_times(times: OperatorTimes) -> ModuleTimes:
    """The modules of a trace; none where it was taken without stacks."""
    trace = times.trace
    named = _with_actions(trace, module_names(trace))
    is_module = np.isin(trace.slices.name, list(named))
    modules = SliceTree(trace.slices, is_module)
    rows = np.flatnonzero(is_module)
    group, parent, first = _grouped(trace, modules, rows)
    of_row = np.full(len(trace.slices), NOTHING, dtype=np.int64)
    of_row[rows] = group
    duration = trace.slices.duration_ns.astype(np.int64)

    def sums(at: Ints, values: Ints) -> Ints:
        added = np.zeros(len(parent), dtype=np.int64)
        known = at != NOTHING
        np.add.at(added, at[known], values[known])
        return added

    own = SliceTree(trace.slices, is_module | times.is_operator)
    inner = duration - own.inner_sums(duration)
    top = _top_operators(times, own, is_module)
    module_of_top = of_row[own.parent[top]]
    device_self = sums(module_of_top, times.device_total_ns[top])
    backward, module, backward_by = _backward(times, modules, of_row)
    backward_host = sums(module, duration[backward])
    backward_device = sums(module, times.device_total_ns[backward])
    return ModuleTimes(
        name=tuple(named[int(trace.slices.name[row])] for row in first),
        parent=parent,
        num_calls=np.bincount(group, minlength=len(parent)),
        num_operators=sums(module_of_top, np.ones(len(top), dtype=np.int64)),
        host_ns=sums(group, duration[rows]),
        host_self_ns=sums(group, np.maximum(inner[rows], 0)),
        device_ns=_with_inner(parent, device_self),
        device_self_ns=device_self,
        backward_host_ns=_with_inner(parent, backward_host),
        backward_host_self_ns=backward_host,
        backward_device_ns=_with_inner(parent, backward_device),
        backward_device_self_ns=backward_device,
        backward_by=backward_by,
        example=first,
    )


def _with_actions(trace: Trace, modules: dict[int, str]) -> dict[int, str]:
    """With Lightning's actions, where it named any module."""
    strings = trace.strings
    if not any(strings[row].startswith(_LIGHTNING) for row in modules):
        return modules
    actions = {
        row: text.removeprefix(_ACTION)
        for row, text in texts_in(strings, trace.slices.name)
        if text.startswith(_ACTION) and len(text) > len(_ACTION)
    }
    return {**actions, **modules}


def module_names(trace: Trace) -> dict[int, str]:
    """The module of each name of a slice that is one, by row of `Trace.strings`."""
    return {
        row: match[1] or match[2]
        for row, text in texts_in(trace.strings, trace.slices.name)
        if (match := _MODULE.fullmatch(text))
    }


def _grouped(trace: Trace, modules: SliceTree, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each call its row, of each row its parent and its first call."""
    group = np.full(len(trace.slices), NOTHING, dtype=np.int64)
    parents: list[Ints] = []
    firsts: list[Ints] = []
    waiting, num = rows, 0
    while len(waiting):
        around = modules.parent[waiting]
        inner = np.where(around == NOTHING, NOTHING, group[np.maximum(around, 0)])
        ready = (around == NOTHING) | (inner != NOTHING)
        chosen = waiting[ready]
        keys = np.stack((inner[ready], trace.slices.name[chosen]), axis=1)
        known, first, at = np.unique(
            keys, axis=0, return_index=True, return_inverse=True
        )
        group[chosen] = num + at.reshape(-1)
        parents.append(known[:, 0])
        firsts.append(chosen[first])
        num += len(known)
        waiting = waiting[~ready]
    nothing = np.empty(0, dtype=np.int64)
    return (
        group[rows],
        np.concatenate([*parents, nothing]),
        np.concatenate([*firsts, nothing]),
    )


def _top_operators(times: OperatorTimes, own: SliceTree, is_module: Bools) -> Ints:
    """Operators that a module called itself."""
    rows = np.flatnonzero(times.is_operator & (own.parent != NOTHING))
    return rows[is_module[own.parent[rows]]]


def _backward(
    times: OperatorTimes, modules: SliceTree, of_row: Ints
) -> tuple[Ints, Ints, BackwardBy]:
    """Operators that backward ran, the module of each, and how that is known."""
    links = backward_links(times.trace)
    # One operator of backward counts once, and not what runs inside it.
    ran = np.zeros(len(times.trace.slices), dtype=bool)
    ran[links.backward] = True
    outermost = SliceTree(times.trace.slices, ran).parent[links.backward] == NOTHING
    backward, forward = links.backward[outermost], links.forward[outermost]
    around = modules.parent[forward]
    module = np.where(around == NOTHING, NOTHING, of_row[np.maximum(around, 0)])
    if len(module) and (module == NOTHING).all():
        return backward, module, "not_in_modules"
    return backward, module, links.linked_by


def _with_inner(parent: Ints, values: Ints) -> Ints:
    """Each row's value and those of all rows below it."""
    sums: Ints = values.copy()
    for row in range(len(parent) - 1, -1, -1):
        if parent[row] != NOTHING:
            sums[parent[row]] += sums[row]
    return sums
