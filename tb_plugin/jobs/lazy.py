"""Values that are made when they are first asked for, and the memory they hold."""

from __future__ import annotations

import mmap
import sys
import threading
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, overload

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

_T = TypeVar("_T")
_WITHOUT_PARTS: Final = (int, float, bool, str, bytes, type)


class LazyCache:
    """Made once, whoever asks first; others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making: dict[str, threading.RLock] = {}
        """Held by whoever makes it: others are made meanwhile."""
        self._values: dict[str, Any] = {}
        self._bounded: list[str] = []

    def peek(self, name: str) -> Any:
        """The value of a name; None where nobody asked for it yet."""
        with self._lock:
            return self._values.get(name)

    def get(self, name: str, make: Callable[[], _T], most: int | None = None) -> _T:
        """The value of a name, made now where it is not there yet.

        Of those made with `most` at most so many are retained.
        """
        with self._lock:
            if name in self._values:
                return cast("_T", self._values[name])
            making = self._making.setdefault(name, threading.RLock())
        with making:
            with self._lock:
                if name in self._values:
                    return cast("_T", self._values[name])
            found = make()
            with self._lock:
                self._values[name] = found
                self._making.pop(name, None)
                if most is not None:
                    self._bounded.append(name)
                    for old in self._bounded[:-most]:
                        del self._values[old]
                    del self._bounded[:-most]
            return found


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


def held_bytes(value: Any) -> int:
    """Bytes of all arrays and texts that an object leads to, each counted once.

    What is mapped from a file does not count.
    """
    total = 0
    left: list[Any] = [value]
    counted: dict[int, Any] = {}
    """By id; they are retained, so that no id is used twice meanwhile."""
    while left:
        item = left.pop()
        if item is None or isinstance(item, _WITHOUT_PARTS):
            continue
        if isinstance(item, np.ndarray):
            item = _owner(item)
            if item is None:
                continue
        if id(item) in counted:
            continue
        counted[id(item)] = item
        if isinstance(item, np.ndarray):
            total += int(item.nbytes)
        elif isinstance(item, (tuple, list)) and item and isinstance(item[0], str):
            total += sum(map(sys.getsizeof, item))
        else:
            left += _parts(item)
    return total


def _parts(value: Any) -> Iterable[Any]:
    """What an object leads to, as far as it is ours, or a container."""
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, dict):
        return list(value.values())
    kind: Any = type(value)
    names = _field_names(kind)
    if names is not None:
        return [getattr(value, name) for name in names]
    if kind.__module__.startswith("memboard."):
        return list(getattr(value, "__dict__", {}).values())
    return ()


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """Of a dataclass; None: it is none."""
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else None


def _owner(array: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """The array whose memory it shows; None where that is a file's."""
    if array.size and not any(array.strides):
        return None  # one number, however often it is seen
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    base = owner.base.obj if isinstance(owner.base, memoryview) else owner.base
    return None if isinstance(base, mmap.mmap) else owner
