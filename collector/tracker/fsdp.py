"""What FSDP2 does to parameters and gradients, seen from its own hooks and methods.

FSDP's forward hooks are wrapped where they stand in the modules' dictionaries, and
`unshard`, `pre_backward` and `post_backward` of its parameter groups on the objects, so
that taking the wrappers off leaves every dictionary with its keys, order and values.
A state may serve several modules (`fully_shard([a, b])`) and hold several groups (one
per mesh, torch 2.12 and newer); each group is wrapped once.
"""

# ruff: noqa: SLF001  # FSDP2 offers no other way to see it

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import torch

from collector.tracker.ledger import graph_task
from collector.tracker.log import CATEGORY, STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.tracker.dispatch import StorageWatch
    from collector.tracker.ledger import Ledger
    from collector.tracker.log import EventLog
    from collector.tracker.stack import Link, ModuleStack
    from collector.tracker.tree import ModuleTree

_SHARDED_PARAM: Final = CATEGORY["sharded_param"]
_UNSHARDED_PARAM: Final = CATEGORY["unsharded_param"]
_SHARDED_GRAD: Final = CATEGORY["sharded_grad"]
_UNSHARDED_GRAD: Final = CATEGORY["unsharded_grad"]
_ALL_GATHER: Final = CATEGORY["all_gather"]
_REDUCE_SCATTER: Final = CATEGORY["reduce_scatter"]

_UNNAMED: Final = frozenset({CATEGORY["activation"], CATEGORY["temp"]})
_ABSENT: Final = object()


class Unit:
    """One FSDP state: the modules it serves and its groups of parameters."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.modules: list[int] = []
        self.groups: list[Any] = groups_of(state)
        self.pending: list[int] = []
        """Calls whose backward is still to come, the next one last."""
        self.in_pre_backward = False

    def params(self) -> Iterator[Any]:
        """FSDP's own records of its parameters."""
        for group in self.groups:
            yield from group.fsdp_params


def groups_of(state: Any) -> list[Any]:
    """A state's parameter groups; before torch 2.12 there is at most one."""
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:
        group = getattr(state, "_fsdp_param_group", None)
        groups = [] if group is None else [group]
    return list(groups)


def find_units(tree: ModuleTree) -> list[Unit]:
    """The FSDP states below the root that hold parameters."""
    units: dict[int, Unit] = {}
    for index, module in enumerate(tree.modules):
        get_state = getattr(type(module), "_get_fsdp_state", None)
        if get_state is None:
            continue
        state = get_state(module)
        unit = units.setdefault(id(state), Unit(state))
        unit.modules.append(index)
    return [unit for unit in units.values() if unit.groups]


class ShardingWatch:
    """Marks the boundaries of sharded modules and names what sharding allocates."""

    def __init__(
        self,
        tree: ModuleTree,
        ledger: Ledger,
        log: EventLog,
        stack: ModuleStack,
        watch: StorageWatch,
    ) -> None:
        self.units = find_units(tree)
        self._tree = tree
        self._ledger = ledger
        self._log = log
        self._stack = stack
        self._watch = watch
        self._undo: list[Callable[[], None]] = []
        self._owners: dict[int, int] = {}
        """Owner module by `id` of FSDP's record of a parameter."""
        for unit in self.units:
            for param in unit.params():
                owner = tree.index.get(id(param._module_info.module))
                self._owners[id(param)] = unit.modules[0] if owner is None else owner

    def parameters(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Sharded parameters, the optimizer's keys, with their owners."""
        for unit in self.units:
            for param in unit.params():
                yield self._owners[id(param)], param.sharded_param

    def managed(self) -> set[int]:
        """`id`s of all parameters that FSDP may have put into the modules."""
        return {
            id(tensor)
            for unit in self.units
            for param in unit.params()
            for name in (
                "sharded_param",
                "_unsharded_param",
                "_sharded_post_forward_param",
            )
            if (tensor := getattr(param, name, None)) is not None
        }

    def assign_all(self) -> None:
        """Name what is alive now, whatever part of a step this is."""
        for unit in self.units:
            for param in unit.params():
                owner = self._owners[id(param)]
                self._ledger.assign(param.sharded_param, _SHARDED_PARAM, owner)
                self._assign(param.sharded_param.grad, _SHARDED_GRAD, owner)
            self._name_unsharded(unit)
            self._name_unsharded_grads(unit)
            for group in unit.groups:
                self._name_gathered(unit, group)
                self._name_reduced(unit, group)

    def install(self) -> None:
        """Wrap FSDP's hooks and methods."""
        hooked = set()
        for unit in self.units:
            for index in unit.modules:
                if self._wrap_hooks(unit, index):
                    hooked.add(index)
            for number, group in enumerate(unit.groups):
                self._wrap_methods(unit, group, number)
        self._stack.sharded = frozenset(hooked)
        self._stack.grouped = frozenset(
            index
            for unit in self.units
            if len(unit.modules) > 1
            for index in unit.modules
        )

    def remove(self) -> None:
        """Take the wrappers off."""
        while self._undo:
            self._undo.pop()()

    # -- boundaries

    def before_pre_forward(self, index: int) -> None:
        """FSDP is about to gather a module's parameters, or finds them there."""
        if graph_task() == -1:
            self._mark("before_pre_forward", index, self._stack.call_of(index))

    def after_pre_forward(self, unit: Unit, index: int) -> None:
        """The parameters are there."""
        self._name_unsharded(unit)
        if graph_task() == -1:
            self._mark("after_pre_forward", index, self._stack.call_of(index))
        else:
            self._stack.begin_recompute(index)

    def before_post_forward(self, index: int) -> None:
        """The forward is done; the parameters are still there."""
        if graph_task() == -1:
            self._mark("before_post_forward", index, self._stack.call_of(index))

    def after_post_forward(self, unit: Unit, index: int) -> None:
        """The parameters are freed, unless they stay until backward."""
        if graph_task() != -1:
            return
        for param in unit.params():
            kept = getattr(param, "_sharded_post_forward_param_data", None)
            self._assign(kept, _SHARDED_PARAM, self._owners[id(param)])
        call = self._stack.call_of(index)
        self._mark("after_post_forward", index, call)
        if index == unit.modules[0] and torch.is_grad_enabled():
            unit.pending.append(call)
        self._stack.leave_sharded(index)

    def before_pre_backward(self, unit: Unit) -> None:
        """The first gradient of the outputs is there."""
        unit.in_pre_backward = True
        self._mark_all("before_pre_backward", unit)
        self._stack.begin_backward(unit.modules[-1])

    def after_pre_backward(self, unit: Unit) -> None:
        """The parameters are there again."""
        self._name_unsharded(unit)
        if unit.in_pre_backward:
            unit.in_pre_backward = False
            self._mark_all("after_pre_backward", unit)

    def before_post_backward(self, unit: Unit, *, first: bool) -> None:
        """The gradients are complete and whole."""
        self._name_unsharded_grads(unit)
        if first:
            self._mark_all("before_post_backward", unit)

    def after_post_backward(self, unit: Unit, group: Any, *, last: bool) -> None:
        """The gradients are reduced and sharded, or kept for the next backward."""
        for param in group.fsdp_params:
            owner = self._owners[id(param)]
            self._assign(param.sharded_param.grad, _SHARDED_GRAD, owner)
        self._name_unsharded_grads(unit)
        self._name_reduced(unit, group)
        if last:
            self._mark_all("after_post_backward", unit)
            if unit.pending:
                unit.pending.pop()
            for index in unit.modules:
                self._stack.end_backward(index)

    def _mark(self, state: str, index: int, call: int) -> None:
        self._log.mark(STATE[state], index, call, graph_task() != -1)

    def _mark_all(self, state: str, unit: Unit) -> None:
        call = unit.pending[-1] if unit.pending else 0
        for index in unit.modules:
            self._log.mark(STATE[state], index, call, True)

    # -- names

    def _assign(self, tensor: torch.Tensor | None, category: int, owner: int) -> None:
        if tensor is not None:
            self._ledger.assign(tensor, category, owner)

    def _name_unsharded(self, unit: Unit) -> None:
        for param in unit.params():
            owner = self._owners[id(param)]
            self._assign(
                getattr(param, "_unsharded_param", None), _UNSHARDED_PARAM, owner
            )
            for tensor in getattr(param, "all_gather_outputs", ()):
                self._ledger.assign(tensor, _UNSHARDED_PARAM, owner)
            for tensor in getattr(param, "_unsharded_inner_tensors", ()):
                self._ledger.assign(tensor, _UNSHARDED_PARAM, owner)

    def _name_unsharded_grads(self, unit: Unit) -> None:
        for param in unit.params():
            owner = self._owners[id(param)]
            whole = getattr(param, "_unsharded_param", None)
            if whole is not None:
                self._assign(whole.grad, _UNSHARDED_GRAD, owner)
            kept = getattr(param, "unsharded_accumulated_grad", None)
            self._assign(kept, _UNSHARDED_GRAD, owner)

    def _name_gathered(self, unit: Unit, group: Any) -> None:
        for holder, name in (
            (group, "_all_gather_result"),
            (_comm(group), "all_gather_state"),
        ):
            result = getattr(holder, name, None)
            result = getattr(result, "all_gather_result", result)
            buffer = getattr(result, "all_gather_output", None)
            if buffer is not None:
                self._ledger.assign(buffer, _ALL_GATHER, unit.modules[0], only=_UNNAMED)

    def _name_reduced(self, unit: Unit, group: Any) -> None:
        comm, owner = _comm(group), unit.modules[0]
        states = getattr(comm, "reduce_scatter_states", None)
        if states is None:
            states = (getattr(comm, "reduce_scatter_state", None),)
        for state in states:
            buffer = getattr(state, "reduce_scatter_input", None)
            if buffer is not None:
                self._ledger.assign(buffer, _REDUCE_SCATTER, owner, only=_UNNAMED)
        partial = getattr(group, "_partial_reduce_output", None)
        self._assign(partial, _SHARDED_GRAD, owner)

    # -- wrappers

    def _wrap_hooks(self, unit: Unit, index: int) -> bool:
        module = self._tree.modules[index]
        before = _hook_id(
            unit.state._pre_forward_hook_handle, module._forward_pre_hooks
        )
        after = _hook_id(unit.state._post_forward_hook_handle, module._forward_hooks)
        if before is None or after is None:
            return False
        link = self._stack.link
        self._replace(
            module._forward_pre_hooks,
            before,
            lambda original: _around(
                link,
                original,
                lambda: self.before_pre_forward(index),
                lambda: self.after_pre_forward(unit, index),
            ),
        )
        self._replace(
            module._forward_hooks,
            after,
            lambda original: _around(
                link,
                original,
                lambda: self.before_post_forward(index),
                lambda: self.after_post_forward(unit, index),
            ),
        )
        return True

    def _wrap_methods(self, unit: Unit, group: Any, number: int) -> None:
        link, is_first = self._stack.link, number == 0
        is_last = number == len(unit.groups) - 1

        # A group may be gathered ahead, inside another module: the buffers are its own.
        def begin_unshard() -> None:
            self._stack.lend(unit.modules[0])

        def end_unshard() -> None:
            self._stack.lend(None)
            self._name_gathered(unit, group)

        def begin_pre_backward() -> None:
            if is_first and not _is_in(group, "PRE_BACKWARD"):
                self.before_pre_backward(unit)

        def end_pre_backward() -> None:
            if is_last:
                self.after_pre_backward(unit)

        # Backward runs the groups from the last to the first.
        def begin_post_backward() -> None:
            self.before_post_backward(unit, first=is_last)
            self._watch.reducing = reducing

        def end_post_backward() -> None:
            self._watch.reducing = None
            self.after_post_backward(unit, group, last=is_first)

        def reducing(func: Any, args: Any) -> None:
            if func is scatter:
                self._ledger.assign(args[1], _REDUCE_SCATTER, unit.modules[0])

        scatter = _reduce_scatter()
        for name, before, after in (
            ("unshard", begin_unshard, end_unshard),
            ("pre_backward", begin_pre_backward, end_pre_backward),
            ("post_backward", begin_post_backward, end_post_backward),
        ):
            original = getattr(group, name)
            self._set(group, name, _around(link, original, before, after))

    def _replace(
        self, hooks: dict[int, Any], key: int, make: Callable[[Any], Any]
    ) -> None:
        original = hooks[key]
        wrapper = hooks[key] = make(original)

        def undo() -> None:
            if hooks.get(key) is wrapper:
                hooks[key] = original

        self._undo.append(undo)

    def _set(self, group: Any, name: str, wrapper: Any) -> None:
        held = vars(group).get(name, _ABSENT)
        setattr(group, name, wrapper)

        def undo() -> None:
            if vars(group).get(name) is not wrapper:
                return  # somebody has wrapped it since; ours is idle from now on
            if held is _ABSENT:
                delattr(group, name)
            else:
                setattr(group, name, held)

        self._undo.append(undo)


def _around(
    link: Link, original: Any, before: Callable[[], None], after: Callable[[], None]
) -> Any:
    """A function that does what the original does, and tells before and after."""

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        stack = link.stack
        if stack is not None:
            stack.guard(before)
        result = original(*args, **kwargs)
        stack = link.stack
        if stack is not None:
            stack.guard(after)
        return result

    return wrapper


def _hook_id(handle: Any, hooks: dict[int, Any]) -> int | None:
    """The key of FSDP's hook in a module's dictionary; None where it has none."""
    for single in getattr(handle, "handles", (handle,)):
        dictionary = getattr(single, "hooks_dict_ref", None)
        if dictionary is not None and dictionary() is hooks and single.id in hooks:
            key: int = single.id
            return key
    return None


def _comm(group: Any) -> Any:
    return getattr(group, "comm_ctx", None)


def _is_in(group: Any, state: str) -> bool:
    current = getattr(group, "_training_state", None)
    return getattr(current, "name", None) == state


def _reduce_scatter() -> Any:
    return torch.ops.c10d._reduce_scatter_base_.default
