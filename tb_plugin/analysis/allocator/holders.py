"""Who holds how much in each pixel column: live bytes by group, as sparse changes.

The matrix behind the flamegraph and the list of holders that follow the mouse: adding up
the changes of all columns up to one gives what each group holds there. Its columns are
those of the picture (`stacking.columns`), so both add up to the same totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.allocator.stacking import seen
from tb_plugin.analysis.arrays import changes

if TYPE_CHECKING:
    from tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from tb_plugin.analysis.arrays import Ints


MAX_CELLS: Final = 1 << 23
"""Groups times columns that are looked at for the largest; the least of more groups,
by bytes times columns, are among the others from the start."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Live bytes by group at columns of events."""

    group: Ints
    """Of each slot, the group; the slot behind the last is that of all others."""
    column: Ints
    """Of each change, ascending."""
    slot: Ints
    delta: Ints
    """Bytes; of column 0 all that lives there."""
    total: Ints
    """(columns,): bytes of all slots."""


def holders(
    lives: Lifetimes, group: Ints, num_groups: int, at: Ints, most: int
) -> Holders:
    """The `most` groups that hold most in any column, and all others in one slot.

    Args:
        lives: the allocations, in order of birth.
        group: by life, from 0; a negative one counts among the others.
        num_groups: how many groups there are.
        at: the events of the columns, ascending.
        most: slots at most, beside that of the others.
    """
    width = len(at)
    found = seen(lives, at)
    rows, first, end = found.rows, found.first, found.end
    size = lives.size[rows]
    chosen = _candidates(group[rows], num_groups, size * (end - first), width)
    slot_of = np.full(num_groups + 1, len(chosen), np.int64)  # the last one: negative
    slot_of[chosen] = np.arange(len(chosen))
    slot = slot_of[group[rows]]
    came = changes(first, end, size, width, slot, len(chosen) + 1)
    held = np.cumsum(came, axis=1)
    total = held.sum(axis=0)
    peak = held[:-1].max(axis=1, initial=0)
    kept = np.argsort(-peak, kind="stable")[:most]
    kept = kept[peak[kept] > 0]
    others = np.ones(len(chosen) + 1, np.bool_)
    others[kept] = False
    came = np.concatenate([came[kept], came[others].sum(axis=0)[None]])
    column, slot = np.nonzero(came.T)
    return Holders(chosen[kept], column, slot, came[slot, column], total)


def _candidates(group: Ints, num_groups: int, weight: Ints, width: int) -> Ints:
    """Groups that may be among the largest: all, if they are not too many."""
    weights = np.zeros(num_groups, np.float64)
    known = group >= 0
    np.add.at(weights, group[known], weight[known].astype(np.float64))
    room = MAX_CELLS // max(1, width)
    found = np.flatnonzero(weights)
    if len(found) > room:
        found = np.sort(found[np.argsort(-weights[found], kind="stable")[:room]])
    return found
