"""The routes of a trace's operators, and of one of them."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.own.frames import program_frames
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import duration_text
from memboard.tb_plugin.analysis.time.operators import callees, is_eligible
from memboard.tb_plugin.analysis.trace.texts import are
from memboard.tb_plugin.api.operators import (
    OperatorResponse,
    OperatorsBy,
    OperatorsResponse,
    OperatorStack,
)
from memboard.tb_plugin.contract.parameters import Text
from memboard.tb_plugin.contract.table import (
    MAX_TEXT,
    Column,
    Table,
    table_of,
    text_of,
    titled,
)
from memboard.tb_plugin.facts.traces.profiled import (
    MS,
    SourceQuery,
    TableQuery,
    of_profile,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.time.operators import OperatorTable
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.profile import ProfileChoice
    from memboard.tb_plugin.api.tables import TableRows

MAX_CALLS: Final = 2_000
"""Calls of one operator whose stacks are looked at: the longest."""
MAX_STACKS: Final = 100
MAX_CALLEES: Final = 300
"""Paths below an operator that are sent: the longest."""
_MAX_FRAMES: Final = 200
_PYTHON: Final = re.compile("python_function", re.IGNORECASE)
_MAX_NAME: Final = 200
_OPERATORS: Final = Table(
    (
        Column(
            "name",
            "Operator",
            unit="name",
            help="The operator as PyTorch names it; of autograd, what evaluates it. What was "
            "launched outside operators has the name of the call, as cudaGraphLaunch.",
            absent="Kernels and copies whose launch was not recorded",
        ),
        Column(
            "shapes",
            "Input shapes",
            unit="text",
            help="Shapes of its inputs as the profiler wrote them; none where it wrote none",
            absent="The profiler wrote no shapes",
        ),
        Column(
            "num_calls",
            "Calls",
            unit="count",
            help="How often it was called while the profiler ran. An operator that only calls "
            "one of its own name counts once.",
        ),
        Column(
            "host_self_ms",
            "Host self",
            unit="ms",
            help="Time on the host in the operator itself: its duration less that of the "
            "operators and runtime calls in it. The profiler's own cost is part of it: "
            "above all of operators of a few µs.",
            bar="forward",
            share_of="of the host's time",
        ),
        Column(
            "host_total_ms",
            "Host total",
            unit="ms",
            help="Sum of its calls' durations on the host, the operators in it included. Calls "
            "on several threads count each, and waiting for the device counts as time of "
            "the host.",
            bar="forward",
        ),
        Column(
            "device_self_ms",
            "Device self",
            unit="ms",
            help="Sum of the durations of the kernels, copies and fills that it launched "
            "itself. Those that ran at the same time count each.",
            bar="kernel",
            share_of="of the device's time",
        ),
        Column(
            "device_total_ms",
            "Device total",
            unit="ms",
            help="Device self, and that of the operators in it. Launches belong to the "
            "innermost operator around them.",
            bar="kernel",
        ),
        Column(
            "is_tensor_core_eligible",
            "TC eligible",
            unit="yes",
            help="Whether its kernels could use tensor cores, with fitting data types and "
            "shapes; judged by its name alone",
            sorts=False,
        ),
        Column(
            "tensor_core_self_share",
            "TC self",
            unit="share",
            help="Time of its own kernels that use tensor cores ÷ time of its own kernels. "
            "Kernels are judged by their names alone.",
            absent="No kernel of it ran",
        ),
        Column(
            "tensor_core_total_share",
            "TC total",
            unit="share",
            help="The same over its kernels and those of the operators in it",
            absent="No kernel of it ran",
        ),
    )
)
_OF_DEVICES: Final = (
    "device_self_ms",
    "device_total_ms",
    "is_tensor_core_eligible",
    "tensor_core_self_share",
    "tensor_core_total_share",
)
_PLACES: Final = (
    Column("place", "Called from", unit="text"),
    Column("num_calls", "Calls"),
    Column("host_ms", "Host", unit="ms", bar="forward"),
    Column("device_ms", "Device", unit="ms", bar="kernel"),
)
_FRAME: Final = re.compile(r"(.+)\((\d{1,9})\): (.*)", re.DOTALL)
_LIBRARY: Final = re.compile(
    r"(?:^|[\\/])(?:torch|site-packages|dist-packages|lib[\\/]python[\d.]+)[\\/]|^[<?]"
)
_MODULE: Final = "nn.Module: "
_MOST_HINTED: Final = 12


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
    strings = profile.operator_names
    table = profile.launching_by_shapes if query.by == "shapes" else profile.launching
    has_devices = len(profile.trace.device_work.row) > 0
    usual = "device_self_ms" if has_devices else "host_self_ms"
    asked = _OPERATORS.rows(table, strings, query, usual, np.arange(len(table)))
    names = table.name[asked[0]].tolist()
    is_apt = [is_eligible(text_of(strings, row)) for row in names]
    without = () if has_devices else _OF_DEVICES
    if query.by == "name":
        without = (*without, "shapes")
    found = _OPERATORS.sent(
        table,
        strings,
        asked,
        usual,
        without=without,
        given={"is_tensor_core_eligible": is_apt},
    )
    summary = _summary(table, asked[1], has_devices)
    if query.by == "shapes" and not _has_shapes(profile):
        summary += "; without shapes: record_shapes=True of torch.profiler records them"
    empty = "It was recorded without the host. Record ProfilerActivity.CPU (automatic)."
    if choice.problems:
        empty = "The lines above say what is wrong with this trace."
    return OperatorsResponse(
        run=run,
        choice=choice,
        by=query.by,
        table=titled(found, "Operators", summary, empty),
        has_devices=has_devices,
        has_stacks=_has_stacks(profile),
    )


def _summary(table: OperatorTable, num_rows: int, has_devices: bool) -> str:
    """How many there are, and what they took in all."""
    words = [
        counted(num_rows, "row"),
        counted(int(table.num_calls.sum()), "call"),
        f"{duration_text(float(table.host_self_ns.sum()) / 1e9)} on the host",
    ]
    if has_devices:
        took = float(table.device_self_ns.sum()) / 1e9
        words.append(f"{duration_text(took)} on devices")
    return ", ".join(words)


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
    took = profile.times.host_total_ns[calls]
    longest = calls[np.argsort(-took, kind="stable")[:MAX_CALLS]]
    stacks = _stacks(profile, longest)
    return OperatorResponse(
        run=run,
        choice=choice,
        name=query.name[:MAX_TEXT],
        stacks=stacks,
        places=_places(stacks, len(calls), len(longest), profile),
        num_calls=float(len(calls)),
        callees=_callees(profile, longest),
    )


def _places(
    stacks: Sequence[OperatorStack], num: int, num_read: int, profile: TraceProfile
) -> TableRows:
    columns = _PLACES if len(profile.trace.device_work.row) else _PLACES[:-1]
    values: dict[str, list[Any]] = {
        "place": [place_of(one.frames) for one in stacks],
        "num_calls": [one.num_calls for one in stacks],
        "host_ms": [one.host_ms * MS for one in stacks],
        "device_ms": [one.device_ms * MS for one in stacks],
    }
    hints = tuple("\n".join(one.frames[:_MOST_HINTED]) for one in stacks)
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
    found = [_FRAME.fullmatch(frame) for frame in frames]
    lines = [one for one in found if one and not _LIBRARY.search(one[1])]
    modules = [one[len(_MODULE) :] for one in frames if one.startswith(_MODULE)]
    words = modules[:1]
    if lines:
        place = re.split(r"[/\\]", lines[0][1])[-1]
        words.append(f"{lines[0][3]}  {place}:{lines[0][2]}")
    return " · ".join(words or frames[:1]) or "no Python frame"


def _callees(profile: TraceProfile, calls: Ints) -> tuple[OperatorStack, ...]:
    strings = profile.operator_names
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
    strings = profile.operator_names
    # Calls whose shapes the profiler did not write are a group too: of empty shapes.
    by_shapes = query.by == "shapes" or query.shapes is not None
    table = profile.launching_by_shapes if by_shapes else profile.launching
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
    host_ns = profile.times.host_total_ns
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
        found = sums[tuple(_without_own(frames) if frames else ())]
        found[0] += 1
        found[1] += int(host_ns[call])
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


def _without_own(frames: Sequence[str]) -> Sequence[str]:
    """Without frames of MemBoard's, the innermost first."""
    found = [_FRAME.fullmatch(frame) for frame in frames]
    kept = program_frames(["" if one is None else one[1] for one in found])
    return [frames[place] for place in kept]


def _written_stacks(profile: TraceProfile, calls: Ints) -> Ints:
    """The stack that profilers before torch 1.13 wrote with each call, as row of texts.

    Its frames are separated by `;`, the innermost first; -1: none is written.
    """
    known = profile.trace.operators
    if not len(known.row):
        return np.full(len(calls), -1)
    at = np.minimum(np.searchsorted(known.row, calls), len(known.row) - 1)
    return np.where(known.row[at] == calls, known.call_stack[at], -1)
