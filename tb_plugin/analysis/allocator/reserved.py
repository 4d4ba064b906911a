"""How much of the device the allocator had after each event: reserved bytes.

A segment_alloc or segment_map adds its size, a segment_free or segment_unmap takes it
away, and at the end it is the sum of the snapshot's segments: what that leaves for the
time before the first event was reserved before the recording began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tb_plugin.analysis.allocator.lifetimes import (
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    Levels,
)
from tb_plugin.analysis.arrays import grouped, sums

if TYPE_CHECKING:
    from tb_plugin.analysis.allocator.segment_spans import Spans
    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot


@dataclass(frozen=True, slots=True)
class Reserved:
    """Reserved bytes of a device."""

    levels: Levels
    num_below_zero: int
    """Moments at which more was given back than there was: events were lost, or are
    wrong. The levels are as they come out."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed by group and event; an event may change several groups."""

    first: Ints
    """(groups,): bytes before the first event."""
    event: Ints
    """Ascending."""
    group: Ints
    delta: Ints

    def levels(self, group: int) -> tuple[Ints, Ints]:
        """The events at which a group changed, and its bytes after each."""
        rows = self.group == group
        return self.event[rows], np.cumsum(self.delta[rows]) + int(self.first[group])


def reserved(device: DeviceSnapshot) -> Reserved:
    """Reserved bytes after each event of a device."""
    action = device.events.action
    sign = np.zeros(128, np.int64)  # by action; also of -1, which stands for unknown
    sign[[SEGMENT_ALLOC, SEGMENT_MAP]] = 1
    sign[[SEGMENT_FREE, SEGMENT_UNMAP]] = -1
    rows = np.flatnonzero(sign[action])
    delta = np.zeros(len(action), np.int64)
    delta[rows] = sign[action[rows]] * device.events.size[rows]
    after = np.cumsum(delta)
    first = device.reserved_bytes - (int(after[-1]) if len(after) else 0)
    after += first
    num_below = int(np.count_nonzero(after[rows] < 0)) + (first < 0)
    return Reserved(Levels(first, after), num_below)


def reserved_by(spans: Spans, group: Ints, num_groups: int, num_events: int) -> Changes:
    """Reserved bytes by any grouping of the spans, such as their pool or their stream.

    Rows whose group is negative count for none.
    """
    counts = group >= 0
    before = counts & (spans.opened < 0)
    first = sums(group[before], spans.size[before], num_groups)
    came = np.flatnonzero(counts & (spans.opened >= 0))
    went = np.flatnonzero(counts & (spans.closed < num_events))
    event = np.concatenate([spans.opened[came], spans.closed[went]])
    delta = np.concatenate([spans.size[came], -spans.size[went]])
    keys = event * num_groups + group[np.concatenate([came, went])]
    known, place = grouped(keys)
    total = sums(place, delta, len(known))
    return Changes(first, known // num_groups, known % num_groups, total)
