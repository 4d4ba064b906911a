"""Parameters, gradients, buffers and optimizer states, by name.

What is alive is named at the start, the rest as it comes. A gradient of a parameter that
nobody shards is named when autograd has accumulated it, by a hook on the parameter that
is taken off again, dictionary and all. FSDP names its own. A gradient of an activation is
named when a node of autograd is given it, by hooks that go with the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from torch.nn.parameter import is_lazy

from memboard.collector.modules.log import CATEGORY, STATE
from memboard.collector.modules.tensors import tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import torch

    from memboard.collector.modules.fsdp import ShardingWatch
    from memboard.collector.modules.ledger import Ledger
    from memboard.collector.modules.log import EventLog
    from memboard.collector.modules.stack import Link, ModuleStack
    from memboard.collector.modules.tree import ModuleTree

_PARAM: Final = CATEGORY["param"]
_BUFFER: Final = CATEGORY["buffer"]
_GRAD: Final = CATEGORY["grad"]
_OPTIMIZER: Final = CATEGORY["optimizer"]
_ACTIVATION_GRAD: Final = CATEGORY["activation_grad"]
_TEMP: Final = CATEGORY["temp"]

_MAX_VIEWS: Final = 8
"""Views of a parameter, one of the other, that are looked through."""

_ACCUMULATE: Final = "torch::autograd::AccumulateGrad"
_CAST: Final = "ToCopyBackward"
"""A node that makes a new gradient, as a view does not."""


class ParameterWatch:
    """Parameters nobody shards, their gradients, and all buffers."""

    def __init__(
        self, tree: ModuleTree, ledger: Ledger, sharding: ShardingWatch, link: Link
    ) -> None:
        self._ledger = ledger
        self._link = link
        self._buffers = list(tree.buffers())
        managed = sharding.managed()
        self._own = [(i, p) for i, p in tree.parameters() if id(p) not in managed]
        self.owners = {id(p): i for i, p in (*self._own, *sharding.parameters())}
        """Module by `id` of a parameter as optimizers know it."""
        self._all = [*self._own, *sharding.parameters()]
        self._hooked: list[tuple[Any, Any]] = []
        lazy = [(i, t) for i, t in (*self._own, *self._buffers) if is_lazy(t)]
        self.lazy = frozenset(owner for owner, _ in lazy)
        """Modules of which something has no memory before their first forward."""
        self._late = {id(tensor) for _, tensor in lazy}

    def own_bytes(self, num_modules: int) -> tuple[list[int], list[int]]:
        """By module: bytes of its own parameters (local shards) and buffers.

        A storage counts once, for the first module that has it.
        """
        seen: set[int] = set()
        return (
            self._bytes_by_owner(self._all, num_modules, seen),
            self._bytes_by_owner(self._buffers, num_modules, seen),
        )

    def assign_all(self, module: int | None = None) -> None:
        """Name what is alive, or what a lazy module has just made."""
        for owner, parameter in self._there(self._own, module):
            self._ledger.assign(parameter, _PARAM, owner)
            if parameter.grad is not None:
                self._ledger.assign(parameter.grad, _GRAD, owner)
        for owner, buffer in self._there(self._buffers, module):
            self._ledger.assign(buffer, _BUFFER, owner)

    def install(self, module: int | None = None) -> None:
        """Name gradients as they come, of what `assign_all` named."""
        link = self._link

        def accumulated(parameter: torch.Tensor) -> None:
            link.call(self._name_gradient, parameter)

        for _, parameter in self._there(self._own, module):
            if parameter.requires_grad and parameter.is_leaf:
                had_none = parameter._post_accumulate_grad_hooks is None  # noqa: SLF001
                handle = cast("Any", parameter).register_post_accumulate_grad_hook(
                    accumulated
                )
                self._hooked.append((handle, parameter if had_none else None))

    def remove(self) -> None:
        """Leave the parameters as they were."""
        for handle, parameter in self._hooked:
            handle.remove()
            if parameter is not None and not parameter._post_accumulate_grad_hooks:  # noqa: SLF001
                parameter._post_accumulate_grad_hooks = None  # noqa: SLF001
        self._hooked.clear()

    def _there(
        self, tensors: Iterable[tuple[int, Any]], module: int | None
    ) -> Iterator[tuple[int, Any]]:
        """Those that had memory from the start; or, of a module, those that had not."""
        for owner, tensor in tensors:
            is_due = module == (owner if id(tensor) in self._late else None)
            if is_due and not is_lazy(tensor):
                yield owner, tensor

    def _bytes_by_owner(
        self, tensors: Iterable[tuple[int, Any]], num_modules: int, seen: set[int]
    ) -> list[int]:
        bytes_by_owner = [0] * num_modules
        for owner, tensor in tensors:
            if is_lazy(tensor):
                continue
            for key, num_bytes in self._ledger.storages(tensor):
                if key not in seen:
                    seen.add(key)
                    bytes_by_owner[owner] += num_bytes
        return bytes_by_owner

    def _name_gradient(self, parameter: torch.Tensor) -> None:
        gradient = parameter.grad
        if gradient is not None:  # an optimizer inside backward may have taken it
            owner = self.owners.get(id(parameter), -1)
            self._ledger.assign(gradient, _GRAD, owner)


class ActivationGradients:
    """Gradients of what is no parameter, on their way from node to node.

    Before a backward begins, the nodes that it can reach get two hooks: one is given what
    comes into its node, sums among it, the other what the node sends on. Hooks hold a link
    and numbers, and each node bears a mark among its own metadata: no node is kept alive,
    and none gets hooks twice.
    """

    def __init__(self, ledger: Ledger, link: Link) -> None:
        self._ledger = ledger
        self._link = link

    def follow(self, roots: Any) -> None:
        """A backward of these tensors begins."""
        waiting: list[Any] = [tensor.grad_fn for tensor in tensors_in(roots)]
        while waiting:
            node = waiting.pop()
            if node is None or node.name() == _ACCUMULATE:
                continue
            if self._link not in node.metadata:
                node.metadata[self._link] = True
                following = [function for function, _ in node.next_functions]
                self._hook(node, following)
                waiting += following

    def _hook(self, node: Any, following: list[Any]) -> None:
        link, ledger = self._link, self._ledger
        here = (_parameter_length(node),)
        there = [
            None if function is None else _parameter_length(function)
            for function in following
        ]

        def given(gradients: Any) -> None:
            if link.stack is not None:
                lengths = here * len(gradients)
                link.call(_name_gradients, ledger, gradients, lengths)

        def sent(gradients: Any, _given: Any) -> None:
            if link.stack is not None:
                link.call(_name_gradients, ledger, gradients, there)

        node.register_prehook(given)
        node.register_hook(sent)


def _parameter_length(node: Any) -> int | None:
    """Elements of the parameter that a node accumulates, or a view of it; else None."""
    for _ in range(_MAX_VIEWS):
        if node.name() == _ACCUMULATE:
            return int(node.variable.numel())
        following = [
            function for function, _ in node.next_functions if function is not None
        ]
        if len(following) != 1 or node.name().startswith(_CAST):
            return None
        (node,) = following
    return None


def _name_gradients(
    ledger: Ledger, gradients: Sequence[Any], lengths: Sequence[int | None]
) -> None:
    for gradient, length in zip(gradients, lengths, strict=False):
        # As long as the parameter it may be what this gets.
        if gradient is not None and gradient.numel() != length:
            ledger.rename(gradient, _ACTIVATION_GRAD, only=_TEMP)


class OptimizerWatch:
    """The states of all optimizers, and when they step."""

    def __init__(
        self,
        optimizers: Iterable[Any],
        owners: dict[int, int],
        ledger: Ledger,
        log: EventLog,
        stack: ModuleStack,
    ) -> None:
        # Trainers wrap optimizers; torch tells of the steps of those inside.
        inside = (
            getattr(optimizer, "optimizer", optimizer) for optimizer in optimizers
        )
        self._known = {id(optimizer): optimizer for optimizer in inside}
        self._num_named: dict[int, int] = {}
        """By `id` of the optimizer: how many parameters had states at the last look."""
        self._owners = owners
        self._ledger = ledger
        self._log = log
        self._stack = stack
        self._num_steps = 0

    @property
    def num_optimizers(self) -> int:
        return len(self._known)

    def assign_all(self) -> None:
        """Name the states that are alive."""
        for optimizer in tuple(self._known.values()):
            self._name_states(optimizer)

    def begin(self, optimizer: Any) -> None:
        if id(optimizer) not in self._known:
            self._known[id(optimizer)] = optimizer
            self._name_states(optimizer)
        self._log.mark(STATE["before_optimizer"], -1, self._num_steps, False)
        self._stack.begin_optimizer()

    def end(self, optimizer: Any) -> None:
        self._stack.end_optimizer()
        if len(optimizer.state) != self._num_named.get(id(optimizer)):
            self._name_states(optimizer)
        self._log.mark(STATE["after_optimizer"], -1, self._num_steps, False)
        self._num_steps += 1

    def _name_states(self, optimizer: Any) -> None:
        states = getattr(optimizer, "state", {})
        for parameter, state in states.items():
            owner = self._owners.get(id(parameter), -1)
            for tensor in tensors_in(state):
                self._ledger.assign(tensor, _OPTIMIZER, owner)
        self._num_named[id(optimizer)] = len(states)
