"""The distinct numbers of a column of very many, without a hash table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[Any]

_MOST_MARKED: Final = 1 << 22
"""Numbers that have a mark each; more of them are sorted instead."""


def distinct(values: Ints) -> Ints:
    """Each once, ascending.

    `np.unique` puts them into a hash table (since numpy 2.3), which takes a hundred
    times as long where nearly all are distinct, as times and addresses are.
    """
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    found: Ints = ordered[is_new]
    return found


def grouped(keys: Ints, num: int) -> tuple[Ints, Ints]:
    """The distinct keys, ascending, and by key its place among them.

    `num`: all are below it, and none is negative.
    """
    if num > _MOST_MARKED:
        known, place = np.unique(keys, return_inverse=True)
        return known, place
    # To mark what occurs takes no sorting.
    occurs = np.zeros(num, dtype=bool)
    occurs[keys] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[keys]
