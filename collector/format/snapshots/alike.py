"""Which of many lists hold the same objects in the same order.

Comparing lists one by one takes a tuple of identities and a lookup each. Here the
identities of all are one array, each list has a hash of its part of it, and lists of one
hash are compared with the first of them; where two different ones share a hash, which
does not happen but may be made to, all are compared one by one after all.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.format.records import IntArray

_ODD: Final = 0x9E3779B97F4A7C15
"""Multiplies; the hash of a list is a polynomial in it."""


def same_lists(lists: Sequence[list[Any]]) -> tuple[list[int], IntArray]:
    """The first of each distinct list, by place, and for each list which one it equals.

    Lists are equal where they hold the same objects, not merely equal ones. They are
    numbered in the order in which they come: what is recorded of a snapshot is the same
    wherever its objects lie.
    """
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    ids = np.fromiter(map(id, chain.from_iterable(lists)), np.uint64)
    starts = np.cumsum(lengths) - lengths
    place = np.arange(len(ids)) - np.repeat(starts, lengths)
    mixed = ids * _powers(int(lengths.max(initial=0)))[place]
    hashes = lengths.astype(np.uint64)
    has_any = np.flatnonzero(lengths)
    if len(has_any):
        hashes[has_any] += np.add.reduceat(mixed, starts[has_any])
    _, first, of_list = np.unique(hashes, return_index=True, return_inverse=True)
    of_list = of_list.reshape(-1)
    if _all_alike(ids, lengths, starts, first[of_list]):
        order = np.argsort(first)
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        return first[order].tolist(), number[of_list]
    return _one_by_one(lists)


def _all_alike(ids: Any, lengths: IntArray, starts: IntArray, model: IntArray) -> bool:
    """Whether each list holds what its model does."""
    if not np.array_equal(lengths, lengths[model]):
        return False
    moved = np.repeat(starts[model] - starts, lengths)
    return bool(np.array_equal(ids, ids[np.arange(len(ids)) + moved]))


def _one_by_one(lists: Sequence[list[Any]]) -> tuple[list[int], IntArray]:
    known: dict[tuple[int, ...], int] = {}
    first: list[int] = []
    of_list = np.empty(len(lists), np.int64)
    for place, one in enumerate(lists):
        number = known.setdefault(tuple(map(id, one)), len(first))
        if number == len(first):
            first.append(place)
        of_list[place] = number
    return first, of_list


def _powers(count: int) -> Any:
    """The first powers of `_ODD`, modulo 2**64."""
    powers = np.full(count, _ODD, np.uint64)
    return np.cumprod(powers, dtype=np.uint64) if count else powers
