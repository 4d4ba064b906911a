"""Annotations of allocations: what `annotate` events say of memory that was there already.

torch 2.14's `_annotate_tensor` writes one with a text of the program's own. It is of the
allocation that lives at its address just then; several of one allocation add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import ANNOTATE
from memboard.tb_plugin.analysis.arrays import NOTHING, Table

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Events


@dataclass(frozen=True, slots=True)
class AllocationAnnotations(Table):
    """One row per annotation, in the order of their events."""

    life: Ints
    text: Ints  # Row of `Snapshot.texts`

    def of_life(self, num_lives: int) -> Ints:
        """By life: the text of its last annotation, or NOTHING."""
        found = np.full(num_lives, NOTHING, np.int64)
        found[self.life] = self.text  # the last one written stays
        return found


def annotations_of(events: Events, lives: Lifetimes) -> AllocationAnnotations:
    """Those of a device whose text says something, and whose allocation is known."""
    at = events.of_action(ANNOTATE)
    at = at[events.annotation[at] != NOTHING]
    num = len(lives)
    # Lives by address and birth, each followed by the annotations that come before the
    # next life there.
    addr = np.concatenate([lives.addr, events.addr[at]])
    moment = np.concatenate([lives.born, at])
    order = np.lexsort((moment, addr))
    last = np.maximum.accumulate(np.where(order < num, np.arange(len(order)), NOTHING))
    is_annotation = (order >= num) & (last != NOTHING)
    life = order[last[is_annotation]]
    row = order[is_annotation] - num
    fits = (lives.addr[life] == events.addr[at[row]]) & (lives.gone[life] > at[row])
    life, row = life[fits], row[fits]
    by_time = np.argsort(row)
    return AllocationAnnotations(life[by_time], events.annotation[at[row[by_time]]])
