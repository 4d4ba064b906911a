"""Long loops in short turns, so that other threads get theirs.

A loop inside the interpreter's C code (`list(map(...))`) is four times as fast as one in
Python, and nobody else runs until it ends: a tenth of a second for a million values. Cut
into turns of a millisecond it is as fast, and training on the other thread goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from collector.format.records import IntArray

    Value = TypeVar("Value")
    Result = TypeVar("Result")

_TURN: Final = 1 << 14


def turns(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """The values, some at a time."""
    for start in range(0, len(values), _TURN):
        yield values[start : start + _TURN]


def listed(
    function: Callable[[Value], Result], values: Sequence[Value]
) -> list[Result]:
    """`list(map(function, values))`."""
    found: list[Result] = []
    for some in turns(values):
        found += map(function, some)
    return found


def numbered(function: Callable[[Any], int], values: Sequence[Any]) -> IntArray:
    """The same for a function that gives integers, as an array."""
    found = np.empty(len(values), np.int64)
    start = 0
    for some in turns(values):
        found[start : start + len(some)] = np.fromiter(map(function, some), np.int64)
        start += len(some)
    return found


def distinct(values: Sequence[Value]) -> dict[Value, None]:
    """The different ones, in the order of first sight."""
    found: dict[Value, None] = {}
    for some in turns(values):
        found.update(dict.fromkeys(some))
    return found
