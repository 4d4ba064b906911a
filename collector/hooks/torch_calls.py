"""Functions of torch that every training calls, and what listens to them.

A function is wrapped while anybody listens to its part; one wrapper serves all listeners
of the process, and with the last one the function is put back. A wrapper that somebody
else has wrapped since stays, idle, until it can be taken off. What the functions are
given, return and raise is untouched, and torch.compile leaves the wrappers alone, as it
does the functions themselves.

What is imported only later is wrapped then: `install` may be called again at any time.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from memboard.collector.core.compiling import compiles_anything, untraced
from memboard.collector.core.patches import Patches
from memboard.collector.process import fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Listener(Protocol):
    """Is told of calls, on the thread that makes them. Never raises."""

    def begin(self, part: str, function: str, args: tuple[Any, ...], /) -> Any:
        """A call of the function begins; None: its end is of no interest.

        Of an optimizer's step `args` is the optimizer alone.
        """

    def end(self, begun: Any, failed: bool, /) -> None:
        """The call for which `begin` returned `begun` is over."""

    def after_fork(self) -> bool:
        """This is a forked child: whether it goes on listening there."""


BACKWARD: Final = "backward"
GRAD: Final = "grad"
OPTIMIZER: Final = "optimizer"
COMMUNICATION: Final = "communication"
RESIZE: Final = "resize"
SAVED_HOOKS_OFF: Final = "saved hooks off"
SAVED_HOOKS_ON: Final = "saved hooks on"
SCRIPT: Final = "script"


class _Point(NamedTuple):
    part: str
    module: str
    owner: str
    """A class in the module; empty: the module itself."""
    name: str


_COLLECTIVES: Final = (
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "send",
)
"""Of torch.distributed. What runs apart is waited for in `Work.wait`."""

_SAVED: Final = "_saved_tensors_hooks_"

POINTS: Final = (
    _Point(BACKWARD, "torch.autograd", "", "backward"),
    _Point(GRAD, "torch.autograd", "", "grad"),
    _Point("zero_grad", "torch.optim.optimizer", "Optimizer", "zero_grad"),
    _Point("checkpoint", "torch", "", "save"),
    _Point("checkpoint", "torch.distributed.checkpoint", "", "save"),
    _Point("checkpoint", "torch.distributed.checkpoint", "", "async_save"),
    _Point(
        "dataloader", "torch.utils.data.dataloader", "_BaseDataLoaderIter", "__next__"
    ),
    *(_Point(COMMUNICATION, "torch.distributed", "", name) for name in _COLLECTIVES),
    _Point(COMMUNICATION, "torch.distributed", "Work", "wait"),
    _Point(SCRIPT, "torch.jit._recursive", "", "create_script_module"),
    _Point(RESIZE, "torch", "UntypedStorage", "resize_"),
    _Point(SAVED_HOOKS_OFF, "torch._C._autograd", "", f"{_SAVED}disable"),
    _Point(SAVED_HOOKS_ON, "torch._C._autograd", "", f"{_SAVED}enable"),
)

_TRACED: Final = frozenset(
    (COMMUNICATION, RESIZE, SAVED_HOOKS_OFF, SAVED_HOOKS_ON, SCRIPT)
)
"""torch.compile has its own way with these: it must find the function itself."""

_listeners: dict[str, tuple[Listener, ...]] = {}
_wrapped: Final[dict[_Point, Patches]] = {}
_handles: Final[list[Any]] = []
"""Of torch's own hooks for optimizers."""
_lock: Final = fork.ProcessLock()


def listen(listener: Listener, parts: Iterable[str]) -> None:
    """Tell it of calls of these parts from now on."""
    with _lock.now:
        for part in parts:
            _listeners[part] = (*listeners(part), listener)
    install()


def leave(listener: Listener) -> None:
    """Tell it no more, and put back what nobody else listens to."""
    with _lock.now:
        _keep(lambda other: other is not listener)
        under_way: dict[int, Any] = _steps.__dict__.get("under_way", {})
        for optimizer, begun in tuple(under_way.items()):  # steps that raised
            _end([pair for pair in begun if pair[0] is listener], failed=True)
            under_way[optimizer] = [pair for pair in begun if pair[0] is not listener]
        _uninstall()


def _keep(stays: Callable[[Listener], bool]) -> None:
    global _listeners  # noqa: PLW0603  # replaced, as calls read it on any thread
    kept = {part: tuple(filter(stays, them)) for part, them in _listeners.items()}
    _listeners = {part: them for part, them in kept.items() if them}


def listeners(part: str) -> tuple[Listener, ...]:
    return _listeners.get(part, ())


def install() -> None:
    """Wrap what is imported by now; takes microseconds where there is nothing new."""
    with _lock.now:
        for point in POINTS:
            if point not in _wrapped and listeners(point.part):
                _wrap(point)
        if listeners(OPTIMIZER) and not _handles:
            optimizers = sys.modules.get("torch.optim.optimizer")
            before = getattr(optimizers, "register_optimizer_step_pre_hook", None)
            after = getattr(optimizers, "register_optimizer_step_post_hook", None)
            if before is not None and after is not None:
                _handles.extend((before(_before_step), after(_after_step)))


def _wrap(point: _Point) -> None:
    if point.part == COMMUNICATION and compiles_anything():
        return  # compiled code may hold the function, and would be compiled anew
    owner: Any = sys.modules.get(point.module)
    if owner is not None and point.owner:
        owner = getattr(owner, point.owner, None)
    before = getattr(owner, point.name, None)
    if before is None:  # not imported, only half so, or another torch
        return
    wrapper = _wrapper(point, before)
    # By this name it is pickled, and found: not all stands where it was defined.
    wrapper.__module__ = point.module
    wrapper.__qualname__ = f"{point.owner}.{point.name}".lstrip(".")
    patches = _wrapped[point] = Patches()
    patches.attribute(owner, point.name, wrapper)


def _uninstall() -> None:
    global _steps  # noqa: PLW0603  # one for the process, as the functions are
    for point, patches in tuple(_wrapped.items()):
        if not listeners(point.part) and patches.remove():
            del _wrapped[point]
    if _handles and not listeners(OPTIMIZER):
        for handle in _handles:
            handle.remove()
        _handles.clear()
        _steps = threading.local()  # steps that raised would hold their recorder


def _wrapper(point: _Point, before: Callable[..., Any]) -> Callable[..., Any]:
    part, function, is_traced = point.part, point.name, point.part in _TRACED

    @functools.wraps(before)
    def called(*args: Any, **kwargs: Any) -> Any:
        if is_traced and _is_compiling():
            return before(*args, **kwargs)
        begun = [
            (listener, listener.begin(part, function, args))
            for listener in listeners(part)
        ]
        failed = True
        try:
            result = before(*args, **kwargs)
            failed = False
        finally:
            _end(begun, failed=failed)
        return result

    return called if is_traced else untraced(called)


def _end(begun: list[tuple[Listener, Any]], *, failed: bool) -> None:
    for listener, state in begun:
        if state is not None:
            listener.end(state, failed)


def _is_compiling() -> bool:
    is_compiling: bool = sys.modules["torch"].compiler.is_compiling()
    return is_compiling


# Optimizers have hooks for it: every class of them has a `step` of its own.

_steps = threading.local()
"""Steps begun on this thread and not ended, by optimizer: closures may nest them."""


def _before_step(optimizer: Any, *_: Any) -> None:
    if _is_compiling():
        return
    under_way: dict[int, Any] = _steps.__dict__.setdefault("under_way", {})
    _end(under_way.pop(id(optimizer), ()), failed=True)  # it raised, unseen by hooks
    under_way[id(optimizer)] = [
        (listener, listener.begin(OPTIMIZER, "step", (optimizer,)))
        for listener in listeners(OPTIMIZER)
    ]


def _after_step(optimizer: Any, *_: Any) -> None:
    if _is_compiling():
        return
    under_way: dict[int, Any] = _steps.__dict__.setdefault("under_way", {})
    _end(under_way.pop(id(optimizer), ()), failed=False)


class _Fork:
    def after_fork(self) -> None:
        """Keep those that say so; others are the parent's."""
        every = {
            id(listener): listener for them in _listeners.values() for listener in them
        }
        stays = {key for key, listener in every.items() if listener.after_fork()}
        _keep(lambda listener: id(listener) in stays)


_fork: Final = _Fork()
fork.watch(_fork)
