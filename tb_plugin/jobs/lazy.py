"""Values that are made when they are first read."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class LazyCache:
    """Made once, whoever asks first; others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making: dict[str, threading.RLock] = {}
        """Held by whoever makes it: others are made meanwhile."""
        self._values: dict[str, Any] = {}

    def peek(self, key: str) -> Any:
        """The value of a name; None where nobody read it yet."""
        with self._lock:
            return self._values.get(key)

    def get(self, key: str, make: Callable[[], _T]) -> _T:
        """The value of a name, made now where it is not there yet."""
        with self._lock:
            if key in self._values:
                return cast("_T", self._values[key])
            making = self._making.setdefault(key, threading.RLock())
        with making:
            with self._lock:
                if key in self._values:
                    return cast("_T", self._values[key])
            value = make()
            with self._lock:
                self._values[key] = value
                self._making.pop(key, None)
            return value


class lazy(Generic[_T]):  # noqa: N801  # used as a decorator
    """A property that is made once, in its object's `lazy`: others wait for it."""

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> lazy[_T]: ...
    @overload
    def __get__(self, owner: object, kind: type) -> _T: ...
    def __get__(self, owner: Any, kind: type) -> lazy[_T] | _T:
        if owner is None:
            return self
        cache: LazyCache = owner.lazy
        return cache.get(self._make.__name__, lambda: self._make(owner))
