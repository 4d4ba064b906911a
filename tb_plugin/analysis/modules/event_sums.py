"""Sums over an event log, at moments: no loop over events, modules or boundaries.

A moment is a number of events: 0 is before the first of them, `n` after all `n`. Sums go
through float64, which holds whole numbers exactly up to 2**53 bytes (9 PB).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import distinct, first_highest, with_below

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats, Ints


def running_total(delta: Ints) -> Ints:
    """Bytes at every moment: one value more than there are events."""
    total = np.zeros(len(delta) + 1, np.int64)
    np.cumsum(delta, out=total[1:])
    return total


def sums_at(
    moments: Ints,
    event: Ints | None,
    category: npt.NDArray[np.integer],
    delta: Ints,
    num_categories: int,
) -> Floats:
    """By (category, moment): the sum of all deltas before each moment.

    `event` says which events `category` and `delta` are about; None: all, in order.
    """
    unique, place = np.unique(moments, return_inverse=True)
    num = len(unique)
    if event is None:
        begun = np.zeros(len(delta) + 1, np.int64)
        begun[np.minimum(unique, len(delta))] = 1
        # Events from one moment on, before the next, count from that next one on.
        later = np.cumsum(begun[: len(delta)])
    else:
        later = np.searchsorted(unique, event, "right")
    keys = category.astype(np.int64)
    keys *= num + 1
    keys += later
    sums = _by_key(keys, delta, num_categories * (num + 1))
    by_category = sums.reshape(num_categories, num + 1)
    result: Floats = np.cumsum(by_category, axis=1)[:, place.reshape(-1)]
    return result


@dataclass(frozen=True, slots=True, eq=False)
class OwnedEvents:
    """Events that have an owner, sorted by owner and category, in groups of both."""

    event: npt.NDArray[np.int32]
    delta: Ints
    start: Ints
    """Of each group; the first event's place."""
    owner: Ints
    category: Ints


def owned_events(
    event: Ints,
    owner: npt.NDArray[np.int32],
    category: npt.NDArray[np.uint8],
    delta: Ints,
) -> OwnedEvents:
    """Sort and group events; `owner` of each is a module's row."""
    # Least significant key first, and 16 bits at a time: numpy sorts those by radix.
    order = np.argsort(category, kind="stable")
    for shift in (0, 16):
        if not shift or int(owner.max(initial=0)) >> shift:
            digits = (owner[order] >> shift).astype(np.uint16)
            order = order[np.argsort(digits, kind="stable")]
    owner, category = owner[order], category[order]
    new = (owner[1:] != owner[:-1]) | (category[1:] != category[:-1])
    start = np.flatnonzero(np.concatenate([np.ones(min(len(order), 1), bool), new]))
    return OwnedEvents(
        event=event[order].astype(np.int32),
        delta=delta[order],
        start=start,
        owner=owner[start].astype(np.int64),
        category=category[start].astype(np.int64),
    )


def own_at(
    moment: Ints, parent: Ints, events: OwnedEvents, num_categories: int
) -> Floats:
    """By (category, module): what each module holds by itself at its moment.

    Modules whose moment is negative get 0.
    """
    num = len(parent)
    sums = np.zeros(num_categories * num)
    _add_groups(sums, events, events.owner, moment, num)
    return sums.reshape(num_categories, num)


def held_at(
    moment: Ints, parent: Ints, events: OwnedEvents, num_categories: int
) -> Floats:
    """By (category, module): what each module and those below it hold at its moment.

    Modules whose moment is negative get 0.
    """
    num = len(parent)
    if num and (moment == moment[0]).all():
        return with_below(parent, own_at(moment, parent, events, num_categories))
    sums = np.zeros(num_categories * num)
    module = events.owner
    while (module >= 0).any():
        _add_groups(sums, events, module, moment, num)
        # The same events once more, for the modules one level up.
        module = np.where(module >= 0, parent[module], -1)
    return sums.reshape(num_categories, num)


def _add_groups(
    sums: Floats, events: OwnedEvents, module: Ints, moment: Ints, num: int
) -> None:
    """Add to each group's module what the group holds at that module's moment."""
    if not len(events.start):
        return
    until = np.where(module >= 0, moment[module], -1)
    length = np.diff(events.start, append=len(events.event))
    early = events.event < np.repeat(until.astype(np.int32), length)
    group_bytes = np.add.reduceat(np.where(early, events.delta, 0), events.start)
    # Groups above the root hold nothing, whichever module they are added to.
    sums += _by_key(
        events.category * num + np.maximum(module, 0), group_bytes, len(sums)
    )


def highest_between(total: Ints, first: Ints, last: Ints) -> Ints:
    """For each pair of moments: the moment of the highest total from one to the other.

    Both ends belong to it; of equals the first. Costs a few passes over the log and one
    per power of two of the number of distinct ends, however the pairs overlap.
    """
    ends = distinct(np.concatenate([first, last]))
    if not len(ends):
        return np.empty(0, np.int64)
    best = first_highest(total, ends)
    low = np.searchsorted(ends, first)
    num = np.searchsorted(ends, last) - low
    result = np.where(total[last] > total[first], last, first)
    some = num > 0
    level = np.frexp(num)[1] - 1
    # `best[i]` is that of the 2**k pieces from i on; two of them cover any stretch.
    k, width = 0, 1
    while True:
        rows = np.flatnonzero(some & (level == k))
        left, right = best[low[rows]], best[low[rows] + num[rows] - width]
        result[rows] = _higher(total, _higher(total, left, right), last[rows])
        if not (level > k).any():
            return result
        best = _higher(total, best[:-width], best[width:])
        k, width = k + 1, width * 2


def descendants(parent: Ints, row: int) -> npt.NDArray[np.bool_]:
    """The module and all below it; parents come before children."""
    inside = np.zeros(len(parent) + 1, bool)  # the last one stands for "no parent"
    inside[row] = True
    while True:
        grown = inside[:-1] | inside[parent]
        if (grown == inside[:-1]).all():
            return grown
        inside[:-1] = grown


def _by_key(keys: Ints, weights: Ints | Floats, num_keys: int) -> Floats:
    # Without any key numpy gives integers, whatever the weights. Of a log without
    # categories all events are left out: they weigh nothing.
    sums = np.bincount(keys, weights=weights, minlength=num_keys)
    return np.asarray(sums[:num_keys], np.float64)


def _higher(total: Ints, earlier: Ints, later: Ints) -> Ints:
    """Of each two moments the one with the higher total; the earlier of equals."""
    result: Ints = np.where(total[later] > total[earlier], later, earlier)
    return result
