"""The route `/operators`: calls and times by operator. And `/operator`: one of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin import api
from tb_plugin.analysis.time.operator_callees import callees
from tb_plugin.analysis.time.operators import is_eligible
from tb_plugin.contract.wire import f64, u8
from tb_plugin.pages.operators.table_rows import rows_sent
from tb_plugin.pages.profile.asked import SourceQuery, TableQuery, of_profile
from tb_plugin.server.parameters import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tb_plugin.analysis.time.operators import OperatorTable
    from tb_plugin.analysis.trace.profile import TraceProfile

    Ints: TypeAlias = npt.NDArray[Any]

_MS: Final = 1e6
MAX_CALLS: Final = 2_000
"""Calls of one operator whose stacks are looked at: the longest."""
MAX_STACKS: Final = 100
MAX_CALLEES: Final = 300
"""Paths below an operator that are sent: the longest."""
_MAX_FRAMES: Final = 200
_MAX_NAME: Final = 200
_MAX_TEXT: Final = 2_000


class OperatorsQuery(TableQuery, frozen=True):
    """Operators by name, or apart by the shapes of their inputs."""

    by: api.OperatorsBy = "name"


class OperatorQuery(SourceQuery, frozen=True):
    """One operator, of any shapes or of some."""

    name: Text = ""
    by: api.OperatorsBy = "name"
    shapes: Text | None = None


@of_profile("operators", OperatorsQuery)
def operators(
    run: api.RunSummary,
    choice: api.ProfileChoice,
    profile: TraceProfile | None,
    query: OperatorsQuery,
) -> api.OperatorsResponse:
    """The table of a trace; empty while it is being opened."""
    by = query.by
    if profile is None:
        return _response(run, choice, by, None, None, query)
    table = profile.operators_by_shapes if by == "shapes" else profile.operators
    return _response(run, choice, by, profile, table, query)


def _response(
    run: api.RunSummary,
    choice: api.ProfileChoice,
    by: api.OperatorsBy,
    profile: TraceProfile | None,
    table: OperatorTable | None,
    query: OperatorsQuery,
) -> api.OperatorsResponse:
    strings = () if profile is None else profile.trace.strings
    columns: dict[str, Ints] = {
        name: np.empty(0) if table is None else getattr(table, column)
        for name, column in _COLUMNS.items()
    }
    names = np.empty(0, np.int64) if table is None else table.name
    shapes = np.empty(0, np.int64) if table is None else table.shapes
    columns["tensor_core_self_share"] = _share(
        columns["tensor_core_self_ms"], columns["kernel_self_ms"]
    )
    columns["tensor_core_total_share"] = _share(
        columns["tensor_core_total_ms"], columns["kernel_total_ms"]
    )
    rows, num_rows = rows_sent(
        len(names),
        columns,
        query.sort,
        "device_self_ms" if profile is not None and profile.devices else "host_self_ms",
        query.top,
        None
        if query.text is None
        else lambda row: str(query.text).lower() in strings[int(names[row])].lower(),
        texts={
            "name": lambda row: strings[int(names[row])],
            "shapes": lambda row: _text(strings, shapes[row]),
        },
    )
    sent = {name: column[rows] for name, column in columns.items()}
    return api.OperatorsResponse(
        run=run,
        choice=choice,
        by=by,
        name=tuple(_text(strings, names[row]) for row in rows),
        shapes=tuple(_text(strings, shapes[row]) for row in rows),
        num_calls=f64(sent["num_calls"]),
        host_self_ms=f64(sent["host_self_ms"] / _MS),
        host_total_ms=f64(sent["host_total_ms"] / _MS),
        device_self_ms=f64(sent["device_self_ms"] / _MS),
        device_total_ms=f64(sent["device_total_ms"] / _MS),
        is_eligible=u8([is_eligible(strings[int(names[row])]) for row in rows]),
        tensor_core_self_share=f64(sent["tensor_core_self_share"]),
        tensor_core_total_share=f64(sent["tensor_core_total_share"]),
        num_rows=num_rows,
        totals=api.OperatorTotals(
            host_self_ms=float(columns["host_self_ms"].sum()) / _MS,
            device_self_ms=float(columns["device_self_ms"].sum()) / _MS,
            num_calls=float(columns["num_calls"].sum()),
        ),
        has_devices=profile is not None and len(profile.trace.device_work.row) > 0,
        has_stacks=profile is not None and _has_stacks(profile),
        has_shapes=profile is not None and _has_shapes(profile),
    )


_COLUMNS: Final = {
    "num_calls": "num_calls",
    "host_self_ms": "host_self_ns",
    "host_total_ms": "host_total_ns",
    "device_self_ms": "device_self_ns",
    "device_total_ms": "device_total_ns",
    "kernel_self_ms": "kernel_self_ns",
    "kernel_total_ms": "kernel_total_ns",
    "tensor_core_self_ms": "tensor_core_self_ns",
    "tensor_core_total_ms": "tensor_core_total_ns",
}


def _text(strings: Sequence[str], row: int) -> str:
    """A text as it is sent, and as the page sends it back; empty where there is none."""
    return strings[int(row)][:_MAX_TEXT] if row >= 0 else ""


def _share(part: Ints, whole: Ints) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = np.divide(
        part, whole, np.full(len(part), np.nan), where=whole > 0
    )
    return found


def _has_shapes(profile: TraceProfile) -> bool:
    dims = profile.trace.operators.input_dims
    known = np.unique(dims[dims >= 0])
    return any(profile.trace.strings[int(row)] for row in known[:2])


@of_profile("operator", OperatorQuery)
def operator(
    run: api.RunSummary,
    choice: api.ProfileChoice,
    profile: TraceProfile | None,
    query: OperatorQuery,
) -> api.OperatorResponse:
    """Where one operator is called from."""
    name = query.name
    calls = np.empty(0, np.int64) if profile is None else _calls(profile, query)
    longest = calls
    stacks: tuple[api.OperatorStack, ...] = ()
    called: tuple[api.OperatorStack, ...] = ()
    if profile is not None:
        took = profile.trace.slices.duration_ns[calls]
        longest = calls[np.argsort(-took, kind="stable")[:MAX_CALLS]]
        stacks = _stacks(profile, longest)
        called = _callees(profile, longest)
    return api.OperatorResponse(
        run=run,
        choice=choice,
        name=name[:_MAX_TEXT],
        stacks=stacks,
        num_calls=float(len(calls)),
        num_looked_at=float(len(longest)),
        callees=called,
    )


def _callees(profile: TraceProfile, calls: Ints) -> tuple[api.OperatorStack, ...]:
    strings = profile.trace.strings
    return tuple(
        api.OperatorStack(
            frames=tuple(strings[name][:_MAX_NAME] for name in one.path),
            num_calls=float(one.num_calls),
            host_ms=one.host_self_ns / _MS,
            device_ms=one.device_self_ns / _MS,
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
        if _text(strings, table.name[row]) == name
        and (not by_shapes or _text(strings, table.shapes[row]) == shapes)
    ]
    return np.flatnonzero(np.isin(table.group_of, wanted))


def _has_stacks(profile: TraceProfile) -> bool:
    trace = profile.trace
    if len(trace.python.row):
        return True
    written = trace.operators.call_stack
    known = np.unique(written[written >= 0])
    return any(trace.strings[int(row)] for row in known[:2])


def _stacks(profile: TraceProfile, calls: Ints) -> tuple[api.OperatorStack, ...]:
    """Python frames around calls, and what the calls of each stack took."""
    trace = profile.trace
    is_python = np.zeros(len(trace.slices), dtype=bool)
    is_python[trace.python.row] = True
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
        api.OperatorStack(
            frames=tuple(frame[:_MAX_TEXT] for frame in frames),
            num_calls=num,
            host_ms=host / _MS,
            device_ms=device / _MS,
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
