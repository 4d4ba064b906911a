"""Everything that is installed while at least one tracked window is open.

One session serves all windows that overlap: they share its log, and each capture is the
part of it between the window's beginning and end, after what was alive at its start.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import TYPE_CHECKING, Any, Final

from collector.hooks.module_hooks import HooksOn
from collector.modules.ledger import Ledger
from collector.modules.log import CATEGORY, EventLog
from collector.modules.parameters import OptimizerWatch, ParameterWatch
from collector.modules.root import RootHook, entries
from collector.modules.tensors import tensors_in
from collector.modules.tree import ModuleTree
from collector.modules.watching import resizing
from collector.modules.watching.compiled import EagerStance
from collector.modules.watching.dispatch import StorageWatch, remove
from collector.modules.watching.fsdp import ShardingWatch
from collector.modules.watching.stack import ModuleStack

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch
    from torch import nn

CUDA_ROUNDING_BYTES: Final = 512
"""What CUDA's caching allocator rounds requests up to."""

_INPUT: Final = CATEGORY["input"]
_MADE_BEFORE: Final = frozenset({CATEGORY["activation"], CATEGORY["temp"]})
"""Categories of inputs that were made inside the window."""

_sessions: Final = weakref.WeakSet["Session"]()


def rounding_bytes(device_type: str) -> int:
    """What the device's allocator rounds a request up to."""
    if (
        device_type == "cuda"
        and os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") == "0"
    ):
        return CUDA_ROUNDING_BYTES
    return 1


class Session:
    """One tracked root, from the first window's beginning to the last one's end."""

    def __init__(self, root: nn.Module, optimizers: Iterable[Any], given: Any) -> None:
        """`given`: the step's inputs, where the user names them."""
        self.failure: BaseException | None = None
        self.inputs = "none"
        self.log = EventLog()
        self.tree = ModuleTree(root)
        self.ledger = Ledger(self.log, rounding_bytes)
        self.stack = ModuleStack(self.tree, self.ledger, self.log, self._failed)
        self._watch = StorageWatch(self.ledger, self._failed)
        self.sharding = ShardingWatch(
            self.tree, self.ledger, self.log, self.stack, self._watch
        )
        link = self.stack.link
        self.parameters = ParameterWatch(self.tree, self.ledger, self.sharding, link)
        self.optimizers = OptimizerWatch(
            optimizers, self.parameters.owners, self.ledger, self.log, self.stack
        )
        self.own_bytes: tuple[list[int], list[int]] = ([], [])
        """Bytes of each module's own parameters and buffers."""
        self._stance = EagerStance()
        self._given = given
        self._root_hooks: list[Any] = []

    def start(self) -> None:
        """Name what is alive, and follow everything from now on."""
        self._stance.take()
        self.own_bytes = self.parameters.own_bytes(len(self.tree))
        self.parameters.assign_all()
        self.sharding.assign_all()
        self.optimizers.assign_all()
        if self._given is not None:
            self.take_inputs(self._given)
            self._given = None
        _sessions.add(self)
        self.stack.entries = frozenset(entries(self.tree))
        for index in self.stack.entries:
            hook = RootHook(functools.partial(self._enter_root, index))
            root = self.tree.modules[index]
            self._root_hooks.append(
                HooksOn(root, before=hook, kwargs_before=True, prepend=True)
            )
        self.stack.install()
        self.sharding.install()
        self.parameters.install()
        self.optimizers.install()
        resizing.listen(self._resized)
        self._watch.enter()

    def stop(self) -> None:
        """Leave model, optimizers and torch as they were, as far as that goes."""
        _sessions.discard(self)
        self._watch.ledger = None
        remove(self._watch)
        self._stance.leave()
        resizing.leave(self._resized)
        self.stack.remove()
        self.sharding.remove()
        self.parameters.remove()
        self.optimizers.remove()
        while self._root_hooks:
            self._root_hooks.pop().remove()
        self.ledger.forget()

    def take_inputs(self, inputs: Any) -> None:
        """The step's inputs, by the user's own word."""
        self.inputs = "given"
        self._name_inputs(inputs)

    def abandon(self) -> None:
        """In a forked child: note nothing more."""
        self.stack.link.stack = None
        self._watch.ledger = None
        self.ledger.forget()

    def reasons(self) -> list[str]:
        """Why the log may say less than it should, in words."""
        found = []
        if self.failure is not None:
            found.append(
                f"tracking failed: {type(self.failure).__name__}: {self.failure}"
            )
        if self.log.num_dropped:
            found.append(
                f"{self.log.num_dropped} storages came after the log was full and were"
                " not counted"
            )
        if self.ledger.num_unreadable:
            found.append(
                f"{self.ledger.num_unreadable} tensors have a storage that torch does"
                " not show and were not counted"
            )
        if self.stack.num_unhooked:
            found.append(
                f"the backward of {self.stack.num_unhooked} module calls could not be"
                " followed (torch.func)"
            )
        if not self.optimizers.num_optimizers:
            found.append(
                "no optimizer was attached and none stepped: optimizer states are not"
                " counted"
            )
        return found

    def _enter_root(self, index: int, inputs: Any) -> None:
        stack = self.stack.link.stack
        if stack is None:
            return
        try:
            if self.inputs != "given" and self._name_inputs(inputs):
                self.inputs = "forward"
            stack.enter(index)
        except Exception as error:  # noqa: BLE001  # training goes on
            stack.failed(error)

    def _name_inputs(self, inputs: Any) -> bool:
        found = False
        for tensor in tensors_in(inputs):
            self.ledger.assign(tensor, _INPUT, -1, only=_MADE_BEFORE)
            found = True
        return found

    def _resized(self, storage: torch.UntypedStorage) -> None:
        if self._watch.ledger is not None:
            self.stack.guard(lambda: self.ledger.resized(storage))

    def _failed(self, error: BaseException) -> None:
        """Note nothing more; what is installed stays, idle, until the window ends."""
        if self.failure is None:
            self.failure = error
        self.stack.link.stack = None
        self._watch.ledger = None


def _after_fork() -> None:
    for session in tuple(_sessions):
        session.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
