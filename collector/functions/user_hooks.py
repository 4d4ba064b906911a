"""The user's own code: hooks on modules, and the attributes that they leave there."""

from __future__ import annotations

import numbers
import weakref
from typing import TYPE_CHECKING, Any

from collector.config.values import code_name, resolve
from collector.core.guard import guarded
from collector.core.source import SourceInfo
from collector.core.warn_once import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.config.values import Code
    from collector.core.calls import Sink


class Attributes:
    """What hooks have added to modules, to be taken away when the last window ends.

    Nothing else is: training may set attributes of its own meanwhile.
    """

    def __init__(self) -> None:
        self._added: dict[int, tuple[weakref.ref[Any], set[str]]] = {}

    def run(self, hook: Callable[..., Any], module: Any, *arguments: Any) -> None:
        """Call a hook, and remember the attributes that are new after it."""
        own = vars(module)
        before = len(own)
        try:
            hook(module, *arguments)
        finally:
            if len(own) > before:
                known = self._added.get(id(module))
                if known is None:
                    known = self._added[id(module)] = weakref.ref(module), set()
                known[1].update(list(own)[before:])

    def remove(self) -> None:
        """Take them away."""
        for reference, names in self._added.values():
            module = reference()
            if module is not None:
                for name in names:
                    vars(module).pop(name, None)
        self._added = {}


def _switch_off(
    _where: str, error: BaseException, hooks: UserHooks, hook: Any, *_: Any
) -> None:
    hooks.switch_off(hook, error)


class UserHooks:
    """The hooks of one setting, in their order; one that raises is off from then on."""

    def __init__(
        self, key: str, codes: Sequence[Code], attributes: Attributes, sink: Sink
    ) -> None:
        """`key`: of the configuration, e.g. `hooks.pre_forward`.

        Raises:
            ConfigError: a dotted name does not import.
        """
        self._key = key
        self._hooks = tuple(resolve(code, key) for code in codes)
        self._attributes = attributes
        self._sink = sink

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def run(self, module: Any, *arguments: Any) -> None:
        """Call each of them; what they return is ignored."""
        for hook in self._hooks:
            self._call(hook, module, *arguments)

    @guarded(_switch_off)
    def _call(self, hook: Callable[..., Any], *arguments: Any) -> None:
        self._attributes.run(hook, *arguments)

    def switch_off(self, hook: Callable[..., Any], error: BaseException) -> None:
        """Call it no more."""
        self._hooks = tuple(known for known in self._hooks if known is not hook)
        switch_off(self._sink, self._key, hook, error)


def switch_off(sink: Sink, key: str, hook: Any, error: BaseException) -> None:
    """Say that code of the user's, named by the setting `key`, failed and is off."""
    name = code_name(hook)
    remedy = f"Correct {name}, or remove it from {key}."
    reason = f"{name}: {type(error).__name__}: {error}"
    sink.note_kind(SourceInfo(name=key, cost=""), "failed", reason, remedy)
    warn(
        "%s in %s failed and is off from now on; training and the rest go on. %s",
        name,
        key,
        remedy,
        error=error,
    )


def number_of(module: Any, name: str) -> float | None:
    """A module's attribute as a number; None where there is none, or it is no number.

    A tensor is none: reading it may wait for the device.
    """
    value = getattr(module, name, None)
    return float(value) if isinstance(value, numbers.Real) else None
