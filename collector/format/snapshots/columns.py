"""One key of many dicts as a column: which kind it is, and its numbers.

A kind is chosen by the types that occur. torch's are uniform; a key of mixed types is
kept as `value`, which holds anything and costs more.
"""

from __future__ import annotations

from array import array
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.snapshots.interning import (
    MAX_KEYS,
    NotFramesError,
    is_name,
    turns,
)
from memboard.collector.format.snapshots.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.collector.format.records import FloatArray, IntArray
    from memboard.collector.format.snapshots.interning import Interner

NOTHING: Final = -1
"""In columns of indices and of truth values: the row lacks the key."""

GAPS: Final = {
    "int": ABSENT,
    "uint": ABSENT,
    "pair": ABSENT,
    "float": float("nan"),
    "bool": NOTHING,
    "text": NOTHING,
    "stack": NOTHING,
    "value": NOTHING,
}
"""By kind: what stands where a row lacks an optional key."""

_ABSENT_AS_UINT: Final = ABSENT % 2**64


class EncodedColumn(NamedTuple):
    """Values of one key in the rows that have it."""

    kind: str
    arrays: tuple[IntArray | FloatArray, ...]
    """Two of a pair, else one."""


def encoded(
    values: Sequence[Any], interner: Interner, *, is_stack: bool, optional: bool
) -> EncodedColumn:
    """The column of `values`, not empty; `is_stack`: lists of frames are stacks here."""
    types: set[type] = set()
    for some in turns(values):
        types.update(map(type, some))
    if len(types) == 1:
        column = _uniform(types.pop(), values, interner, optional)
        if column is not None:
            return column
        if is_stack:
            with suppress(NotFramesError):
                return EncodedColumn("stack", (interner.stack_numbers(values),))
    return EncodedColumn(
        "value", (interner.texts([plain_text(value) for value in values]),)
    )


def are_rows(value: Any) -> bool:
    """Whether it is a list of dicts that a table can hold: none empty, keys are names."""
    if type(value) is not list:
        return False
    keys: set[Any] = set()
    for some in turns(value):
        if set(map(type, some)) != {dict} or not min(map(len, some)):
            return False
        keys.update(chain.from_iterable(some))
        if len(keys) > MAX_KEYS:
            return False
    return all(map(is_name, keys))


def _uniform(
    kind: type, values: Sequence[Any], interner: Interner, optional: bool
) -> EncodedColumn | None:
    if kind is int:
        return _integers(values)
    if kind is str:
        try:
            return EncodedColumn("text", (interner.texts(values),))
        except UnicodeEncodeError:
            return None
    if kind is bool:
        return EncodedColumn("bool", (np.fromiter(values, np.int64, len(values)),))
    if kind is float:
        floats = np.array(values, np.float64)
        if optional and np.isnan(floats).any():
            return None
        return EncodedColumn("float", (floats,))
    return _pairs(values) if kind is tuple else None


def _integers(values: Sequence[int]) -> EncodedColumn | None:
    numbers = _signed(values)
    if numbers is not None:
        return EncodedColumn("int", (numbers,))
    if min(values) < 0 or max(values) >= 2**64 or _ABSENT_AS_UINT in values:
        return None
    return EncodedColumn("uint", (np.array(values, np.uint64).view(np.int64),))


def _pairs(values: Sequence[tuple[Any, ...]]) -> EncodedColumn | None:
    """Of pairs of integers; None where any is something else."""
    flat: list[Any] = []
    for some in turns(values):
        if set(map(len, some)) != {2}:
            return None
        flat += chain.from_iterable(some)
        if set(map(type, flat[-2 * len(some) :])) != {int}:
            return None
    numbers = _signed(flat)
    if numbers is None:
        return None
    return EncodedColumn("pair", (numbers[::2].copy(), numbers[1::2].copy()))


def _signed(values: Sequence[int]) -> npt.NDArray[np.int64] | None:
    """None where one does not fit, or looks like absence."""
    try:
        packed = array("q")
        for some in turns(values):
            packed.extend(some)
        numbers = np.frombuffer(packed, np.int64)
    except OverflowError:
        return None
    return None if (numbers == ABSENT).any() else numbers
