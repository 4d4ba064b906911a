"""Part of the route `/operator_memory`: allocations, and who holds most at the peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.memory import CATEGORIES, FOLDS_INTO
from tb_plugin.analysis.trace.trace import NOTHING
from tb_plugin.analysis.trace_memory.attribution import OTHER
from tb_plugin.analysis.trace_memory.holders import memory_holders
from tb_plugin.api.operators import (
    TraceAllocations,
    TraceMemoryCategory,
    TraceMemoryHolders,
    TraceMemoryPeak,
)
from tb_plugin.contract.wire import f64, i32, u8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.analysis.trace.profile import TraceProfile
    from tb_plugin.analysis.trace_memory.attribution import TraceLives
    from tb_plugin.api.base import I32Column

_MS: Final = 1e6
MAX_ALLOCATIONS: Final = 1_000
MAX_HOLDERS: Final = 500
_MAX_TEXT: Final = 200
_STEP: Final = "ProfilerStep#"

CATEGORIES_SENT: Final = tuple(
    TraceMemoryCategory(name=name, group=FOLDS_INTO[name])  # type: ignore[arg-type]
    for name in CATEGORIES
)


@dataclass(frozen=True, slots=True)
class SentAllocations:
    """What the answer says of allocations, and the names that it speaks of."""

    allocations: TraceAllocations
    num_allocations: int
    operators: tuple[str, ...]
    modules: tuple[str, ...]
    phases: tuple[str, ...]
    peak: TraceMemoryPeak | None


class _Names:
    """Names that are sent, each once, by their rows in a table of more."""

    def __init__(self, table: Sequence[str]) -> None:
        self._table = table
        self._rows: dict[int, int] = {}

    def rows(self, of: Ints) -> I32Column:
        """Where names of the table are sent; NOTHING stays so."""
        return i32(
            [
                -1 if row < 0 else self._rows.setdefault(row, len(self._rows))
                for row in of.tolist()
            ]
        )

    @property
    def sent(self) -> tuple[str, ...]:
        """All that were asked for, in order."""
        return tuple(self._table[row][:_MAX_TEXT] for row in self._rows)


def allocations_of(
    profile: TraceProfile, events: Ints, window: tuple[int, int]
) -> SentAllocations:
    """Of one device, whose `events` these are, in a range of time."""
    trace, lives = profile.trace, profile.lives
    rows, start, end = _touching(profile, events, window)
    size = np.abs(trace.memory.num_bytes[rows].astype(np.int64))
    order = np.argsort(-size, kind="stable")[:MAX_ALLOCATIONS]
    life = _lives_of(lives, rows[order])
    operators, modules = _Names(trace.strings), _Names(lives.modules)
    phases = _Names(lives.phases)
    peak = _peak_of(profile, events, window, modules, phases)
    allocations = TraceAllocations(
        operator=operators.rows(_owners(profile, rows[order])),
        num_bytes=f64(size[order]),
        allocated_ms=f64((start[order] - trace.start_ns) / _MS),
        released_ms=f64((end[order] - trace.start_ns) / _MS),
        category=u8(_of(lives.category, life, OTHER)),
        evidence=u8(_of(lives.evidence, life, 0)),
        module=modules.rows(_of(lives.module, life, NOTHING)),
        phase=phases.rows(_of(lives.phase, life, NOTHING)),
    )
    return SentAllocations(
        *(allocations, len(rows), operators.sent, modules.sent, phases.sent, peak)
    )


def _touching(
    profile: TraceProfile, events: Ints, window: tuple[int, int]
) -> tuple[Ints, Ints, Ints]:
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
    touches = (np.nan_to_num(start, nan=-np.inf) <= window[1]) & (
        np.nan_to_num(end, nan=np.inf) >= window[0]
    )
    return rows[touches], start[touches], end[touches]


def _owners(profile: TraceProfile, events: Ints) -> Ints:
    """The name, as row of texts, of what made each; NOTHING where that is the step alone.

    It is the operator, else the annotation or the frame of Python around it.
    """
    slices, strings = profile.trace.slices, profile.trace.strings
    owners = profile.memory_operators[events]
    owners = np.where(owners == NOTHING, profile.memory_slices[events], owners)
    if not len(slices):
        return np.full(len(events), NOTHING)
    names = np.where(owners == NOTHING, NOTHING, slices.name[np.maximum(owners, 0)])
    is_step = [row >= 0 and strings[row].startswith(_STEP) for row in names.tolist()]
    return np.where(is_step, NOTHING, names)


def _lives_of(lives: TraceLives, events: Ints) -> Ints:
    """The life of each event, or NOTHING: without addresses nothing is known of any."""
    if not len(lives):
        return np.full(len(events), NOTHING)
    at = np.minimum(np.searchsorted(lives.event, events), len(lives) - 1)
    return np.where(lives.event[at] == events, at, NOTHING)


def _of(column: Ints, life: Ints, otherwise: int) -> Ints:
    if not len(column):
        return np.full(len(life), otherwise)
    return np.where(life == NOTHING, otherwise, column[np.maximum(life, 0)])


def _peak_of(
    profile: TraceProfile,
    events: Ints,
    window: tuple[int, int],
    modules: _Names,
    phases: _Names,
) -> TraceMemoryPeak | None:
    """Who holds most of a device, where it holds most."""
    if not profile.memory_pairs.are_known:
        return None
    trace = profile.trace
    found = memory_holders(trace.memory, profile.lives, events, window)
    if found is None:
        return None
    shown = slice(MAX_HOLDERS)
    total = found.allocated_bytes
    return TraceMemoryPeak(
        time_ms=(found.time_ns - trace.start_ns) / _MS,
        allocated_bytes=None if total is None else float(total),
        seen_bytes=float(found.seen_bytes),
        unseen_bytes=float(found.unseen_bytes),
        unknown_bytes=float(found.unknown_bytes),
        holders=TraceMemoryHolders(
            category=u8(found.category[shown]),
            module=modules.rows(found.module[shown]),
            phase=phases.rows(found.phase[shown]),
            num_bytes=f64(found.num_bytes[shown]),
            num_allocations=f64(found.num_allocations[shown]),
        ),
        num_holders=len(found),
    )
