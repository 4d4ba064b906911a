"""Routes of a trace's operators, of one of them, and of the modules that called them."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import duration_text
from memboard.tb_plugin.analysis.operators.call_stacks import (
    FRAME,
    call_stacks,
    has_shapes,
    has_stacks,
    longest_calls,
)
from memboard.tb_plugin.analysis.operators.operators import callees
from memboard.tb_plugin.api.base import i32
from memboard.tb_plugin.api.time.operators import (
    OperatorResponse,
    OperatorsBy,
    OperatorsResponse,
    OperatorStack,
)
from memboard.tb_plugin.api.time.profile import ColumnSet, ModuleTimesResponse
from memboard.tb_plugin.contract.parameters import Text
from memboard.tb_plugin.contract.table import (
    MAX_TEXT,
    Column,
    table_of,
    text_of,
    titled,
)
from memboard.tb_plugin.facts.traces.module_table import module_rows
from memboard.tb_plugin.facts.traces.profiled import MS, SourceQuery, TableQuery
from memboard.tb_plugin.facts.traces.time_tables import operator_rows
from memboard.tb_plugin.facts.traces.work_columns import NO_DEVICE, work_summary
from memboard.tb_plugin.jobs.trace_captures import CAPTURES
from memboard.tb_plugin.server.views.trace import of_profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.operators.module_times import BackwardBy
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.api.time.profile import ProfileChoice

MAX_CALLS: Final = 2_000
"""Calls of one operator whose stacks are looked at: the longest."""
MAX_STACKS: Final = 100
MAX_CALLEES: Final = 300
"""Paths below an operator that are sent: the longest."""
_MAX_NAME: Final = 200
_PLACES: Final = (
    Column("place", "Called from", unit="text"),
    Column("num_calls", "Calls"),
    Column("host_ms", "Host", unit="ms", bar="forward"),
    Column("device_ms", "Device", unit="ms", bar="kernel"),
)
_LIBRARY: Final = re.compile(
    r"(?:^|[\\/])(?:torch|site-packages|dist-packages|lib[\\/]python[\d.]+)[\\/]|^[<?]"
)
_MODULE: Final = "nn.Module: "
_MOST_HINTED: Final = 12
_BACKWARD: Final[Mapping[BackwardBy, str]] = MappingProxyType(
    {
        "arrows": "",
        "sequence_numbers": "Backward by sequence numbers: the trace has no"
        " forward-backward links.",
        "not_run": "No backward: none ran while the profiler did.",
        "not_linked": "No backward: the trace does not link its operators to a forward operator."
        " Profilers since torch 1.13 write forward-backward links.",
        "not_in_modules": "No backward: the forward operators that it names lie in no module"
        " of the trace.",
    }
)
"""Why backward's part is not known, or what it rests on where that is not usual."""


class OperatorsQuery(TableQuery, frozen=True):
    """Operators by name, or apart by the shapes of their inputs; or by category."""

    by: OperatorsBy = "name"
    columns: ColumnSet = "times"


@of_profile("operators", OperatorsQuery)
def operators(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: OperatorsQuery
) -> OperatorsResponse:
    """The table of a trace."""
    rows = operator_rows(profile, query, query.by, query.columns)
    if query.by == "category":
        summary = counted(rows.num_all, "category") + work_summary(profile)
    else:
        summary = _summary(profile, rows.num_all)
        summary += work_summary(profile) if query.columns == "efficiency" else ""
    if query.by == "shapes" and not has_shapes(profile.trace):
        summary += "; without shapes: record_shapes=True of torch.profiler records them"
    empty = "It was recorded without the host. Record ProfilerActivity.CPU (automatic)."
    if query.by == "category":
        empty = NO_DEVICE
    if choice.problems:
        empty = "The lines above say what is wrong with this trace."
    return OperatorsResponse(
        run=run,
        choice=choice,
        by=query.by,
        table=titled(rows, "Operators", summary, empty),
        has_devices=profile.has_devices,
        has_stacks=has_stacks(profile.trace),
    )


def _summary(profile: TraceProfile, num_rows: int) -> str:
    """How many there are, and what they took in all."""
    table = profile.launching
    parts = [
        counted(num_rows, "row"),
        counted(int(table.num_calls.sum()), "call"),
        f"{duration_text(float(table.host_self_ns.sum()) / 1e9)} on the host",
    ]
    if profile.has_devices:
        device_seconds = float(table.device_self_ns.sum()) / 1e9
        parts.append(f"{duration_text(device_seconds)} on devices")
    replayed = profile.replayed
    if replayed.total_ns:
        text = duration_text(replayed.total_ns / 1e9)
        parts.append(f"{text} of it replayed by graphs")
    summary = ", ".join(parts)
    if replayed.unknown_ns:
        is_all = replayed.unknown_ns == replayed.total_ns
        part = "" if is_all else f", {duration_text(replayed.unknown_ns / 1e9)} of that"
        summary += (
            f"{part} in the row of the launch; a trace of the capture, in {CAPTURES}"
            " beside this one, names its operators"
        )
    return summary


class OperatorQuery(SourceQuery, frozen=True):
    """One operator, of any shapes or of some."""

    name: Text = ""
    by: OperatorsBy = "name"
    shapes: Text | None = None


@of_profile("operator", OperatorQuery)
def operator(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: OperatorQuery
) -> OperatorResponse:
    """Where one operator is called from."""
    calls = _calls(profile, query)
    longest = longest_calls(profile.times, calls, MAX_CALLS)
    stacks = tuple(
        OperatorStack(
            frames=tuple(frame[:MAX_TEXT] for frame in stack.frames),
            num_calls=float(stack.num_calls),
            host_ms=stack.host_ns / MS,
            device_ms=stack.device_ns / MS,
        )
        for stack in call_stacks(profile.times, longest, MAX_STACKS)
    )
    return OperatorResponse(
        run=run,
        choice=choice,
        name=query.name[:MAX_TEXT],
        stacks=stacks,
        places=_places(stacks, len(calls), len(longest), profile),
        num_calls=float(len(calls)),
        callees=_callees(profile, longest),
    )


def _calls(profile: TraceProfile, query: OperatorQuery) -> Ints:
    """Slices of the query's operator."""
    strings = profile.operator_names
    # Calls whose shapes the profiler did not write are a group too: of empty shapes.
    by_shapes = query.by == "shapes" or query.shapes is not None
    table = profile.launching_by_shapes if by_shapes else profile.launching
    operator, shapes = query.name, query.shapes or ""
    rows = [
        row
        for row in range(len(table))
        if text_of(strings, table.name[row]) == operator
        and (not by_shapes or text_of(strings, table.shapes[row]) == shapes)
    ]
    return table.calls_of(rows)


def _places(
    stacks: Sequence[OperatorStack], num: int, num_read: int, profile: TraceProfile
) -> TableRows:
    columns = _PLACES if profile.has_devices else _PLACES[:-1]
    values: dict[str, list[Any]] = {
        "place": [place_of(stack.frames) for stack in stacks],
        "num_calls": [stack.num_calls for stack in stacks],
        "host_ms": [stack.host_ms * MS for stack in stacks],
        "device_ms": [stack.device_ms * MS for stack in stacks],
    }
    hints = tuple("\n".join(stack.frames[:_MOST_HINTED]) for stack in stacks)
    summary = f"{counted(num, 'call')} from {counted(len(stacks), 'place')}"
    if num_read < num:
        summary += f", of the {num_read:,} longest"
    return titled(
        table_of(columns, values, "host_ms", more={"place": {"hints": hints}}),
        "Places it is called from",
        summary,
        "The trace holds no call of this operator.",
    )


def place_of(frames: Sequence[str]) -> str:
    """`Linear_0 · forward  net.py:12`: the module, and the first line of the program."""
    matches = [FRAME.fullmatch(frame) for frame in frames]
    lines = [match for match in matches if match and not _LIBRARY.search(match[1])]
    modules = [frame[len(_MODULE) :] for frame in frames if frame.startswith(_MODULE)]
    parts = modules[:1]
    if lines:
        place = re.split(r"[/\\]", lines[0][1])[-1]
        parts.append(f"{lines[0][3]}  {place}:{lines[0][2]}")
    return " · ".join(parts or frames[:1]) or "no Python frame"


def _callees(profile: TraceProfile, calls: Ints) -> tuple[OperatorStack, ...]:
    strings = profile.operator_names
    return tuple(
        OperatorStack(
            frames=tuple(strings[frame_name][:_MAX_NAME] for frame_name in callee.path),
            num_calls=float(callee.num_calls),
            host_ms=callee.host_self_ns / MS,
            device_ms=callee.device_self_ns / MS,
        )
        for callee in callees(profile.times, calls, MAX_CALLEES)
    )


@of_profile("module_times", SourceQuery)
def module_times(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, _query: SourceQuery
) -> ModuleTimesResponse:
    """The modules of a trace."""
    rows = module_rows(profile)
    return ModuleTimesResponse(
        run=run,
        choice=choice,
        name=tuple(rows.names),
        path=tuple(rows.paths),
        parent=i32(rows.parents),
        table=rows.table,
        backward=_BACKWARD[profile.modules.backward_by],
    )
