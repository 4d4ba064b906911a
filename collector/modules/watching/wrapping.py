"""Wrapping functions where they stand, so that taking the wrappers off leaves no trace."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.modules.watching.backward import Link

_ABSENT: Final = object()


class Wrappers:
    """Wrappers in dictionaries and on objects, and how to take them off."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(
        self, hooks: dict[int, Any], key: int, make: Callable[[Any], Any]
    ) -> None:
        """Put what `make` makes of a hook in its place; key and order stay."""
        original = hooks[key]
        wrapper = hooks[key] = make(original)

        def undo() -> None:
            if hooks.get(key) is wrapper:
                hooks[key] = original

        self._undo.append(undo)

    def put(self, target: Any, name: str, wrapper: Any) -> None:
        """Set an attribute that stands before a method of the class."""
        held = vars(target).get(name, _ABSENT)
        setattr(target, name, wrapper)

        def undo() -> None:
            if vars(target).get(name) is not wrapper:
                return  # somebody has wrapped it since; ours is idle from now on
            if held is _ABSENT:
                delattr(target, name)
            else:
                setattr(target, name, held)

        self._undo.append(undo)

    def remove(self) -> None:
        """Take all of them off, the last one first."""
        while self._undo:
            self._undo.pop()()


def around(
    link: Link, original: Any, before: Callable[[], None], after: Callable[[], None]
) -> Any:
    """A function that does what the original does, and tells before and after."""

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        stack = link.stack
        if stack is not None:
            stack.guard(before)
        result = original(*args, **kwargs)
        stack = link.stack
        if stack is not None:
            stack.guard(after)
        return result

    return wrapper
