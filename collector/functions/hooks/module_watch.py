"""The forward of every module of the attached model, told to whoever listens.

Hooks are on the modules only while somebody listens. They do nothing that training could
notice: what they return is nothing, what fails in them is kept for its listener, and
torch.compile traces through them as through nothing. A copy or a pickle of the model that
is made meanwhile has none of them.

Modules that torch.compile has compiled are left alone, and everything below them: hooks
would not be called there, and would make it compile anew.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, Final, Protocol

from torch.compiler import is_compiling

from collector.functions.hooks.forward_log import FOLD_AT
from collector.hooks.module_hooks import HooksOn, OwnHook
from collector.steps.compiled import compiles_anything

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.functions.hooks.forward_log import ForwardLog

_UNCOMPILED: Final = "Profile some steps without torch.compile to see modules."

OUTSIDE: Final = -1
"""Stands for a module where there is none."""


class Listener(Protocol):
    """Who is told of forwards. What it raises reaches `failed`, and then it hears no more."""

    def before_forward(self, index: int, module: Any, args: Any, depth: int) -> None:
        """`index` into the watch's modules; `depth` 1: no module is around it."""

    def after_forward(
        self, index: int, module: Any, inputs: Any, outputs: Any, depth: int
    ) -> None:
        """`inputs`: args and kwargs; `outputs` None where it raised."""

    def failed(self, error: BaseException) -> None:
        """One of the two has raised."""


class Here:
    """One thread, as the watch sees it."""

    __slots__ = ("__weakref__", "saved_bytes", "stack")

    def __init__(self) -> None:
        self.stack: list[int] = [OUTSIDE]
        """The modules that run, the innermost last; below them all, `OUTSIDE`."""
        self.saved_bytes = 0
        """MemProfiler's count of saved bytes, while any are counted."""


class _Running(threading.local):
    def __init__(self, threads: weakref.WeakSet[Here]) -> None:
        self.here = Here()
        threads.add(self.here)


class ModuleWatch:
    """The modules of a model by index, and which one runs on each thread.

    Who only wants to know which module runs holds the watch; a listener is told more.
    """

    def __init__(self) -> None:
        self.paths: tuple[str, ...] = ()
        """As `named_modules` has them; the root is empty."""
        self.types: tuple[str, ...] = ()
        self.not_seen = self.remedy = ""
        """Why modules are not seen, where some are not, and what to do."""
        self._model: weakref.ref[Any] | None = None
        self._modules: tuple[weakref.ref[Any], ...] = ()
        self.listeners: tuple[Listener, ...] = ()
        self.log: ForwardLog | None = None
        """Where both sides of each forward are written down, while anybody wants that:
        the listener that every training step has, without a call for it."""
        self._threads: weakref.WeakSet[Here] = weakref.WeakSet()
        self.running = _Running(self._threads)
        self._holders: tuple[object, ...] = ()
        """Listeners too."""
        self._handles: list[Any] = []

    def attach(self, model: Any) -> None:
        """Watch this model from now on; one without modules is none."""
        known = None if self._model is None else self._model()
        if model is known:
            return
        self._model = None
        if callable(getattr(model, "named_modules", None)):
            self._model = weakref.ref(model)
        if self._holders:
            self._remove()
            self._install()

    def hold(self, holder: object) -> None:
        """Watch from now on; hooks are put on the modules for the first one."""
        if holder not in self._holders:
            if not self._holders:
                self._install()
            self._holders += (holder,)

    def listen(self, listener: Listener) -> None:
        """Hold, and tell it from now on."""
        self.hold(listener)
        if listener not in self.listeners:
            self.listeners += (listener,)

    def leave(self, holder: object) -> None:
        """Tell it no more; hooks leave the modules with the last one."""
        self.listeners = tuple(one for one in self.listeners if one is not holder)
        left = tuple(one for one in self._holders if one is not holder)
        if self._holders and not left:
            self._remove()
        self._holders = left

    @property
    def sees_any(self) -> bool:
        """Whether there are hooks on any module."""
        return bool(self._handles)

    def modules(self) -> Iterator[tuple[int, Any]]:
        """The modules that are still there, with their index."""
        for index, reference in enumerate(self._modules):
            module = reference()
            if module is not None:
                yield index, module

    def module(self, index: int) -> Any:
        """The module of an index; None where it is gone, or for `OUTSIDE`."""
        return self._modules[index]() if index >= 0 else None

    def innermost(self) -> int:
        """The module that runs on this thread, the innermost one; or `OUTSIDE`."""
        return self.running.here.stack[-1]

    def fail(self, listener: Listener, error: BaseException) -> None:
        """A listener has raised: it hears no more."""
        self.leave(listener)
        listener.failed(error)

    def fail_log(self, error: BaseException) -> None:
        """Writing down has failed, and is over."""
        log, self.log = self.log, None
        if log is not None:
            log.failed(error)

    def _install(self) -> None:
        model = None if self._model is None else self._model()
        for here in tuple(self._threads):
            del here.stack[1:]  # of another model, or of another time
        self.paths = self.types = self._modules = ()
        self.not_seen = self.remedy = ""
        if model is None:
            self.not_seen = "no model is attached"
            self.remedy = (
                "Give it to collector.record(model=...) or rec.attach(model=...)."
            )
            return
        found = list(model.named_modules())
        self.paths = tuple(path for path, _ in found)
        self.types = tuple(type(module).__name__ for _, module in found)
        self._modules = tuple(weakref.ref(module) for _, module in found)
        compiled = _compiled_paths(found)
        if not compiled and compiles_anything():
            self.not_seen = "torch.compile is in use, and of what cannot be told"
            self.remedy = _UNCOMPILED
            return
        if compiled:
            self.not_seen = f"{len(compiled)} modules are compiled, or below one"
            self.remedy = _UNCOMPILED
        for index, (path, module) in enumerate(found):
            if path not in compiled:
                self._hook(index, module)

    def _hook(self, index: int, module: Any) -> None:
        before, after = _Before(self, index), _After(self, index)
        try:
            self._handles.append(
                HooksOn(module, before=before, after=after, kwargs_after=True)
            )
        except Exception:  # noqa: BLE001  # a scripted module may take no hooks
            self.not_seen = f"a {type(module).__name__} takes no hooks"

    def _remove(self) -> None:
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()


class _Hook(OwnHook):
    __slots__ = ("_index", "_watch")

    def __init__(self, watch: ModuleWatch, index: int) -> None:
        self._watch = watch
        self._index = index


class _Before(_Hook):
    __slots__ = ()

    def __call__(self, module: Any, args: Any) -> None:
        if is_compiling():
            return
        watch, index = self._watch, self._index
        here = watch.running.here
        stack = here.stack
        stack.append(index)
        for listener in watch.listeners:
            try:
                listener.before_forward(index, module, args, len(stack) - 1)
            except Exception as error:  # noqa: BLE001, PERF203  # the border to training
                watch.fail(listener, error)
        log = watch.log
        if log is not None:
            # Written out on both sides: a call of Python's would cost as much again.
            try:
                read = log.read
                reading = None if read is None else read()
                depth = len(stack) - 1
                entry = (index, depth, here, here.saved_bytes, reading)
                log.entries.extend(entry)
                if depth == 1 or not index:
                    log.outer.append(entry)
            except Exception as error:  # noqa: BLE001  # the border to training
                watch.fail_log(error)


class _After(_Hook):
    __slots__ = ()

    def __call__(self, module: Any, args: Any, kwargs: Any, outputs: Any) -> None:
        if is_compiling():
            return
        watch, index = self._watch, self._index
        here = watch.running.here
        stack = here.stack
        if stack[-1] != index:
            if index not in stack:  # it had begun before the hooks came
                return
            while stack[-1] != index:  # what ended without a word
                stack.pop()
        log = watch.log
        if log is not None:
            try:
                read, entries = log.read, log.entries
                reading = None if read is None else read()
                depth = len(stack) - 1
                entry = (~index, depth, here, here.saved_bytes, reading)
                entries.extend(entry)
                if depth == 1 or not index:
                    log.outer.append(entry)
                if len(entries) >= FOLD_AT:  # a call that lasts long
                    log.fold()
            except Exception as error:  # noqa: BLE001  # the border to training
                watch.fail_log(error)
        depth = len(stack) - 1
        for listener in watch.listeners:
            try:
                listener.after_forward(index, module, (args, kwargs), outputs, depth)
            except Exception as error:  # noqa: BLE001, PERF203  # the border to training
                watch.fail(listener, error)
        stack.pop()


def _compiled_paths(found: list[tuple[str, Any]]) -> set[str]:
    """Paths of compiled modules and of everything below them."""
    roots = [
        path
        for path, module in found
        if getattr(module, "_compiled_call_impl", None) is not None
        or type(module).__name__ == "OptimizedModule"
    ]
    return {
        path
        for path, _ in found
        for root in roots
        if not root or path == root or path.startswith(f"{root}.")
    }
