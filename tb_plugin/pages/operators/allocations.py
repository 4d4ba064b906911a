"""The allocations of a trace, and who holds most of a device where it holds most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.trace_memory.allocations import (
    allocations_in,
    holders_by,
)
from memboard.tb_plugin.analysis.trace_memory.attribution import (
    EVIDENCE,
    memory_holders,
)
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.api.time.operators import TraceMemoryPart, TraceMemoryPeak
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


def allocation_table(
    profile: TraceProfile, events: Ints, range_ns: tuple[int, int]
) -> TableRows:
    """Allocations of one device, whose `events` these are, that touch a range of time."""
    trace, lives = profile.trace, profile.lives
    allocations, num_all = allocations_in(profile, events, range_ns, MAX_ALLOCATIONS)
    allocated_ms = (allocations.allocated_ns - trace.start_ns) / MS
    released_ms = (allocations.released_ns - trace.start_ns) / MS
    category = _names(CATEGORIES, allocations.category)
    values: dict[str, Any] = {
        "operator": _names(trace.strings, allocations.owner),
        "category": category,
        "module": _names(lives.modules, allocations.module),
        "phase": _names(lives.phases, allocations.phase),
        "num_bytes": allocations.num_bytes,
        "allocated_ms": allocated_ms,
        "released_ms": released_ms,
        "duration_ms": released_ms - allocated_ms,
    }
    never = {"absent_text": "not freed"}
    if not profile.memory_pairs.are_known:
        never = {
            "absent": "The trace does not say which allocation a release belongs to"
        }
    evidence = tuple(EVIDENCE[row] for row in allocations.evidence.tolist())
    more: dict[str, dict[str, Any]] = {
        "operator": {"absent_text": "unknown"},
        "category": {"hints": evidence},
        "allocated_ms": {"absent_text": "before"},
        "released_ms": never,
    }
    table = TableRows(
        columns=tuple(
            column.sent(values[column.key], **more.get(column.key, {}))
            for column in _ALLOCATIONS
        ),
        num_rows=len(allocations),
        num_all=num_all,
        usual="num_bytes",
        colours=tuple(category),
    )
    summary = f"{counted(num_all, 'allocation')}; point at one to see it on the curve"
    if not profile.memory_pairs.are_known:
        summary += "; when they were freed is not known, as the trace has no addresses"
    return titled(table, "Allocations", summary, "No allocation lies in this part.")


def peak_of(
    profile: TraceProfile, events: Ints, range_ns: tuple[int, int], by: HoldersBy
) -> TraceMemoryPeak | None:
    """Who holds most of a device, where it holds most."""
    if not profile.memory_pairs.are_known:
        return None
    trace = profile.trace
    holders = memory_holders(trace.memory, profile.lives, events, range_ns)
    if holders is None:
        return None
    whole = max(holders.allocated_bytes or 0, holders.seen_bytes)
    of_category, _ = holders_by(holders, ("category",), MAX_HOLDERS)
    names = _names(CATEGORIES, of_category.category)
    parts = [
        TraceMemoryPart(name=category, num_bytes=float(num_bytes))
        for category, num_bytes in zip(
            names, of_category.num_bytes.tolist(), strict=True
        )
    ]
    if holders.unseen_bytes:
        parts.append(TraceMemoryPart("", float(holders.unseen_bytes)))
    return TraceMemoryPeak(
        time_ms=(holders.time_ns - trace.start_ns) / MS,
        whole_bytes=float(whole),
        unknown_bytes=float(holders.unknown_bytes),
        parts=tuple(parts),
        holders=_holder_table(profile.lives, holders, by, whole),
    )


def _holder_table(
    lives: TraceLives, holders: MemoryHolders, by: HoldersBy, whole_bytes: int
) -> TableRows:
    """Holders that are alike in `by`, those of most bytes first."""
    places = ("category", "module", "phase") if by == "all" else (by,)
    rows, num_all = holders_by(holders, places, MAX_HOLDERS)
    category = _names(CATEGORIES, rows.category)
    values: dict[str, Any] = {
        "category": category,
        "module": _names(lives.modules, rows.module),
        "phase": _names(lives.phases, rows.phase),
        "num_bytes": rows.num_bytes,
        "share": rows.num_bytes / max(whole_bytes, 1),
        "num_allocations": rows.num_allocations,
    }
    table = TableRows(
        columns=tuple(
            column.sent(values[column.key])
            for column in _HOLDERS
            if column not in _PLACES or column.key in places
        ),
        num_rows=len(rows),
        num_all=num_all,
        usual="num_bytes",
        colours=tuple(category) if "category" in places else ("param",) * len(rows),
    )
    empty = "The trace shows no allocation that was live then."
    return titled(table, "Holders of the peak", counted(num_all, "place"), empty)


def _names(names: Sequence[str], rows: Ints) -> list[str]:
    return [names[row][:_MAX_TEXT] if row >= 0 else "" for row in rows.tolist()]
