"""Hooks on the tensors of module calls: where each call's backward begins and ends.

They hold a `Link` and numbers, never a tensor or a node, so they keep no graph alive.
A graph may outlive the window: then the link is cut, and they do nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.modules.ledger import graph_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.modules.watching.stack import ModuleStack


class Link:
    """What hooks hold that outlive the window: cut, they do nothing."""

    __slots__ = ("stack",)

    def __init__(self) -> None:
        self.stack: ModuleStack | None = None


def hook(tensor: Any, function: Callable[[Any], None]) -> None:
    """Call a function when a tensor's gradient is there."""
    tensor.register_hook(function)


class BackwardCall:
    """The backward of one module call, known by the gradients of its tensors."""

    __slots__ = ("expected", "index", "link", "num_graded", "number", "seen", "task")

    def __init__(self, link: Link, index: int, number: int, expected: int) -> None:
        self.link = link
        self.index = index
        self.number = number
        self.expected = expected
        self.num_graded = 0
        self.task = -1

    def begin(self, _gradient: Any) -> None:
        """An output's gradient is there; of several, the first counts."""
        stack = self.link.stack
        if stack is None or self.task == graph_task():
            return
        try:
            stack.output_graded(self)
        except Exception as error:  # noqa: BLE001  # training goes on
            stack.failed(error)

    def end(self, _gradient: Any) -> None:
        """An input's gradient is there; of several, the last counts."""
        stack = self.link.stack
        if stack is None:
            return
        self.num_graded += 1
        if self.num_graded == self.expected:
            try:
                stack.inputs_graded(self)
            except Exception as error:  # noqa: BLE001  # as above
                stack.failed(error)
