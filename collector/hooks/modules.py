"""Hooks on a user's modules, which tell a listener of forwards and which no copy takes.

They return nothing, what fails in them is kept for the listener, and torch.compile traces
through them as through nothing. In a forked child they are idle. A listener that is told of
each forward of each module may bring hooks of its own, which spare a call.

torch keeps a module's hooks in dictionaries, and a copy or a pickle of the module has
copies of those. As long as hooks of ours are in them, these dictionaries copy and pickle
themselves without: an attribute of a single dictionary comes before what its class says.
So a copy can be scripted, compiled and sent anywhere, and where it is loaded the numbers
of our hooks are free for others.
"""

from __future__ import annotations

import copy
import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any, Final, Protocol

from torch.compiler import is_compiling

from memboard.collector.core.guard import guarded
from memboard.collector.core.plain import PROGRAM_ENDS
from memboard.collector.hooks import torch_calls

if TYPE_CHECKING:
    from torch import nn

inert: Final = functools.partial(sys.audit, "memboard.left_module")
"""Takes whatever a hook is given and does nothing; any Python can unpickle it. It is in
copies of dictionaries that take no attributes, as another torch's might be."""

_DICTIONARIES: Final = {
    "_forward_pre_hooks": ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs"),
    "_forward_hooks": (
        "_forward_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
    ),
}
"""A module's hooks, and all dictionaries that know them by number."""

_COPYING: Final = ("__deepcopy__", "__reduce_ex__")


class HookListener(Protocol):
    """For whom there are hooks on modules."""

    def hook_failed(self, error: BaseException) -> None:
        """A hook has raised this, and none of them does anything any more."""


class ForwardListener(HookListener, Protocol):
    """Is told of the forwards of modules, each known by a number."""

    def before_forward(
        self, index: int, module: Any, args: Any, kwargs: Any
    ) -> None: ...

    def after_forward(
        self, index: int, module: Any, args: Any, kwargs: Any, outputs: Any
    ) -> None:
        """It is over; `outputs` is None where it raised."""


def _failed(_where: str, error: BaseException, hooks: ModuleHooks, *_: Any) -> None:
    hooks.failed(error)


class ModuleHooks:
    """Hooks on modules, for one listener, until `remove`."""

    def __init__(
        self,
        listener: HookListener,
        *,
        first: bool = False,
        before: type[OwnHook] | None = None,
        after: type[OwnHook] | None = None,
    ) -> None:
        """Make hooks that tell `listener`, a `ForwardListener`.

        Args:
            listener: any other one needs hooks of its own.
            first: before all hooks that a module has already.
            before: the listener's own class of hooks before a forward.
            after: the same behind it.
        """
        self.listener: Any = listener
        """None: the hooks are idle."""
        self._first = first
        self._before = before or _Before
        self._after = after or _After
        self._on: list[tuple[weakref.ref[Any], list[Any]]] = []
        """Modules, and torch's handles of the hooks on them."""

    def __bool__(self) -> bool:
        return bool(self._on)

    def add(self, index: int, module: nn.Module) -> None:
        """Tell of this module too.

        May raise what modules raise that take no hooks, and has then left none.
        """
        how = {"prepend": self._first, "with_kwargs": True}
        handles: list[Any] = []
        try:
            before: Any = self._before(self, index)
            after: Any = self._after(self, index)
            handles.append(module.register_forward_pre_hook(before, **how))
            handles.append(module.register_forward_hook(after, always_call=True, **how))
        finally:
            if len(handles) < 2:
                _take_off(handles)
        if not self._on:
            torch_calls.listen(self, (torch_calls.SCRIPT,))
        self._on.append((weakref.ref(module), handles))
        _keep_copies_clean(module)

    def remove(self) -> None:
        """Leave the modules as they were."""
        on, self._on = self._on, []
        for reference, handles in on:
            _take_off(handles)
            module = reference()
            if module is not None:
                _leave_copies_alone(module)
        if on:
            torch_calls.leave(self)

    def failed(self, error: BaseException) -> None:
        """The listener has raised: it hears no more."""
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.hook_failed(error)

    # As a listener of calls: torch.jit.script compiles every hook it finds.

    @guarded(_failed, instead=lambda *_: ())
    def begin(self, _part: str, _name: str, args: tuple[Any, ...], /) -> Any:
        """Lift the hooks off the module that is being scripted."""
        modules = getattr(args[0], "modules", None) if args else None
        lifted = [
            (hooks, key, hook)
            for module in (modules() if callable(modules) else ())
            for name in _DICTIONARIES
            for hooks in (getattr(module, name, {}),)
            for key, hook in tuple(hooks.items())
            if hook is inert or isinstance(hook, OwnHook)
        ]
        for hooks, key, _ in lifted:
            hooks.pop(key, None)
        return lifted

    def end(self, begun: Any, failed: bool, /) -> None:  # noqa: ARG002
        for hooks, key, hook in begun:
            hooks[key] = hook

    def after_fork(self) -> bool:
        """The listener is the parent's; the hooks stay where they are, idle."""
        self.listener = None
        return True


class OwnHook:
    """What stands in a module's dictionary of hooks; torch calls it.

    Its `__call__` lets nothing escape but what ends the program, and does nothing where
    there is no listener: see `_Before`.
    """

    __slots__ = ("_hooks", "_index")

    def __init__(self, hooks: ModuleHooks, index: int) -> None:
        self._hooks = hooks
        self._index = index

    def __copy__(self) -> Any:
        return inert

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return inert

    def __reduce__(self) -> Any:
        return inert.__reduce__()


class _Before(OwnHook):
    __slots__ = ()

    def __call__(self, module: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        listener = self._hooks.listener
        if listener is None:
            return
        try:
            listener.before_forward(self._index, module, args, kwargs)
        except PROGRAM_ENDS:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            self._hooks.failed(error)


class _After(OwnHook):
    __slots__ = ()

    def __call__(self, module: Any, args: Any, kwargs: Any, outputs: Any) -> None:
        if is_compiling():
            return
        listener = self._hooks.listener
        if listener is None:
            return
        try:
            listener.after_forward(self._index, module, args, kwargs, outputs)
        except PROGRAM_ENDS:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            self._hooks.failed(error)


def _take_off(handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()


def _keep_copies_clean(module: Any) -> None:
    for main, names in _DICTIONARIES.items():
        hooks = vars(module).get(main)
        for name in names:
            entries = vars(module).get(name)
            try:
                both = weakref.ref(entries), weakref.ref(hooks)
                entries.__deepcopy__ = functools.partial(_deep_copy, *both)
                entries.__reduce_ex__ = functools.partial(_reduction, *both)
            except (AttributeError, TypeError):
                continue  # no such dictionary, or one that takes no attributes


def _leave_copies_alone(module: Any) -> None:
    """Take that off again, unless other hooks of ours are there still."""
    for main, names in _DICTIONARIES.items():
        hooks = vars(module).get(main) or {}
        if any(isinstance(hook, OwnHook) for hook in hooks.values()):
            continue
        for name in names:
            attributes = getattr(vars(module).get(name), "__dict__", {})
            for attribute in _COPYING:
                attributes.pop(attribute, None)


def _theirs(entries: Any, hooks: Any) -> list[tuple[Any, Any]]:
    return [
        (key, value)
        for key, value in entries.items()
        if not isinstance(hooks.get(key), OwnHook)
    ]


def _deep_copy(entries: Any, hooks: Any, memo: dict[int, Any]) -> Any:
    """The dictionary without what is ours, as `copy.deepcopy` would copy it."""
    entries, hooks = entries(), hooks()
    copied = memo[id(entries)] = type(entries)()
    for key, value in _theirs(entries, hooks):
        copied[copy.deepcopy(key, memo)] = copy.deepcopy(value, memo)
    return copied


def _reduction(entries: Any, hooks: Any, _protocol: int) -> Any:
    """The same, as a pickle has it."""
    entries, hooks = entries(), hooks()
    return type(entries), (), None, None, iter(_theirs(entries, hooks))
