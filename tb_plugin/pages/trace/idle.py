"""Route `/trace_idle`: why the devices of a trace were idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.findings.text import duration_text, share_text
from memboard.tb_plugin.analysis.trace.devices import device_title, graphs_of_device
from memboard.tb_plugin.analysis.trace.waiting.idle import idle_times
from memboard.tb_plugin.analysis.trace.waiting.work_starts import Cause
from memboard.tb_plugin.api.time.trace import TraceIdleResponse
from memboard.tb_plugin.contract.table import Column, cut, rows_of, titled
from memboard.tb_plugin.facts.traces.profiled import SourceQuery
from memboard.tb_plugin.server.views.trace import of_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.analysis.trace.waiting.idle import Idle
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.api.time.profile import ProfileChoice

MAX_ROWS: Final = 200
_MUCH: Final = 0.1
"""Of a device's time: less that is idle needs no advice."""
_LEAST: Final = 0.0005
"""Of a device's time: less is 0.0 %."""
_UNKNOWN: Final = "No launch is known"
_MAX_NAME: Final = 80
_PARTS: Final = {
    "host": "before the host launched",
    "launch": "launch calls and delay",
    "kernel": "gaps between kernels",
    "stream": "waits for other streams",
    "other": "not explained",
}
"""By the field of `Idle`: what its time is."""
_HOST_PARTS: Final = {
    Cause.OPERATOR: "in operators",
    Cause.RUNTIME: "in runtime calls",
    Cause.LOADING: "loading data",
    Cause.COMMUNICATION: "communicating",
    Cause.PROGRAM: "outside operators",
}
_STEP: Final = "ProfilerStep#"
"""Begins the name of a step, which says nothing of where the host was."""
_COLUMNS: Final = (
    Column(
        "span_ms",
        "Span",
        unit="ms",
        help="From the first work's start to the last one's end",
    ),
    Column("idle_ms", "Idle", unit="ms", help="Nothing ran"),
    Column(
        "host_ms",
        "Host",
        unit="ms",
        help="Until the call that launched the next work began, after the device had run dry",
    ),
    Column(
        "launch_ms",
        "Launch",
        unit="ms",
        help="The call that launched the next work, and what a device needs to begin with it:"
        " at most 0.1 ms",
    ),
    Column(
        "kernel_ms",
        "Gaps",
        unit="ms",
        help="Launched in time: at most 20 µs, which the device needs between two kernels",
    ),
    Column(
        "stream_ms",
        "Streams",
        unit="ms",
        help="Launched, and begun when work of another stream had ended",
    ),
    Column(
        "other_ms",
        "Unexplained",
        unit="ms",
        help="Launched, and begun late while nothing else ran that is recorded; or the call is"
        " not known",
    ),
    Column(
        "delay_p50_us",
        "Delay",
        unit="us",
        help="Median from the end of the call to the start of the work",
        absent=_UNKNOWN,
    ),
    Column(
        "delay_p95_us",
        "95\u00a0%",
        unit="us",
        help="95 of 100 launches have a shorter delay",
        absent=_UNKNOWN,
    ),
    Column(
        "queue_mean",
        "Queued",
        unit="ratio",
        help="Kernels and copies launched but not started: mean over time",
        absent=_UNKNOWN,
    ),
    Column(
        "queue_max",
        "Most",
        unit="count",
        help="The longest queue; from 1,024 on the host has to wait",
        absent=_UNKNOWN,
    ),
)


@of_profile("trace_idle", SourceQuery)
def trace_idle(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: SourceQuery
) -> TraceIdleResponse:
    del run, query
    trace = profile.trace
    idles = idle_times(profile)[:MAX_ROWS]
    return TraceIdleResponse(
        state=choice.state,
        sentences=tuple(
            _sentence(trace, idle) for idle in idles if idle.stream == NOTHING
        ),
        table=_table(trace, idles),
        problems=choice.problems,
    )


def _table(trace: Trace, idles: Sequence[Idle]) -> TableRows:
    where = Column("where", "Where", unit="text").sent(
        device_title(trace, idle.device)
        if idle.stream == NOTHING
        else f"stream {idle.stream}"
        for idle in idles
    )
    shares = {
        f"{part}_ms": {"notes": tuple(_share(idle, part) for idle in idles)}
        for part in ("idle", *_PARTS)
    }
    rows = rows_of(_COLUMNS, idles, "", None, **shares)
    rows = replace(rows, columns=(where, *rows.columns))
    return titled(rows, "Idle time of the device")


def _share(idle: Idle, part: str) -> str:
    return (
        share_text(getattr(idle, f"{part}_ns") / idle.span_ns) if idle.span_ns else ""
    )


def _sentence(trace: Trace, idle: Idle) -> str:
    """How idle a device was, the largest part first, what the host did, and what helps."""
    least_ns = idle.span_ns * _LEAST
    parts = [part for part in _PARTS if getattr(idle, f"{part}_ns") >= least_ns > 0]
    parts.sort(key=lambda part: -getattr(idle, f"{part}_ns"))
    why = ", ".join(f"{_share(idle, part)} {_PARTS[part]}" for part in parts)
    text = f"{device_title(trace, idle.device)} was idle {_share(idle, 'idle') or '0.0 %'} of"
    text += f" {duration_text(idle.span_ns / 1e9)}{why and f': {why}'}."
    if idle.idle_ns <= _MUCH * idle.span_ns:
        return text
    text += _host_text(idle)
    if idle.host_ns + idle.launch_ns > idle.idle_ns / 2:
        text += " Fewer or larger launches help: a larger batch, fused operators,"
        text += f" {graphs_of_device(trace)}."
    if idle.other_ns > idle.idle_ns / 2:
        text += " What is not explained was launched in time and begun late, while"
        text += " nothing else ran that the trace has."
    return text


def _host_text(idle: Idle) -> str:
    """What the host did before it launched, where that is worth a sentence."""
    parts = [
        f"{share_text(part.duration_ns / idle.span_ns)} {_HOST_PARTS[part.cause]}"
        + _most_in(part.longest)
        for part in idle.host_parts
        if part.duration_ns >= idle.span_ns * _LEAST
    ]
    return f" Before it launched, the host spent {', '.join(parts)}." if parts else ""


def _most_in(name: str) -> str:
    is_place = name and not name.startswith(_STEP)
    return f" (most in {cut(name, _MAX_NAME)})" if is_place else ""
