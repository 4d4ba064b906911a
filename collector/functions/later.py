"""What is found when it is first asked for: on the writer's thread.

Training does not wait for it: what happened is handed on as it was noted, and what that
comes to is worked out where it is encoded. Only one thread at a time may ask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.format.records import CaptureTable

Value = TypeVar("Value")


class Later(Mapping[str, Value]):
    """A mapping that is made once."""

    __slots__ = ("_make", "_values")

    def __init__(self, make: Callable[[], Mapping[str, Value]]) -> None:
        self._make: Callable[[], Mapping[str, Value]] | None = make
        self._values: Mapping[str, Value] = {}

    def _made(self) -> Mapping[str, Value]:
        make, self._make = self._make, None  # and with it all that it holds
        if make is not None:
            self._values = make()
        return self._values

    def __getitem__(self, name: str) -> Value:
        return self._made()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())


class LaterTables(Later["CaptureTable"]):
    """A capture's tables."""

    __slots__ = ("size_bytes",)

    def __init__(
        self, make: Callable[[], Mapping[str, CaptureTable]], size_bytes: int
    ) -> None:
        """`size_bytes`: of what is held until they are made, or of them, about."""
        self._make, self._values = make, {}
        self.size_bytes = size_bytes


class LaterNumber(partial["float | None"]):
    """A number in a row: what a function returns when the row is encoded.

    None: there is none, it is NaN. The function may be called several times.
    """

    __slots__ = ()

    def __int__(self) -> int:
        found = self()
        return int(math.nan if found is None else found)

    def __float__(self) -> float:
        found = self()
        return math.nan if found is None else float(found)
