"""When the backward of a module begins and ends, without touching its tensors.

torch's own full backward hooks put an identity around inputs and outputs, and a model
that changes those in place then fails. Here tensor hooks on the outputs say that the
backward begins, and tensor hooks on the inputs, or the end of the whole backward, that
it is over. A gradient is the tensor's whole one: what other users of the same input
contributed is in it, and the module's backward counts as over when all have. Of a tensor
that is the output of one module and the input of another, both are told at once, the
former first.

Nothing here refers to a tensor or to a node of autograd's graph: the graph holds these
objects and takes them with it.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from collector.tracker.tensors import tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable

    Before = Callable[[Any, tuple[Any, ...]], None]
    After = Callable[[Any, tuple[Any, ...], tuple[Any, ...]], None]


def watch_backward(
    module: Any, inputs: Any, outputs: Any, before: Before, after: After
) -> None:
    """Call `before(module, grad_outputs)` and `after(module, grad_inputs, grad_outputs)`.

    To be asked after each forward; does nothing where no gradient is wanted. A gradient
    that never comes is None.
    """
    ends = _inner(outputs)
    if not ends:
        return
    starts = _inner(inputs)
    one = _Backward(module, len(ends), len(starts), before, after)
    for index, tensor in enumerate(ends):
        _register(tensor, one.output, index)
    for index, tensor in enumerate(starts):
        _register(tensor, one.input, index)


def _register(
    tensor: torch.Tensor, tell: Callable[[int, Any], None], index: int
) -> None:
    tensor.register_hook(_Arrival(tell, index))  # type: ignore[no-untyped-call]


def _inner(value: Any) -> list[torch.Tensor]:
    """Tensors inside the graph: a hook on a leaf would outlive it."""
    return [tensor for tensor in tensors_in(value) if tensor.grad_fn is not None]


class _Arrival:
    """A tensor hook: its gradient is there."""

    __slots__ = ("_index", "_tell")

    def __init__(self, tell: Callable[[int, Any], None], index: int) -> None:
        self._tell = tell
        self._index = index

    def __call__(self, grad: Any) -> None:
        self._tell(self._index, grad)


class _Backward:
    """The backward of one forward; begins anew where the graph is used again."""

    def __init__(
        self, module: Any, num_ends: int, num_starts: int, before: Before, after: After
    ) -> None:
        self._module = weakref.ref(module)
        self._before = before
        self._after = after
        self._no_ends = (None,) * num_ends
        self._no_starts = (None,) * num_starts
        self._reset()

    def _reset(self) -> None:
        self._grad_outputs: list[Any] = list(self._no_ends)
        self._grad_inputs: list[Any] = list(self._no_starts)
        self._missing_outputs = len(self._no_ends)
        self._missing_inputs = len(self._no_starts)
        self._begun = self._over = self._queued = False

    def output(self, index: int, grad: Any) -> None:
        """The gradient of an output has come."""
        if self._over:
            self._reset()
        if not self._queued:
            self._queued = True
            # The last word, where gradients of inputs never come.
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)  # noqa: SLF001
        self._grad_outputs[index] = grad
        self._missing_outputs -= 1
        if self._missing_outputs <= 0:
            self._begin()

    def input(self, index: int, grad: Any) -> None:
        """The gradient of an input has come."""
        if self._over or not self._queued:  # from others alone: no output had a part
            return
        self._grad_inputs[index] = grad
        self._missing_inputs -= 1
        if self._missing_inputs <= 0:
            self._finish()

    def _begin(self) -> None:
        module = self._module()
        if not self._begun and module is not None:
            self._begun = True
            self._before(module, tuple(self._grad_outputs))

    def _finish(self) -> None:
        if self._over:
            return
        self._begin()  # some outputs had no part in the loss
        self._over = True
        grads = tuple(self._grad_inputs), tuple(self._grad_outputs)
        self._grad_inputs, self._grad_outputs = [], []
        module = self._module()
        if module is not None:
            self._after(module, *grads)
