"""Allocations of a device that touch a range of time, and holders of its peak by place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    Table,
    numbered,
    picked,
    places_in,
    sums,
)
from memboard.tb_plugin.analysis.time.step_marks import is_step_mark
from memboard.tb_plugin.analysis.trace_memory.attribution import OTHER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace_memory.attribution import MemoryHolders


@dataclass(frozen=True, slots=True, eq=False)
class TraceAllocations(Table):
    """Allocations of one device, the largest first; columns of equal length."""

    num_bytes: Ints
    allocated_ns: Floats
    """NaN: before the trace began."""
    released_ns: Floats
    """NaN: not while it was recorded, or not known."""
    owner: Ints
    """Row of `Trace.strings`: the operator that made it, else the annotation or frame of
    Python around it; NOTHING where that is the step alone."""
    category: Ints
    evidence: Ints
    module: Ints  # As in `TraceLives`, likewise the phase
    phase: Ints


def allocations_in(
    profile: TraceProfile, events: Ints, range_ns: tuple[int, int], most: int
) -> tuple[TraceAllocations, int]:
    """The largest allocations that touch a range, and how many there are.

    Args:
        profile: the trace's analyses.
        events: of one device, ascending.
        range_ns: the range, both ends included.
        most: allocations that are returned.
    """
    lives = profile.lives
    rows, start, end = _touching(profile, events, range_ns)
    size = np.abs(profile.trace.memory.num_bytes[rows].astype(np.int64))
    order = np.argsort(-size, kind="stable")[:most]
    # Without addresses nothing is known of any.
    life = places_in(lives.event, rows[order])
    allocations = TraceAllocations(
        num_bytes=size[order],
        allocated_ns=start[order],
        released_ns=end[order],
        owner=_owners(profile, rows[order]),
        category=picked(lives.category, life, OTHER),
        evidence=picked(lives.evidence, life, 0),
        module=picked(lives.module, life, NOTHING),
        phase=picked(lives.phase, life, NOTHING),
    )
    return allocations, len(rows)


def _touching(
    profile: TraceProfile, events: Ints, range_ns: tuple[int, int]
) -> tuple[Ints, Floats, Floats]:
    """Events that stand for allocations that touch a range, their starts and ends."""
    memory, pairs = profile.trace.memory, profile.memory_pairs
    made = memory.num_bytes[events] > 0
    # A release whose allocation was before the trace stands for it.
    lost = ~made & (pairs.allocation[events] == NOTHING) & pairs.are_known
    rows = events[made | lost]
    start = np.where(memory.num_bytes[rows] > 0, memory.time_ns[rows], np.nan)
    release = pairs.release[rows]
    end = np.where(release == NOTHING, np.nan, memory.time_ns[np.maximum(release, 0)])
    end = np.where(np.isnan(start), memory.time_ns[rows], end)
    touches = (np.nan_to_num(start, nan=-np.inf) <= range_ns[1]) & (
        np.nan_to_num(end, nan=np.inf) >= range_ns[0]
    )
    return rows[touches], start[touches], end[touches]


def _owners(profile: TraceProfile, events: Ints) -> Ints:
    slices, strings = profile.trace.slices, profile.trace.strings
    owners = profile.times.memory_operators[events]
    owners = np.where(owners == NOTHING, profile.times.memory_slices[events], owners)
    names = picked(slices.name, owners, NOTHING)
    is_step = [row >= 0 and is_step_mark(strings[row]) for row in names.tolist()]
    return np.where(is_step, NOTHING, names)


@dataclass(frozen=True, slots=True, eq=False)
class PeakHolders(Table):
    """Holders of a peak that are alike in some of their places, most bytes first."""

    num_bytes: Ints
    num_allocations: Ints
    category: Ints  # As in `MemoryHolders`; of the others in a row it may differ
    module: Ints
    phase: Ints


def holders_by(
    holders: MemoryHolders, places: Sequence[str], most: int
) -> tuple[PeakHolders, int]:
    """The largest groups by `category`, `module`, `phase` or several; and how many there are."""
    first, group = numbered(*(getattr(holders, place) for place in places))
    num_bytes = sums(group, holders.num_bytes, len(first))
    order = np.argsort(-num_bytes, kind="stable")[:most]
    rows = first[order]
    num_allocations = sums(group, holders.num_allocations, len(first))
    peak_holders = PeakHolders(
        num_bytes=num_bytes[order],
        num_allocations=num_allocations[order],
        category=holders.category[rows],
        module=holders.module[rows],
        phase=holders.phase[rows],
    )
    return peak_holders, len(first)
