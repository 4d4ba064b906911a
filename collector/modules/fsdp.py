"""Follows FSDP2 through its own hooks and methods: parameters, gradients, boundaries.

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

from memboard.collector.core.patches import Patches
from memboard.collector.modules.fsdp_units import (
    Unit,
    find_units,
    gathered_buffers,
    hook_id,
    is_in,
    reduce_scatter,
    reduced_buffers,
    unsharded,
    unsharded_grads,
)
from memboard.collector.modules.ledger import graph_task
from memboard.collector.modules.log import CATEGORY, STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memboard.collector.modules.dispatch import StorageWatch
    from memboard.collector.modules.ledger import Ledger
    from memboard.collector.modules.log import EventLog
    from memboard.collector.modules.stack import ModuleStack
    from memboard.collector.modules.tree import ModuleTree

_SHARDED_PARAM: Final = CATEGORY["sharded_param"]
_UNSHARDED_PARAM: Final = CATEGORY["unsharded_param"]
_SHARDED_GRAD: Final = CATEGORY["sharded_grad"]
_UNSHARDED_GRAD: Final = CATEGORY["unsharded_grad"]
_ALL_GATHER: Final = CATEGORY["all_gather"]
_REDUCE_SCATTER: Final = CATEGORY["reduce_scatter"]

_UNNAMED: Final = frozenset(
    map(CATEGORY.__getitem__, ("activation", "temp", "activation_grad"))
)


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
        self._patches = Patches()
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
            for attribute in (
                "sharded_param",
                "_unsharded_param",
                "_sharded_post_forward_param",
            )
            if (tensor := getattr(param, attribute, None)) is not None
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
        self._patches.remove()

    # -- boundaries

    def before_pre_forward(self, index: int) -> None:
        """FSDP is about to gather a module's parameters, or finds them there."""
        if graph_task() == -1:
            self._mark("before_pre_forward", index, self._stack.call_of(index))

    def after_pre_forward(self, unit: Unit, index: int) -> None:
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
            for tensor in unsharded(param):
                self._assign(tensor, _UNSHARDED_PARAM, self._owners[id(param)])

    def _name_unsharded_grads(self, unit: Unit) -> None:
        for param in unit.params():
            for tensor in unsharded_grads(param):
                self._assign(tensor, _UNSHARDED_GRAD, self._owners[id(param)])

    def _name_gathered(self, unit: Unit, group: Any) -> None:
        for buffer in gathered_buffers(group):
            self._ledger.assign(buffer, _ALL_GATHER, unit.modules[0], only=_UNNAMED)

    def _name_reduced(self, unit: Unit, group: Any) -> None:
        for buffer in reduced_buffers(group):
            self._ledger.assign(buffer, _REDUCE_SCATTER, unit.modules[0], only=_UNNAMED)
        partial = getattr(group, "_partial_reduce_output", None)
        self._assign(partial, _SHARDED_GRAD, unit.modules[0])

    def _wrap_hooks(self, unit: Unit, index: int) -> bool:
        module = self._tree.modules[index]
        before = hook_id(unit.state._pre_forward_hook_handle, module._forward_pre_hooks)
        after = hook_id(unit.state._post_forward_hook_handle, module._forward_hooks)
        if before is None or after is None:
            return False
        for hooks, key, begin, end in (
            (
                module._forward_pre_hooks,
                before,
                lambda: self.before_pre_forward(index),
                lambda: self.after_pre_forward(unit, index),
            ),
            (
                module._forward_hooks,
                after,
                lambda: self.before_post_forward(index),
                lambda: self.after_post_forward(unit, index),
            ),
        ):
            self._patches.entry(hooks, key, self._around(hooks[key], begin, end))
        return True

    def _around(
        self, original: Any, before: Callable[[], None], after: Callable[[], None]
    ) -> Any:
        """A function that does what the original does, and tells before and after."""
        link = self._stack.link

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            link.call(before)
            result = original(*args, **kwargs)
            link.call(after)
            return result

        return wrapper

    def _wrap_methods(self, unit: Unit, group: Any, number: int) -> None:
        is_first = number == 0
        is_last = number == len(unit.groups) - 1

        # A group may be gathered ahead, inside another module: the buffers are its own.
        def begin_unshard() -> None:
            self._stack.lend(unit.modules[0])

        def end_unshard() -> None:
            self._stack.lend(None)
            self._name_gathered(unit, group)

        def begin_pre_backward() -> None:
            if is_first and not is_in(group, "PRE_BACKWARD"):
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

        scatter = reduce_scatter()
        for method, before, after in (
            ("unshard", begin_unshard, end_unshard),
            ("pre_backward", begin_pre_backward, end_pre_backward),
            ("post_backward", begin_post_backward, end_post_backward),
        ):
            wrapper = self._around(getattr(group, method), before, after)
            self._patches.attribute(group, method, wrapper)
