"""The user's own code: hooks on modules, and the attributes that they leave there."""

from __future__ import annotations

import inspect
import numbers
import weakref
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.config.values import code_name, resolve
from memboard.collector.core.guard import guarded
from memboard.collector.core.model_parts import listed
from memboard.collector.core.source import SourceInfo
from memboard.collector.core.warn_once import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memboard.collector.config.values import Code
    from memboard.collector.core.calls import Sink


class Attributes:
    """What hooks have added to modules, to be taken away when the last window ends.

    Nothing else is: training may set attributes of its own meanwhile.
    """

    def __init__(self) -> None:
        self._added: dict[int, tuple[weakref.ref[Any], set[str]]] = {}

    def run(self, hook: Callable[..., Any], module: Any, *arguments: Any) -> None:
        """Call a hook, and remember the attributes of the module that are new after it."""
        before = len(vars(module))
        try:
            hook(module, *arguments)
        finally:
            self._remember(module, before)

    def run_on_model(
        self, hook: Callable[..., Any], model: Any, *arguments: Any
    ) -> None:
        """Call a hook, and remember what is new on any module of the model after it."""
        modules = listed(model, "modules")
        before = [(module, len(vars(module))) for module in modules]
        try:
            hook(model, *arguments)
        finally:
            for module, num_before in before:
                self._remember(module, num_before)

    def _remember(self, module: Any, num_before: int) -> None:
        own = vars(module)
        if len(own) > num_before:
            added = self._added.get(id(module))
            if added is None:
                added = self._added[id(module)] = weakref.ref(module), set()
            added[1].update(list(own)[num_before:])

    def remove(self) -> None:
        for reference, names in self._added.values():
            module = reference()
            if module is not None:
                for attribute in names:
                    vars(module).pop(attribute, None)
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
        self._hooks = tuple(other for other in self._hooks if other is not hook)
        switch_off(self._sink, self._key, hook, error)


class _ModelHooks(UserHooks):
    """Hooks that go through a model's modules themselves."""

    @guarded(_switch_off)
    def _call(self, hook: Callable[..., Any], *arguments: Any) -> None:
        self._attributes.run_on_model(hook, *arguments)


_RESET: Final = "hooks.reset"


class ResetHooks:
    """Hooks that put attributes of modules back to what a call starts with.

    One that needs nothing but a module is called as `hook(module)`, for each module after
    each call. One that needs two arguments is called as MemProfiler calls it, as
    `hook(model, attributes)` with the names in `hooks.save_attrs`: once after each call,
    and before the first one.
    """

    def __init__(
        self,
        codes: Sequence[Code],
        saved_attrs: Sequence[str],
        attributes: Attributes,
        sink: Sink,
    ) -> None:
        """Raise ConfigError where a dotted name does not import."""
        hooks = [resolve(code, _RESET) for code in codes]
        of_model = [hook for hook in hooks if _needs_names(hook)]
        of_modules = [hook for hook in hooks if not _needs_names(hook)]
        self._of_model = _ModelHooks(_RESET, of_model, attributes, sink)
        self._of_modules = UserHooks(_RESET, of_modules, attributes, sink)
        self._saved_attrs = tuple(saved_attrs)

    def __bool__(self) -> bool:
        return bool(self._of_model or self._of_modules)

    def before_first_call(self, model: Any) -> None:
        """Hooks were just put on the modules."""
        self._of_model.run(model, list(self._saved_attrs))

    def after_call(self, model: Any, modules: Iterable[tuple[int, Any]]) -> None:
        """A collected call has ended. `modules`: with their indices."""
        self._of_model.run(model, list(self._saved_attrs))
        if self._of_modules:
            for _, module in modules:
                self._of_modules.run(module)


def _needs_names(hook: Callable[..., Any]) -> bool:
    """Whether it cannot be called with a module alone, and can with a list of names."""
    try:
        signature = inspect.signature(hook)
    except (TypeError, ValueError):  # of C, which does not say
        return False
    return not _takes(signature, 1) and _takes(signature, 2)


def _takes(signature: inspect.Signature, num_arguments: int) -> bool:
    try:
        signature.bind(*[None] * num_arguments)
    except TypeError:
        return False
    return True


def switch_off(sink: Sink, key: str, hook: Any, error: BaseException) -> None:
    """Say that code of the user's, named by the setting `key`, failed and is off."""
    hook_name = code_name(hook)
    remedy = f"Correct {hook_name}, or remove it from {key}."
    reason = f"{hook_name}: {type(error).__name__}: {error}"
    sink.note_kind(SourceInfo(name=key, cost=""), "failed", reason, remedy)
    warn(
        "%s in %s failed and is off from now on; training and the rest go on. %s",
        hook_name,
        key,
        remedy,
        error=error,
    )


def number_of(module: Any, attribute: str) -> float | None:
    """A module's attribute as a number; None where there is none, or it is no number.

    A tensor is none: reading it may wait for the device.
    """
    value = getattr(module, attribute, None)
    return float(value) if isinstance(value, numbers.Real) else None
