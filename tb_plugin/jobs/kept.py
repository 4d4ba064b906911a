"""Things that are made when they are first asked for, and then kept."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Kept:
    """Made once, whoever asks first; others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._making: dict[str, threading.RLock] = {}
        """Held by who makes it: others are made meanwhile."""
        self._values: dict[str, Any] = {}
        self._bounded: list[str] = []

    def look(self, name: str) -> Any:
        """What is known by a name; None where nobody asked for it yet."""
        with self._lock:
            return self._values.get(name)

    def get(self, name: str, make: Callable[[], _T], most: int | None = None) -> _T:
        """What is known by a name; made now where it is not yet.

        Of those made with `most` at most so many are kept.
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
