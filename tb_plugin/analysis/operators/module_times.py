"""Time of each module of a trace: calls of its forward, and its part of backward.

Modules are the slices `nn.Module: Linear_3` of the Python tracer, or Lightning's
`[pl][module]...: encoder.layer1`. A module below another one is a row below its row;
calls of one module under one parent are one row. Self is without modules and operators
in it. What runs on a device counts for the innermost module around its launch, by an
operator or without (a graph, a kernel of Triton's); else for backward of a module; else
for none (`outside_device_ns`): so all of it counts once. Where Lightning names modules, the
actions that it profiles (`[pl][profile]run_training_batch`) are rows too, around them.

Backward has no modules of its own: of an operator that backward ran, the profiler says
which forward operator made it (`backward_links`), and that one lies in a module. Self is
backward of the operators that the module called itself, total with those of the modules
in it.

Profilers since torch 1.13 draw an arrow (`fwdbwd`) from the one operator to the other.
What has none, as the call of the engine around it and all of older traces, still carries
a sequence number: the forward operator that made a node of backward, and what runs that
node, have the same one. Of forward operators that share a number the last to begin made
the node, as the profiler's own arrows say. Numbers count by thread of forward, and
backward names that thread by a number that no track has: so a number that operators of
several tracks carry names none of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    Table,
    begins,
    numbered,
    picked,
    places_in,
    sums,
    with_below,
)
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.texts import are, texts_in

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes
    from memboard.tb_plugin.analysis.trace.trace import Trace


LinkedBy: TypeAlias = Literal["arrows", "sequence_numbers", "not_run", "not_linked"]

_OF_BACKWARD: Final = re.compile(
    r"autograd::engine::evaluate_function|\w*Backward\d*$|torch::autograd::AccumulateGrad"
)
_MODULE: Final = re.compile(
    r"nn\.Module: (.+)|\[pl\]\[module\](?:[^:]+: )?(.+)", re.DOTALL
)
BackwardBy: TypeAlias = LinkedBy | Literal["not_in_modules"]
"""Evidence of backward's part, or why it is unknown: see `LinkedBy`; the last one: no
forward operator of a link lies in a module."""

_LIGHTNING: Final = "[pl][module]"
_ACTION: Final = "[pl][profile]"


@dataclass(frozen=True, slots=True, eq=False)
class ModuleTimes(Table):
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
    outside_device_ns: int
    """Of device work that counts for no module and for no module's backward."""
    example: Ints
    """Slice of the first call."""


def module_times(times: OperatorTimes) -> ModuleTimes:
    """The modules of a trace; none where it was taken without stacks."""
    trace = times.trace
    named = _with_actions(trace, module_names(trace))
    is_module = np.isin(trace.slices.name, list(named))
    modules = SliceTree(trace.slices, is_module)
    _place_captured(times, modules)
    rows = np.flatnonzero(is_module)
    group, parent, first = _grouped(trace, modules, rows)
    of_row = np.full(len(trace.slices), NOTHING, dtype=np.int64)
    of_row[rows] = group
    duration = times.host_ns

    def added(module: Ints, values: Ints) -> Ints:
        is_inside = module != NOTHING
        return sums(module[is_inside], values[is_inside], len(parent))

    own = SliceTree(trace.slices, is_module | times.is_operator)
    inner = duration - own.inner_sums(duration)
    # Operators that a module called itself.
    top = np.flatnonzero(times.is_operator & picked(is_module, own.parent, False))
    module_of_top = of_row[own.parent[top]]
    backward, module, backward_by = _backward(times, modules, of_row)
    backward_host = added(module, duration[backward])
    # By what launched each work on a device.
    launched_by = times.launched_by.copy()
    replays = trace.replays
    launched_by[np.searchsorted(trace.device_work.row, replays.row)] = replays.caller
    module_of_work = picked(of_row, modules.around(launched_by))
    device_self = added(module_of_work, times.work_ns)
    undone = np.full(len(trace.slices), NOTHING, dtype=np.int64)
    undone[backward] = module
    nodes = SliceTree(trace.slices, undone != NOTHING)
    backward_of_work = picked(undone, nodes.around(times.launched_by))
    backward_of_work[module_of_work != NOTHING] = NOTHING
    backward_device = added(backward_of_work, times.work_ns)
    is_outside = (module_of_work == NOTHING) & (backward_of_work == NOTHING)
    return ModuleTimes(
        name=tuple(named[int(trace.slices.name[row])] for row in first),
        parent=parent,
        num_calls=np.bincount(group, minlength=len(parent)),
        num_operators=added(module_of_top, np.ones(len(top), dtype=np.int64)),
        host_ns=added(group, duration[rows]),
        host_self_ns=added(group, np.maximum(inner[rows], 0)),
        device_ns=with_below(parent, device_self),
        device_self_ns=device_self,
        backward_host_ns=with_below(parent, backward_host),
        backward_host_self_ns=backward_host,
        backward_device_ns=with_below(parent, backward_device),
        backward_device_self_ns=backward_device,
        backward_by=backward_by,
        outside_device_ns=int(times.work_ns[is_outside].sum()),
        example=first,
    )


def _place_captured(times: OperatorTimes, modules: SliceTree) -> None:
    """Put what a graph captured in no module into the one that the replay was called in."""
    trace, replays = times.trace, times.trace.replays
    if not len(replays):
        return
    pairs = trace.launch_pairs[np.isin(trace.launch_pairs[:, 1], replays.row)]
    around = modules.parent[pairs[np.argsort(pairs[:, 1]), 0]]
    call, parent = replays.caller.copy(), trace.slices.parent
    while len(call):
        is_outermost = modules.parent[call] == NOTHING
        modules.parent[call[is_outermost]] = around[is_outermost]
        call = parent[call]
        call, around = call[call != NOTHING], around[call != NOTHING]


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
        inner = picked(group, around)
        ready = (around == NOTHING) | (inner != NOTHING)
        chosen = waiting[ready]
        first, number = numbered(inner[ready], trace.slices.name[chosen])
        group[chosen] = num + number
        parents.append(inner[ready][first])
        firsts.append(chosen[first])
        num += len(first)
        waiting = waiting[~ready]
    nothing = np.empty(0, dtype=np.int64)
    return (
        group[rows],
        np.concatenate([*parents, nothing]),
        np.concatenate([*firsts, nothing]),
    )


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
    module = picked(of_row, around)
    if len(module) and (module == NOTHING).all():
        return backward, module, "not_in_modules"
    return backward, module, links.linked_by


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
    is_first = begins(number)
    track = slices.track[row].astype(np.int64)
    group = np.cumsum(is_first) - 1
    of_first = track[is_first][group]
    mixed = np.bincount(group[track != of_first], minlength=int(is_first.sum())) > 0
    number, row = number[is_last][~mixed], row[is_last][~mixed]
    backward = np.unique(operators.row[is_backward].astype(np.int64))
    wanted = operators.sequence[np.searchsorted(operators.row, backward)]
    forward = picked(row, places_in(number, wanted))
    fits = forward != NOTHING
    fits[fits] = (slices.start_ns[forward] <= slices.start_ns[backward])[fits]
    return backward[fits], forward[fits]


def _has_backward(trace: Trace) -> bool:
    if (trace.operators.forward_thread > 0).any():
        return True
    names = texts_in(trace.strings, trace.slices.name)
    return any(_OF_BACKWARD.match(text) for _, text in names)
