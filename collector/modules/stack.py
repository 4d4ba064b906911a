"""Follows the active module, forward and backward, and the boundaries it crosses.

Forward: a stack, kept by hooks on the modules. Backward: the module whose output last got
its gradient; a hook on a module's outputs begins its backward, one on its inputs ends it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from torch.autograd import Variable

from memboard.collector.core.plain import PROGRAM_ENDS
from memboard.collector.hooks.modules import ModuleHooks
from memboard.collector.modules.ledger import graph_task
from memboard.collector.modules.log import CATEGORY, OWNER_SHIFT, STATE
from memboard.collector.modules.tensors import followed

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.modules.ledger import Ledger
    from memboard.collector.modules.log import EventLog
    from memboard.collector.modules.tree import ModuleTree

_ACTIVATION: Final = CATEGORY["activation"]
_TEMP: Final = CATEGORY["temp"]
_OPTIMIZER: Final = CATEGORY["optimizer"]

_BEFORE_FORWARD: Final = STATE["before_pre_forward"]
_AFTER_FORWARD: Final = STATE["after_post_forward"]
_BEFORE_BACKWARD: Final = STATE["before_pre_backward"]
_AFTER_BACKWARD: Final = STATE["after_post_backward"]
_BEFORE_RECOMPUTED: Final = STATE["pre_forward_ac"]
_AFTER_RECOMPUTED: Final = STATE["post_forward_ac"]


class Link:
    """Held by hooks that may outlive the window: cut, they do nothing.

    They hold it and numbers, never a tensor or a node, so they keep no graph alive.
    """

    __slots__ = ("stack",)

    def __init__(self) -> None:
        self.stack: ModuleStack | None = None

    def call(self, function: Callable[..., Any], *args: Any) -> None:
        """Call what must not stop training, unless the window is over."""
        stack = self.stack
        if stack is None:
            return
        try:
            function(*args)
        except PROGRAM_ENDS:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            stack.failed(error)


class BackwardCall:
    """The backward of one module call, known by the gradients of its tensors."""

    __slots__ = ("expected", "index", "link", "num_graded", "number", "task")

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
        if stack is not None and self.task != graph_task():
            self.link.call(stack.output_graded, self)

    def end(self, _gradient: Any) -> None:
        """An input's gradient is there; of several, the last counts."""
        stack = self.link.stack
        if stack is not None:
            self.num_graded += 1
            if self.num_graded == self.expected:
                self.link.call(stack.inputs_graded, self)


class ModuleStack:
    """The active modules of one tracked root."""

    def __init__(
        self,
        tree: ModuleTree,
        ledger: Ledger,
        log: EventLog,
        *,
        entered: Callable[[Any], None],
        made: Callable[[int], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """`entered` is given the inputs of a forward that begins a pass.

        `made` is told of the modules in `lazy` when their first forward has made them.
        """
        self.link = Link()
        self.entries = frozenset(tree.entries)
        self.sharded: frozenset[int] = frozenset()
        """Modules whose boundaries are marked by whoever shards them."""
        self.grouped: frozenset[int] = frozenset()
        """Those of them that share their sharding, and so have one backward in common."""
        self.lazy: frozenset[int] = frozenset()
        """Modules whose parameters have no memory before their first forward."""
        self.num_unhooked = 0
        """Module calls whose backward could not be followed."""
        self.without_hooks: list[str] = []
        """Classes of modules that take no hooks."""
        self.failed = failed
        self._entered = entered
        self._made = made
        self._tree = tree
        self._ledger = ledger
        self._log = log
        self._thread = threading.get_ident()
        self._active: list[int] = []
        self._calls: list[int] = []
        """By entry of `_active`: which call of the module it is."""
        self._num_calls = [0] * len(tree)
        self._num_recomputed = [0] * len(tree)
        self._recompute_depth = -1
        """Entry of `_active` where recomputing began; -1: not recomputing."""
        self._backward_owner = -1
        self._open: dict[BackwardCall, int] = {}
        """Backwards that have begun and not ended, with their graph task."""
        self._tasks: set[int] = set()
        self._optimizer: tuple[int, int] | None = None
        """Entries of `_active` and graph task when an optimizer's step began."""
        self._lent: int | None = None
        self._hooks = ModuleHooks(self, first=True)

    def install(self) -> None:
        """Follow the modules from now on."""
        self.link.stack = self
        for index, module in enumerate(self._tree.modules):
            try:
                self._hooks.add(index, module)
            except RuntimeError:  # noqa: PERF203  # a scripted module
                self.without_hooks.append(type(module).__name__)
        self._place()

    def cut(self) -> None:
        """Follow nothing more; hooks stay where they are, idle."""
        self.link.stack = None
        self._hooks.listener = None

    def remove(self) -> None:
        """Leave the modules as they were, and cut what graphs still hold."""
        self.cut()
        self._hooks.remove()
        self._open.clear()

    # As a listener of forwards.

    def before_forward(self, index: int, _module: Any, args: Any, kwargs: Any) -> None:
        if index in self.entries:
            self._entered((args, kwargs))
        in_backward = graph_task() != -1
        if not in_backward:
            if threading.get_ident() != self._thread:
                return
            if self._optimizer is None and (
                index == 0 or (index in self.entries and index in self._active)
            ):
                self._clear()  # what an exception left behind
            call = self._num_calls[index]
            self._num_calls[index] += 1
        else:
            call = self._num_recomputed[index]
            self._num_recomputed[index] += 1
        self._active.append(index)
        self._calls.append(call)
        if index not in self.sharded:
            if in_backward:
                self.begin_recompute(index)
            else:
                self._log.mark(_BEFORE_FORWARD, index, call, False)
        self._place()

    def after_forward(
        self, index: int, _module: Any, args: Any, kwargs: Any, outputs: Any
    ) -> None:
        """A module's forward has ended, or an exception has left it."""
        in_backward = graph_task() != -1
        if not in_backward and threading.get_ident() != self._thread:
            return
        if index in self.sharded and not in_backward:
            if index in self.grouped:
                self._follow_owner(index, outputs)
            return  # its parameters are still there: `leave_sharded` comes
        call = self._pop(index)
        if call < 0:
            return
        if index in self.lazy:
            self.lazy -= {index}
            self._made(index)
        if in_backward:
            self._log.mark(_AFTER_RECOMPUTED, index, call, True)
        else:
            self._log.mark(_AFTER_FORWARD, index, call, False)
            self._follow_backward(index, call, (args, kwargs), outputs)
        if len(self._active) <= self._recompute_depth:
            self._recompute_depth = -1
        self._place()

    def hook_failed(self, error: BaseException) -> None:
        self.failed(error)

    # What sharding and optimizers tell.

    def leave_sharded(self, index: int) -> None:
        """A sharded module has ended its forward and freed its parameters."""
        self._pop(index)
        self._place()

    def begin_recompute(self, index: int) -> None:
        """The innermost module computes its forward again, inside backward."""
        if self._recompute_depth < 0:
            self._recompute_depth = len(self._active) - 1
            self._place()
        call = self._calls[-1] if self._calls else 0
        self._log.mark(_BEFORE_RECOMPUTED, index, call, True)

    def call_of(self, index: int) -> int:
        """Number of the innermost call under way of a module."""
        for entry in range(len(self._active) - 1, -1, -1):
            if self._active[entry] == index:
                return self._calls[entry]
        return 0

    def begin_backward(self, index: int) -> None:
        """What is allocated from now on is for this module's gradients.

        Where a module returns what one below it returned, the inner one has begun
        already, and comes first.
        """
        if not index <= self._backward_owner <= self._tree.last[index]:
            self._backward_owner = index
            self._place()

    def end_backward(self, index: int) -> None:
        """Its gradients are there: what follows is its parent's, or another's."""
        if index <= self._backward_owner <= self._tree.last[index]:
            self._backward_owner = self._tree.parents[index]
            self._place()

    def lend(self, owner: int | None) -> None:
        """What is allocated until the next call is this module's; None: no longer."""
        self._lent = owner
        self._place()

    def begin_optimizer(self) -> None:
        self._optimizer = (len(self._active), graph_task())
        self._place()

    def end_optimizer(self) -> None:
        self._optimizer = None
        self._place()

    # What gradients tell.

    def output_graded(self, call: BackwardCall) -> None:
        """The first of a module's outputs has got its gradient."""
        task = graph_task()
        if task not in self._tasks:
            self._tasks.add(task)
            link = self.link

            def ended() -> None:
                stack = link.stack
                if stack is not None:
                    link.call(stack.graph_ended, task)

            Variable._execution_engine.queue_callback(ended)  # noqa: SLF001
        call.task = task
        call.num_graded = 0
        self._open[call] = task
        self._log.mark(_BEFORE_BACKWARD, call.index, call.number, True)
        self.begin_backward(call.index)

    def inputs_graded(self, call: BackwardCall) -> None:
        """All of a module's inputs have got their gradients."""
        if self._open.pop(call, None) is not None:
            self._log.mark(_AFTER_BACKWARD, call.index, call.number, True)
            self.end_backward(call.index)

    def graph_ended(self, task: int) -> None:
        """A backward is over: so are those whose inputs need no gradient."""
        self._tasks.discard(task)
        for call in [c for c, t in reversed(self._open.items()) if t == task]:
            self.inputs_graded(call)
        if not self._tasks:
            self._recompute_depth = -1
            self._backward_owner = -1
            self._place()

    def _follow_backward(
        self, index: int, number: int, inputs: Any, outputs: Any
    ) -> None:
        results = followed(outputs)
        if not results:
            return
        sources = followed(inputs)
        call = BackwardCall(self.link, index, number, len(sources))
        if self._hook_gradients(results, call.begin):
            self._hook_gradients(sources, call.end)

    def _follow_owner(self, index: int, outputs: Any) -> None:
        link = self.link

        def begin(_gradient: Any) -> None:
            stack = link.stack
            if stack is not None:
                link.call(stack.begin_backward, index)

        self._hook_gradients(followed(outputs), begin)

    def _hook_gradients(self, tensors: Any, function: Callable[[Any], None]) -> bool:
        try:
            for tensor in tensors:
                tensor.register_hook(function)
        except RuntimeError:  # inside torch.func a tensor takes no hook
            self.num_unhooked += 1
            return False
        return True

    # Behind these.

    def _pop(self, index: int) -> int:
        """Leave a module and what an exception left inside it; -1: it was not active."""
        if index not in self._active:
            return -1
        while True:
            call = self._calls.pop()
            if self._active.pop() == index:
                return call

    def _clear(self) -> None:
        self._active.clear()
        self._calls.clear()
        self._recompute_depth = -1
        self._backward_owner = -1

    def _place(self) -> None:
        """Tell the ledger what new storages are for."""
        ledger = self._ledger
        owner = self._active[-1] if self._active else -1
        in_backward = self._backward_owner
        if self._lent is not None:
            owner = in_backward = self._lent
        activation = ledger.forward_place = owner + 1 << OWNER_SHIFT | _ACTIVATION
        if self._recompute_depth >= 0:
            ledger.backward_place = activation
        else:
            ledger.backward_place = in_backward + 1 << OWNER_SHIFT | _TEMP
        if self._optimizer is not None:
            depth, task = self._optimizer
            if task != -1:
                ledger.backward_place = _OPTIMIZER
            elif depth == len(self._active):
                ledger.forward_place = _OPTIMIZER
