"""Functions of torch that every training calls, wrapped while somebody listens.

One wrapper per function serves all recorders of the process; with the last one the
functions are put back. A wrapper that somebody else has wrapped since stays, idle. What
the functions are given, return and raise is untouched, and torch.compile leaves the
wrappers alone, as it does the functions themselves.

What is imported only later is wrapped then: `install` may be called again at any time.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from collector.core.process_lock import ProcessLock
from collector.hooks.module_hooks import lifted
from collector.steps.compiled import compiles_anything, untraced

if TYPE_CHECKING:
    from collections.abc import Callable


class Listener(Protocol):
    """Who is told of parts of a step. Never raises."""

    def begin(self, part: str, name: str = "") -> Any:
        """A part begins on the calling thread; None: it is not noted.

        `name`: what to call it, where that is not the part.
        """

    def begin_batch(self, iterator: Any) -> Any:
        """As `begin`, of what an iterator of batches is asked for."""

    def end(self, begun: Any) -> None:
        """What `begin` returned has ended."""


class _Point(NamedTuple):
    module: str
    owner: str
    """A class in the module; empty: the module itself."""
    name: str
    part: str


_COLLECTIVES: Final = (
    *("all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all"),
    *("all_to_all_single", "barrier", "broadcast", "gather", "recv", "reduce"),
    *("reduce_scatter", "reduce_scatter_tensor", "scatter", "send"),
)
"""Of torch.distributed. What runs apart is waited for in `Work.wait`."""

POINTS: Final = (
    _Point("torch.autograd", "", "backward", "backward"),
    _Point("torch.optim.optimizer", "Optimizer", "zero_grad", "zero_grad"),
    _Point("torch", "", "save", "checkpoint"),
    _Point("torch.distributed.checkpoint", "", "save", "checkpoint"),
    _Point("torch.distributed.checkpoint", "", "async_save", "checkpoint"),
    _Point(
        "torch.utils.data.dataloader", "_BaseDataLoaderIter", "__next__", "dataloader"
    ),
    *(_Point("torch.distributed", "", name, "communication") for name in _COLLECTIVES),
    _Point("torch.distributed", "Work", "wait", "communication"),
    _Point("torch.jit._recursive", "", "create_script_module", "script"),
)

_OPTIMIZER: Final = "torch.optim.optimizer"

_listeners: tuple[Listener, ...] = ()
_wrapped: dict[_Point, tuple[Any, Any, Any]] = {}
"""By point: the owner, what was there, and what is there now."""
_handles: list[Any] = []
_lock: Final = ProcessLock()


def listen(listener: Listener) -> None:
    """Tell it from now on; the first one has the functions wrapped."""
    global _listeners  # noqa: PLW0603  # one for the process, as the functions are
    with _lock.now:
        _listeners = (*_listeners, listener)
    install()


def leave(listener: Listener) -> None:
    """Tell it no more; with the last one the functions are put back."""
    global _listeners  # noqa: PLW0603
    with _lock.now:
        _listeners = tuple(one for one in _listeners if one is not listener)
        under_way = _steps.__dict__.get("under_way", {})
        for optimizer, begun in tuple(under_way.items()):  # steps that raised
            _end([pair for pair in begun if pair[0] is listener])
            under_way[optimizer] = [pair for pair in begun if pair[0] is not listener]
        if not _listeners:
            _uninstall()


def install() -> None:
    """Wrap what is imported by now; takes a microsecond where there is nothing new."""
    if len(_wrapped) == len(POINTS) and _handles:
        return
    with _lock.now:
        if not _listeners:
            return
        for point in POINTS:
            if point not in _wrapped and not _is_compiled_in(point):
                _wrap(point)
        optimizers = sys.modules.get(_OPTIMIZER)
        before = getattr(optimizers, "register_optimizer_step_pre_hook", None)
        after = getattr(optimizers, "register_optimizer_step_post_hook", None)
        if not _handles and before is not None and after is not None:
            _handles.extend((before(_before_step), after(_after_step)))


def _is_compiled_in(point: _Point) -> bool:
    """Whether compiled code may hold the function, and would be compiled anew."""
    return point.part == "communication" and compiles_anything()


def _wrap(point: _Point) -> None:
    owner: Any = sys.modules.get(point.module)
    if owner is not None and point.owner:
        owner = getattr(owner, point.owner, None)
    before = getattr(owner, point.name, None)
    if before is None:  # not imported, only half so, or another torch
        return
    make = _MAKERS.get(point.part)
    wrapper = _timed(point.part, before) if make is None else make(point.name, before)
    # As it stands there: what a class gives may be without its way to bind `self`.
    stands = vars(owner).get(point.name, before)
    # By this name it is pickled, and found: not all stands where it was defined.
    wrapper.__module__ = point.module
    wrapper.__qualname__ = f"{point.owner}.{point.name}".lstrip(".")
    setattr(owner, point.name, wrapper)
    _wrapped[point] = owner, stands, wrapper


def _uninstall() -> None:
    global _steps  # noqa: PLW0603
    for handle in _handles:
        handle.remove()
    _handles.clear()
    _steps = threading.local()  # steps that raised would hold their recorder
    for point, (owner, stood, wrapper) in tuple(_wrapped.items()):
        if vars(owner).get(point.name) is wrapper:
            setattr(owner, point.name, stood)
        del _wrapped[point]


def _timed(part: str, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def timed(*args: Any, **kwargs: Any) -> Any:
        begun = [(one, one.begin(part)) for one in _listeners]
        try:
            return before(*args, **kwargs)
        finally:
            _end(begun)

    return untraced(timed)


def _communicates(name: str, before: Callable[..., Any]) -> Callable[..., Any]:
    is_compiling = sys.modules["torch"].compiler.is_compiling

    # torch.compile has its own way with collectives: it must find the function itself.
    @functools.wraps(before)
    def timed(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return before(*args, **kwargs)
        begun = [(one, one.begin("communication", name)) for one in _listeners]
        try:
            return before(*args, **kwargs)
        finally:
            _end(begun)

    return timed


def _batches(_name: str, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def timed(iterator: Any) -> Any:
        begun = [(one, one.begin_batch(iterator)) for one in _listeners]
        try:
            return before(iterator)
        finally:
            _end(begun)

    return untraced(timed)


def _scripts(_name: str, before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def scripted(module: Any, *args: Any, **kwargs: Any) -> Any:
        with lifted(module):
            return before(module, *args, **kwargs)

    return scripted


def _end(begun: list[tuple[Listener, Any]]) -> None:
    for listener, one in begun:
        if one is not None:
            listener.end(one)


_MAKERS: Final = {
    "communication": _communicates,
    "dataloader": _batches,
    "script": _scripts,
}

# Optimizers have hooks for it: every class of them has a `step` of its own.

_steps = threading.local()
"""What began on this thread and has not ended, by optimizer: closures may nest them."""


def _before_step(optimizer: Any, *_: Any) -> None:
    if _is_compiling():
        return
    under_way: dict[int, Any] = _steps.__dict__.setdefault("under_way", {})
    failed = under_way.pop(id(optimizer), None)
    if failed is not None:  # it raised, of which no hook tells
        _end(failed)
    under_way[id(optimizer)] = [(one, one.begin("optimizer")) for one in _listeners]


def _after_step(optimizer: Any, *_: Any) -> None:
    if _is_compiling():
        return
    under_way: dict[int, Any] = _steps.__dict__.setdefault("under_way", {})
    begun = under_way.pop(id(optimizer), None)
    if begun is not None:
        _end(begun)


def _is_compiling() -> bool:
    import torch

    return torch.compiler.is_compiling()


def _after_fork() -> None:
    global _listeners  # noqa: PLW0603  # the recorders are the parent's
    _listeners = ()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
