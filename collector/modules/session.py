"""Everything that is installed while at least one tracked window is open.

One session serves all windows that overlap: they share its log, and each capture is the
part of it between the window's beginning and end, after what was alive at its start.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import torch

from memboard.collector.core.source import Unavailable
from memboard.collector.format.sizes import counted
from memboard.collector.hooks import torch_calls
from memboard.collector.modules.dispatch import StorageWatch, remove
from memboard.collector.modules.fsdp import ShardingWatch
from memboard.collector.modules.ledger import Ledger
from memboard.collector.modules.log import CATEGORY, EventLog
from memboard.collector.modules.parameters import (
    ActivationGradients,
    OptimizerWatch,
    ParameterWatch,
)
from memboard.collector.modules.stack import ModuleStack
from memboard.collector.modules.tensors import tensors_in
from memboard.collector.modules.tree import ModuleTree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

CUDA_ROUNDING_BYTES: Final = 512
"""Granularity to which CUDA's caching allocator rounds requests up."""

_LISTENED: Final = (
    torch_calls.BACKWARD,
    torch_calls.GRAD,
    torch_calls.OPTIMIZER,
    torch_calls.RESIZE,
)
_INPUT: Final = CATEGORY["input"]
_MADE_BEFORE: Final = frozenset(
    map(CATEGORY.__getitem__, ("activation", "temp", "activation_grad"))
)
"""Categories of inputs that were made inside the window."""


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

    def __init__(self, root: nn.Module, optimizers: Iterable[Any], inputs: Any) -> None:
        """`inputs`: the step's inputs, where the user names them."""
        self.failure: BaseException | None = None
        self.inputs = "none"
        self.log = EventLog()
        self.tree = ModuleTree(root)
        self.ledger = Ledger(self.log, rounding_bytes)
        self.stack = ModuleStack(
            self.tree,
            self.ledger,
            self.log,
            entered=self._entered,
            made=self._made,
            failed=self._failed,
        )
        self._watch = StorageWatch(self.ledger, self.stack.link)
        self.sharding = ShardingWatch(
            self.tree, self.ledger, self.log, self.stack, self._watch
        )
        self.parameters = ParameterWatch(
            self.tree, self.ledger, self.sharding, self.stack.link
        )
        self.gradients = ActivationGradients(self.ledger, self.stack.link)
        self.optimizers = OptimizerWatch(
            optimizers, self.parameters.owners, self.ledger, self.log, self.stack
        )
        self.own_bytes: tuple[list[int], list[int]] = ([], [])
        """Bytes of each module's own parameters and buffers."""
        self._stance = _EagerStance()
        self._given = inputs

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
        self.stack.lazy = self.parameters.lazy
        self.stack.install()
        self.sharding.install()
        self.parameters.install()
        torch_calls.listen(self, _LISTENED)
        self._watch.enter()

    def stop(self) -> None:
        """Leave model, optimizers and torch as they were, as far as that goes."""
        self._watch.ledger = None
        remove(self._watch)
        self._stance.leave()
        torch_calls.leave(self)
        self.stack.remove()
        self.sharding.remove()
        self.parameters.remove()
        self.ledger.release()

    def take_inputs(self, inputs: Any) -> None:
        """The step's inputs, by the user's own word."""
        self.inputs = "given"
        self._name_inputs(inputs)

    def reasons(self) -> list[str]:
        """Why the log may say less than it should, in words."""
        reasons = []
        if self.failure is not None:
            reasons.append(
                f"tracking failed: {type(self.failure).__name__}: {self.failure}"
            )
        if self.log.num_dropped:
            reasons.append(
                f"not counted, as the log was full: {counted(self.log.num_dropped, 'storage')}"
            )
        if self.ledger.num_unreadable:
            reasons.append(
                "not counted, as torch does not show their storage:"
                f" {counted(self.ledger.num_unreadable, 'tensor')}"
            )
        if self.stack.without_hooks:
            names = ", ".join(sorted(set(self.stack.without_hooks)))
            reasons.append(
                f"the calls of {counted(len(self.stack.without_hooks), 'module')} could not be"
                f" followed, as a {names} takes no hooks"
            )
        if self.stack.num_unhooked:
            reasons.append(
                f"the backward of {counted(self.stack.num_unhooked, 'module call')} could not"
                " be followed (torch.func)"
            )
        if not self.optimizers.num_optimizers:
            reasons.append(
                "no optimizer was attached and none stepped: optimizer states are not"
                " counted"
            )
        return reasons

    # As a listener of torch's calls.

    def begin(self, part: str, _name: str, args: tuple[Any, ...], /) -> Any:
        """An optimizer steps, a backward begins, or a storage is resized, as FSDP does."""
        if part in (torch_calls.BACKWARD, torch_calls.GRAD):
            self.stack.link.call(self.gradients.follow, args[:1])
            return None
        if part == torch_calls.OPTIMIZER:
            self.stack.link.call(self.optimizers.begin, args[0])
        return part, args[0]

    def end(self, begun: Any, failed: bool, /) -> None:
        part, subject = begun
        if part == torch_calls.OPTIMIZER:
            end = self.stack.end_optimizer if failed else self.optimizers.end
            self.stack.link.call(end, *(() if failed else (subject,)))
        elif not failed:
            self.stack.link.call(self.ledger.resized, subject)

    def after_fork(self) -> bool:
        """Note nothing more: the log is the parent's."""
        self._cut()
        self.ledger.release()
        return False

    # Behind these.

    def _entered(self, inputs: Any) -> None:
        if self.inputs != "given" and self._name_inputs(inputs):
            self.inputs = "forward"

    def _made(self, index: int) -> None:
        self.parameters.assign_all(index)
        self.parameters.install(index)
        self.own_bytes = self.parameters.own_bytes(len(self.tree))

    def _name_inputs(self, inputs: Any) -> bool:
        has_inputs = False
        for tensor in tensors_in(inputs):
            self.ledger.assign(tensor, _INPUT, -1, only=_MADE_BEFORE)
            has_inputs = True
        return has_inputs

    def _failed(self, error: BaseException) -> None:
        """Note nothing more; what is installed stays, idle, until the window ends."""
        if self.failure is None:
            self.failure = error
        self._cut()

    def _cut(self) -> None:
        self.stack.cut()
        self._watch.ledger = None


class _EagerStance:
    """The compiler told to run everything eagerly, and told otherwise again.

    Below a dispatch mode torch runs the Python code instead of the compiled one, and from
    then on for ever: a compiled function that is called below any mode is marked to be
    skipped, and later steps would stay eager. This stance marks nothing. What is tracked
    is the eager step, an estimate of the compiled one.
    """

    def __init__(self) -> None:
        self._guard: Any = None

    def take(self) -> None:
        """Run eagerly from now on.

        Raises:
            Unavailable: compiled code is running on this thread.
        """
        try:
            self._guard = torch.compiler.set_stance("force_eager")
        except RuntimeError as error:
            raise Unavailable(
                f"modules cannot be tracked from inside compiled code ({error})",
                "Begin the tracked call outside of what torch.compile compiles.",
            ) from error

    def leave(self) -> None:
        """Go back to what was before, unless the user has chosen since."""
        guard, self._guard = self._guard, None
        if guard is None:
            return
        from torch._dynamo import eval_frame

        if getattr(eval_frame, "_stance", guard.stance) is not guard.stance:
            return
        try:
            guard.__exit__(None, None, None)
        except RuntimeError:  # compiled code is running: it goes on compiled next time
            eval_frame._stance = guard.prev  # noqa: SLF001
