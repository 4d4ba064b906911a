"""The forward of every module of the attached model: which runs, and what was found.

Hooks are on the modules only while somebody holds the watch. Modules that torch.compile
has compiled are left alone, and everything below them: hooks would not be called there,
and would make it compile anew.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.compiling import (
    compiled_away,
    compiles_anything,
    is_compiled,
)
from memboard.collector.core.model_parts import named_modules
from memboard.collector.core.plain import PROGRAM_ENDS
from memboard.collector.format.sizes import agreeing, counted
from memboard.collector.functions.forward_log import FOLD_AT, WatchedThread
from memboard.collector.hooks.modules import ModuleHooks, OwnHook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memboard.collector.functions.forward_log import ForwardLog

_UNCOMPILED: Final = "Profile some steps without torch.compile to see modules."


class _Running(threading.local):
    def __init__(self, threads: weakref.WeakSet[WatchedThread]) -> None:
        self.here = WatchedThread()
        threads.add(self.here)


# Both sides of each forward are written out in the hooks: a call of Python's would cost as
# much again.


class _BeforeForward(OwnHook):
    __slots__ = ()

    @compiled_away
    def __call__(self, module: Any, args: Any, _kwargs: Any) -> None:
        watch: ModuleWatch | None = self._hooks.listener
        if watch is None:
            return
        try:
            index, here = self._index, watch.running.here
            stack = here.stack
            stack.append(index)
            if watch.before is not None:
                watch.before(module, args)
            log = watch.log
            if log is not None:
                depth = len(stack) - 1
                entry = (index, depth, here, here.saved_bytes, log.read())
                log.entries.extend(entry)
                if depth == 1 or not index:
                    log.outer.append(entry)
        except PROGRAM_ENDS:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            self._hooks.failed(error)


class _AfterForward(OwnHook):
    __slots__ = ()

    @compiled_away
    def __call__(self, module: Any, args: Any, _kwargs: Any, outputs: Any) -> None:
        watch: ModuleWatch | None = self._hooks.listener
        if watch is None:
            return
        try:
            index, here = self._index, watch.running.here
            stack = here.stack
            if stack[-1] != index:
                if index not in stack:  # it had begun before the hooks came
                    return
                while stack[-1] != index:  # what ended without a word
                    stack.pop()
            log = watch.log
            if log is not None:
                entries = log.entries
                depth = len(stack) - 1
                entry = (~index, depth, here, here.saved_bytes, log.read())
                entries.extend(entry)
                if depth == 1 or not index:
                    log.outer.append(entry)
                if len(entries) >= FOLD_AT:  # a call that lasts long
                    log.fold()
            if watch.after is not None:
                watch.after(module, args, outputs)
            stack.pop()
        except PROGRAM_ENDS:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            self._hooks.failed(error)


class ModuleWatch:
    """The modules of a model by index, and which one runs on each thread."""

    def __init__(self) -> None:
        self.paths: tuple[str, ...] = ()
        """As `named_modules` has them; the root is empty."""
        self.types: tuple[str, ...] = ()
        self.not_seen = self.remedy = ""
        """Why modules are not seen, where some are not, and what to do."""
        self.sees_any = False
        """Whether there are hooks on any module."""
        self.before: Callable[[Any, Any], None] | None = None
        """The user's own: given a module and its args before each forward."""
        self.after: Callable[[Any, Any, Any], None] | None = None
        """The same behind it, with the outputs."""
        self.log: ForwardLog | None = None
        """Where both sides of each forward are written down, while anybody wants that."""
        self._model: weakref.ref[Any] | None = None
        self._modules: tuple[weakref.ref[Any], ...] = ()
        self._threads: weakref.WeakSet[WatchedThread] = weakref.WeakSet()
        self.running = _Running(self._threads)
        self._holders: tuple[object, ...] = ()
        self._hooks = self._no_hooks()

    def attach(self, model: Any) -> None:
        """Watch this model from now on; one without modules is none."""
        watched = None if self._model is None else self._model()
        if model is watched:
            return
        self._model = None
        if callable(getattr(model, "named_modules", None)):
            self._model = weakref.ref(model)
        if self._holders:
            self._hooks.remove()
            self._install()

    def hold(self, holder: object) -> None:
        """Watch from now on; hooks are put on the modules for the first one."""
        if holder not in self._holders:
            if not self._holders:
                self._install()
            self._holders += (holder,)

    def leave(self, holder: object) -> None:
        """It has no more interest; hooks leave the modules with the last one."""
        left = tuple(other for other in self._holders if other is not holder)
        if self._holders and not left:
            self._hooks.remove()
            self.sees_any = False
        self._holders = left

    def modules(self) -> Iterator[tuple[int, Any]]:
        """The modules that are still there, with their index."""
        for index, reference in enumerate(self._modules):
            module = reference()
            if module is not None:
                yield index, module

    def module(self, index: int) -> Any:
        """The module of an index; None where it is gone, or for `OUTSIDE`."""
        return self._modules[index]() if index >= 0 else None

    def hook_failed(self, error: BaseException) -> None:
        """Writing down has failed: nothing is watched any more."""
        self._forget_running()
        log, self.log = self.log, None
        if log is not None:
            log.failed(error)

    # Behind these.

    def _no_hooks(self) -> ModuleHooks:
        return ModuleHooks(self, before=_BeforeForward, after=_AfterForward)

    def _forget_running(self) -> None:
        for here in tuple(self._threads):
            del here.stack[1:]  # of another model, or of another time

    def _install(self) -> None:
        model = None if self._model is None else self._model()
        self._forget_running()
        self._hooks = self._no_hooks()
        self.paths = self.types = self._modules = ()
        self.not_seen = self.remedy = ""
        self.sees_any = False
        if model is None:
            self.not_seen = "no model is attached"
            self.remedy = "Give it to mb.record(model=...) or rec.attach(model=...)."
            return
        named = named_modules(model)
        self.paths = tuple(path for path, _ in named)
        self.types = tuple(type(module).__name__ for _, module in named)
        self._modules = tuple(weakref.ref(module) for _, module in named)
        compiled = _compiled_paths(named)
        if not compiled and compiles_anything():
            self.not_seen = "torch.compile is in use, and of what cannot be told"
            self.remedy = _UNCOMPILED
            return
        if compiled:
            self.not_seen = (
                f"{counted(len(compiled), 'module')}"
                f" {agreeing(len(compiled), 'is', 'are')} compiled, or below one that is"
            )
            self.remedy = _UNCOMPILED
        for index, (path, module) in enumerate(named):
            if path not in compiled:
                try:
                    self._hooks.add(index, module)
                except RuntimeError:  # a scripted module
                    self.not_seen = f"a {type(module).__name__} takes no hooks"
        self.sees_any = bool(self._hooks)


def _compiled_paths(named: list[tuple[str, Any]]) -> set[str]:
    """Paths of compiled modules and of everything below them."""
    roots = [path for path, module in named if is_compiled(module)]
    return {
        path
        for path, _ in named
        for root in roots
        if not root or path == root or path.startswith(f"{root}.")
    }
