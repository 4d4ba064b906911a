"""Hooks of ours on a user's modules, which no copy of a module takes along.

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
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

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

_HOW_TO_COPY: Final = ("__deepcopy__", "__reduce_ex__")


class OwnHook:
    """What stands in a module's dictionary of hooks; torch calls it."""

    __slots__ = ()

    def __copy__(self) -> Any:
        return inert

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return inert

    def __reduce__(self) -> Any:
        return inert.__reduce__()


class HooksOn:
    """Hooks on one module, until `remove`."""

    __slots__ = ("_handles", "_module")

    def __init__(
        self,
        module: Any,
        *,
        before: OwnHook | None = None,
        after: OwnHook | None = None,
        kwargs_before: bool = False,
        kwargs_after: bool = False,
        prepend: bool = False,
    ) -> None:
        """`before` its forward; `after` it, also where that raised.

        `kwargs_before`, `kwargs_after`: the hook is given keywords too. `prepend`: the
        one before comes first of all.
        May raise what modules raise that take no hooks, and has then left none.
        """
        self._module = weakref.ref(module)
        self._handles: list[Any] = []
        try:
            if before is not None:
                self._handles.append(
                    module.register_forward_pre_hook(
                        before, prepend=prepend, with_kwargs=kwargs_before
                    )
                )
            if after is not None:
                self._handles.append(
                    module.register_forward_hook(
                        after, with_kwargs=kwargs_after, always_call=True
                    )
                )
        except BaseException:
            self.remove()
            raise
        _keep_copies_clean(module)

    def remove(self) -> None:
        """Leave the module as it was."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        module = self._module()
        if module is not None:
            _leave_copies_alone(module)


@contextmanager
def lifted(model: Any) -> Iterator[None]:
    """`model` without our hooks: torch.jit.script compiles every one it finds."""
    modules = getattr(model, "modules", None)
    held = [
        (hooks, key, hook)
        for module in (modules() if callable(modules) else ())
        for hooks in (module._forward_hooks, module._forward_pre_hooks)  # noqa: SLF001
        for key, hook in tuple(hooks.items())
        if hook is inert or isinstance(hook, OwnHook)
    ]
    for hooks, key, _ in held:
        hooks.pop(key, None)
    try:
        yield
    finally:
        for hooks, key, hook in held:
            hooks[key] = hook


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
            for attribute in _HOW_TO_COPY:
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
    found = memo[id(entries)] = type(entries)()
    for key, value in _theirs(entries, hooks):
        found[copy.deepcopy(key, memo)] = copy.deepcopy(value, memo)
    return found


def _reduction(entries: Any, hooks: Any, _protocol: int) -> Any:
    """The same, as a pickle has it."""
    entries, hooks = entries(), hooks()
    return type(entries), (), None, None, iter(_theirs(entries, hooks))
