"""The routes of a trace's tables: operators, one of them, and module times."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.time.operators import callees, is_eligible
from tb_plugin.analysis.trace.texts import are
from tb_plugin.api.operators import (
    OperatorResponse,
    OperatorsBy,
    OperatorsResponse,
    OperatorStack,
    OperatorTotals,
)
from tb_plugin.api.profile import ModuleTimesResponse
from tb_plugin.contract.parameters import Text
from tb_plugin.contract.wire import i32, u8
from tb_plugin.pages.operators.table import MAX_TEXT, Number, Table, text_of
from tb_plugin.pages.profile.asked import MS, SourceQuery, TableQuery, of_profile

if TYPE_CHECKING:
    from tb_plugin.analysis.arrays import Flags, Ints
    from tb_plugin.analysis.trace.profile import TraceProfile
    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.api.base import RunSummary
    from tb_plugin.api.profile import ProfileChoice

MAX_CALLS: Final = 2_000
"""Calls of one operator whose stacks are looked at: the longest."""
MAX_STACKS: Final = 100
MAX_CALLEES: Final = 300
"""Paths below an operator that are sent: the longest."""
_MAX_FRAMES: Final = 200
_PYTHON: Final = re.compile("python_function", re.IGNORECASE)
_MAX_NAME: Final = 200
_OPERATORS: Final = Table(
    texts=("name", "shapes"),
    numbers=(
        Number("num_calls"),
        Number("host_self_ms", "host_self_ns", MS),
        Number("host_total_ms", "host_total_ns", MS),
        Number("device_self_ms", "device_self_ns", MS),
        Number("device_total_ms", "device_total_ns", MS),
        Number("tensor_core_self_share"),
        Number("tensor_core_total_share"),
    ),
)
MAX_MODULES: Final = 5_000
"""Rows that are sent; a parent's row comes before its own, so these are a whole tree."""
_MAX_MODULE: Final = 500
_KNOWN: Final = ("arrows", "sequence_numbers")
_FORWARD: Final = Table(
    (
        Number("parent", wire=i32),
        Number("num_calls"),
        Number("num_operators"),
        Number("host_ms", "host_ns", MS),
        Number("host_self_ms", "host_self_ns", MS),
        Number("device_ms", "device_ns", MS),
        Number("device_self_ms", "device_self_ns", MS),
    )
)
_BACKWARD: Final = Table(
    (
        Number("backward_host_ms", "backward_host_ns", MS),
        Number("backward_host_self_ms", "backward_host_self_ns", MS),
        Number("backward_device_ms", "backward_device_ns", MS),
        Number("backward_device_self_ms", "backward_device_self_ns", MS),
    )
)


class OperatorsQuery(TableQuery, frozen=True):
    """Operators by name, or apart by the shapes of their inputs."""

    by: OperatorsBy = "name"


class OperatorQuery(SourceQuery, frozen=True):
    """One operator, of any shapes or of some."""

    name: Text = ""
    by: OperatorsBy = "name"
    shapes: Text | None = None


@of_profile("operators", OperatorsQuery)
def operators(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: OperatorsQuery
) -> OperatorsResponse:
    """The table of a trace."""
    strings = profile.trace.strings
    table = profile.operators_by_shapes if query.by == "shapes" else profile.operators
    default = "device_self_ms" if profile.devices else "host_self_ms"
    rows, num_rows = _OPERATORS.rows(
        table, strings, query, default, np.arange(len(table))
    )
    return OperatorsResponse(
        run=run,
        choice=choice,
        by=query.by,
        **_OPERATORS.sent(table, strings, rows),
        is_eligible=u8(
            [is_eligible(strings[row]) for row in table.name[rows].tolist()]
        ),
        num_rows=num_rows,
        totals=OperatorTotals(
            host_self_ms=float(table.host_self_ns.sum()) / MS,
            device_self_ms=float(table.device_self_ns.sum()) / MS,
            num_calls=float(table.num_calls.sum()),
        ),
        has_devices=len(profile.trace.device_work.row) > 0,
        has_stacks=_has_stacks(profile),
        has_shapes=_has_shapes(profile),
    )


def _has_shapes(profile: TraceProfile) -> bool:
    dims = profile.trace.operators.input_dims
    known = np.unique(dims[dims >= 0])
    return any(profile.trace.strings[int(row)] for row in known[:2])


@of_profile("operator", OperatorQuery)
def operator(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: OperatorQuery
) -> OperatorResponse:
    """Where one operator is called from."""
    calls = _calls(profile, query)
    took = profile.trace.slices.duration_ns[calls]
    longest = calls[np.argsort(-took, kind="stable")[:MAX_CALLS]]
    return OperatorResponse(
        run=run,
        choice=choice,
        name=query.name[:MAX_TEXT],
        stacks=_stacks(profile, longest),
        num_calls=float(len(calls)),
        num_looked_at=float(len(longest)),
        callees=_callees(profile, longest),
    )


def _callees(profile: TraceProfile, calls: Ints) -> tuple[OperatorStack, ...]:
    strings = profile.trace.strings
    return tuple(
        OperatorStack(
            frames=tuple(strings[name][:_MAX_NAME] for name in one.path),
            num_calls=float(one.num_calls),
            host_ms=one.host_self_ns / MS,
            device_ms=one.device_self_ns / MS,
        )
        for one in callees(profile.times, calls, MAX_CALLEES)
    )


def _calls(profile: TraceProfile, query: OperatorQuery) -> Ints:
    """Slices of the operator that is asked for."""
    strings = profile.trace.strings
    # Calls whose shapes the profiler did not write are a group too: of empty shapes.
    by_shapes = query.by == "shapes" or query.shapes is not None
    table = profile.operators_by_shapes if by_shapes else profile.operators
    name, shapes = query.name, query.shapes or ""
    wanted = [
        row
        for row in range(len(table))
        if text_of(strings, table.name[row]) == name
        and (not by_shapes or text_of(strings, table.shapes[row]) == shapes)
    ]
    return np.flatnonzero(np.isin(table.group_of, wanted))


def _is_python(trace: Trace) -> Flags:
    """By slice: whether it is a frame of Python."""
    return are(trace.strings, trace.slices.category, _PYTHON.fullmatch)


def _has_stacks(profile: TraceProfile) -> bool:
    trace = profile.trace
    if _is_python(trace).any():
        return True
    written = trace.operators.call_stack
    known = np.unique(written[written >= 0])
    return any(trace.strings[int(row)] for row in known[:2])


def _stacks(profile: TraceProfile, calls: Ints) -> tuple[OperatorStack, ...]:
    """Python frames around calls, and what the calls of each stack took."""
    trace = profile.trace
    is_python = _is_python(trace)
    written = _written_stacks(profile, calls)
    sums: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    device_ns = profile.times.device_total_ns
    for call, text in zip(calls.tolist(), written.tolist(), strict=True):
        frames: list[str] = []
        around = int(trace.slices.parent[call])
        while around >= 0 and len(frames) < _MAX_FRAMES:
            if is_python[around]:
                frames.append(trace.name_of(around))
            around = int(trace.slices.parent[around])
        if not frames and text >= 0 and trace.strings[text]:
            frames = trace.strings[text].split(";", _MAX_FRAMES)[:_MAX_FRAMES]
        found = sums[tuple(frames)]
        found[0] += 1
        found[1] += int(trace.slices.duration_ns[call])
        found[2] += int(device_ns[call])
    most = sorted(sums.items(), key=lambda item: -item[1][1])[:MAX_STACKS]
    return tuple(
        OperatorStack(
            frames=tuple(frame[:MAX_TEXT] for frame in frames),
            num_calls=num,
            host_ms=host / MS,
            device_ms=device / MS,
        )
        for frames, (num, host, device) in most
        if frames
    )


def _written_stacks(profile: TraceProfile, calls: Ints) -> Ints:
    """The stack that profilers before torch 1.13 wrote with each call, as row of texts.

    Its frames are separated by `;`, the innermost first; -1: none is written.
    """
    known = profile.trace.operators
    if not len(known.row):
        return np.full(len(calls), -1)
    at = np.minimum(np.searchsorted(known.row, calls), len(known.row) - 1)
    return np.where(known.row[at] == calls, known.call_stack[at], -1)


@of_profile("module_times", SourceQuery)
def module_times(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, _query: SourceQuery
) -> ModuleTimesResponse:
    """The modules of a trace."""
    table, strings = profile.modules, profile.trace.strings
    rows = np.arange(min(len(table), MAX_MODULES))
    backward = _BACKWARD.sent(table, strings, rows)
    if table.backward_by not in _KNOWN:
        backward = dict.fromkeys(backward, np.full(len(rows), np.nan))
    return ModuleTimesResponse(
        run=run,
        choice=choice,
        name=tuple(name[:_MAX_MODULE] for name in table.name[:MAX_MODULES]),
        **_FORWARD.sent(table, strings, rows),
        **backward,
        backward=table.backward_by,
        has_devices=len(profile.trace.device_work.row) > 0,
        has_modules=len(table) > 0,
        num_modules=len(table),
    )
