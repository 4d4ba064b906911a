"""The allocations of a trace, and who holds most of a device where it holds most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.arrays import NOTHING, numbered, sums
from memboard.tb_plugin.analysis.trace_memory.attribution import (
    EVIDENCE,
    OTHER,
    memory_holders,
)
from memboard.tb_plugin.api.operators import TraceMemoryPart, TraceMemoryPeak
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.contract.table import Column, titled
from memboard.tb_plugin.facts.traces.profiled import MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace_memory.attribution import (
        MemoryHolders,
        TraceLives,
    )

HoldersBy: TypeAlias = Literal["category", "module", "phase", "all"]

MAX_ALLOCATIONS: Final = 1_000
MAX_HOLDERS: Final = 500
_MAX_TEXT: Final = 200
_STEP: Final = "ProfilerStep#"
_PLACES: Final = (
    Column(
        "category",
        "Category",
        unit="category",
        help="What the memory is for: the rules of recorded histories, over what the trace says "
        "around each allocation. Other: unknown.",
    ),
    Column(
        "module",
        "Module",
        unit="text",
        help="The innermost module that ran when it was allocated; needs with_stack or "
        "with_modules of torch.profiler",
        absent="No module is known to have run then",
    ),
    Column(
        "phase",
        "Made in",
        unit="text",
        help="What ran when it was allocated: a part of the step, or FSDP2's annotation",
        absent="No part of the step is known then",
    ),
)
_ALLOCATIONS: Final = (
    Column(
        "operator",
        "Operator",
        unit="name",
        help="The innermost operator that ran on the thread when it was allocated",
        absent="No operator ran when it was allocated",
    ),
    *_PLACES,
    Column(
        "num_bytes",
        "Size",
        unit="bytes",
        help="Bytes as the allocator reported them: on an accelerator rounded up to its blocks",
        bar="row",
    ),
    Column(
        "allocated_ms",
        "Allocated",
        unit="ms",
        help="Since the trace began",
        absent="Before the trace began",
    ),
    Column(
        "released_ms",
        "Released",
        unit="ms",
        help="Since the trace began: the next release of the same address",
        absent="It was still there when the trace ended",
    ),
    Column(
        "duration_ms",
        "Lived",
        unit="ms",
        help="Released less allocated",
        absent="The trace does not hold both its beginning and its end",
    ),
)
_HOLDERS: Final = (
    *_PLACES,
    Column(
        "num_bytes",
        "At the peak",
        unit="bytes",
        help="Bytes that were allocated and not yet freed at the peak of the part shown",
        bar="row",
    ),
    Column(
        "share",
        "Share",
        unit="share",
        help="Of the allocator's total at the peak, or of what the trace shows where that is more",
    ),
    Column(
        "num_allocations", "Allocations", unit="count", help="Live ones at the peak"
    ),
)


def _named(names: Sequence[str], rows: Ints) -> list[str]:
    return [names[row][:_MAX_TEXT] if row >= 0 else "" for row in rows.tolist()]


def allocations_of(
    profile: TraceProfile, events: Ints, window: tuple[int, int]
) -> TableRows:
    """Of one device, whose `events` these are, those that touch a range of time."""
    trace, lives = profile.trace, profile.lives
    rows, start, end = _touching(profile, events, window)
    size = np.abs(trace.memory.num_bytes[rows].astype(np.int64))
    order = np.argsort(-size, kind="stable")[:MAX_ALLOCATIONS]
    life = _lives_of(lives, rows[order])
    begun, gone = ((one[order] - trace.start_ns) / MS for one in (start, end))
    category = _named(CATEGORIES, _of(lives.category, life, OTHER))
    why = [EVIDENCE[row] for row in _of(lives.evidence, life, 0).tolist()]
    values: dict[str, Any] = {
        "operator": _named(trace.strings, _owners(profile, rows[order])),
        "category": category,
        "module": _named(lives.modules, _of(lives.module, life, NOTHING)),
        "phase": _named(lives.phases, _of(lives.phase, life, NOTHING)),
        "num_bytes": size[order],
        "allocated_ms": begun,
        "released_ms": gone,
        "duration_ms": gone - begun,
    }
    never = {"absent_text": "not freed"}
    if not profile.memory_pairs.are_known:
        never = {
            "absent": "The trace does not say which allocation a release belongs to"
        }
    more: dict[str, dict[str, Any]] = {
        "operator": {"absent_text": "unknown"},
        "category": {"hints": tuple(why)},
        "allocated_ms": {"absent_text": "before"},
        "released_ms": never,
    }
    table = TableRows(
        columns=tuple(
            one.sent(values[one.key], **more.get(one.key, {})) for one in _ALLOCATIONS
        ),
        num_rows=len(order),
        num_all=len(rows),
        usual="num_bytes",
        colours=tuple(category),
    )
    words = f"{counted(len(rows), 'allocation')}; point at one to see it on the curve"
    if not profile.memory_pairs.are_known:
        words += "; when they were freed is not known, as the trace has no addresses"
    return titled(table, "Allocations", words, "No allocation lies in this part.")


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
    owners = profile.times.memory_operators[events]
    owners = np.where(owners == NOTHING, profile.times.memory_slices[events], owners)
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


def peak_of(
    profile: TraceProfile, events: Ints, window: tuple[int, int], by: HoldersBy
) -> TraceMemoryPeak | None:
    """Who holds most of a device, where it holds most."""
    if not profile.memory_pairs.are_known:
        return None
    trace = profile.trace
    found = memory_holders(trace.memory, profile.lives, events, window)
    if found is None:
        return None
    total = found.allocated_bytes
    whole = max(total or 0, found.seen_bytes)
    of_category = _grouped(profile.lives, found, "category", whole)
    parts = [
        TraceMemoryPart(name=name, num_bytes=num_bytes)
        for name, num_bytes in zip(
            of_category.colours, of_category.columns[1].numbers.tolist(), strict=True
        )
    ]
    if found.unseen_bytes:
        parts.append(TraceMemoryPart("", float(found.unseen_bytes)))
    return TraceMemoryPeak(
        time_ms=(found.time_ns - trace.start_ns) / MS,
        whole_bytes=float(whole),
        unknown_bytes=float(found.unknown_bytes),
        parts=tuple(parts),
        holders=_grouped(profile.lives, found, by, whole),
    )


def _grouped(
    lives: TraceLives, found: MemoryHolders, by: HoldersBy, whole: int
) -> TableRows:
    """Holders that are alike in what is asked for, those of most bytes first."""
    places = ("category", "module", "phase") if by == "all" else (by,)
    first, group = numbered(*(getattr(found, place) for place in places))
    num_bytes = sums(group, found.num_bytes, len(first))
    order = np.argsort(-num_bytes, kind="stable")[:MAX_HOLDERS]
    rows = first[order]
    category = _named(CATEGORIES, found.category[rows])
    values: dict[str, Any] = {
        "category": category,
        "module": _named(lives.modules, found.module[rows]),
        "phase": _named(lives.phases, found.phase[rows]),
        "num_bytes": num_bytes[order],
        "share": num_bytes[order] / max(whole, 1),
        "num_allocations": sums(group, found.num_allocations, len(first))[order],
    }
    table = TableRows(
        columns=tuple(
            one.sent(values[one.key])
            for one in _HOLDERS
            if one not in _PLACES or one.key in places
        ),
        num_rows=len(rows),
        num_all=len(first),
        usual="num_bytes",
        colours=tuple(category) if "category" in places else ("param",) * len(rows),
    )
    empty = "The trace shows no allocation that was live then."
    return titled(table, "Holders of the peak", counted(len(first), "place"), empty)
