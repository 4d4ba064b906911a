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
        text_of_life = np.full(num_lives, NOTHING, np.int64)
        text_of_life[self.life] = self.text  # the last one written stays
        return text_of_life


def annotations_of(events: Events, lives: Lifetimes) -> AllocationAnnotations:
    """Those of a device whose text says something, and whose allocation is known."""
    events_annotated = events.of_action(ANNOTATE)
    events_annotated = events_annotated[events.annotation[events_annotated] != NOTHING]
    num = len(lives)
    # Lives by address and birth, each followed by the annotations that come before the
    # next life there.
    addr = np.concatenate([lives.addr, events.addr[events_annotated]])
    moment = np.concatenate([lives.born, events_annotated])
    order = np.lexsort((moment, addr))
    last = np.maximum.accumulate(np.where(order < num, np.arange(len(order)), NOTHING))
    is_annotation = (order >= num) & (last != NOTHING)
    life = order[last[is_annotation]]
    row = order[is_annotation] - num
    fits = (lives.addr[life] == events.addr[events_annotated[row]]) & (
        lives.gone[life] > events_annotated[row]
    )
    life, row = life[fits], row[fits]
    by_time = np.argsort(row)
    return AllocationAnnotations(
        life[by_time], events.annotation[events_annotated[row[by_time]]]
    )
