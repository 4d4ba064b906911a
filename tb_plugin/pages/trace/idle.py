"""Route `/trace_idle`: why the devices of a trace were idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.findings.text import duration_text, share_text
from memboard.tb_plugin.analysis.trace.devices import device_title
from memboard.tb_plugin.analysis.trace.idle import idle_times
from memboard.tb_plugin.api.time.trace import TraceIdleResponse
from memboard.tb_plugin.contract.table import Column, rows_of, titled
from memboard.tb_plugin.facts.traces.profiled import SourceQuery
from memboard.tb_plugin.server.views.trace import of_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.trace.idle import Idle
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.api.time.profile import ProfileChoice

MAX_ROWS: Final = 200
_MUCH: Final = 0.1
"""Of a device's time: less that is idle needs no advice."""
_UNKNOWN: Final = "No launch is known"
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
        "Host late",
        unit="ms",
        help="Until the next work was launched, after the device had run dry",
    ),
    Column(
        "kernel_ms",
        "Between kernels",
        unit="ms",
        help="Launched in time: the time that the device needs between two kernels",
    ),
    Column(
        "other_ms",
        "Other",
        unit="ms",
        help="Launched, and not started yet (it waits for another stream, say); or the call is"
        " not known",
    ),
    Column(
        "delay_p50_us",
        "Launch delay",
        unit="us",
        help="Median from the end of the call to the start of the work",
        absent=_UNKNOWN,
    ),
    Column(
        "delay_p95_us",
        "95 %",
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
    idles = idle_times(trace)[:MAX_ROWS]
    return TraceIdleResponse(
        state=choice.state,
        sentences=tuple(
            _sentence(device_title(trace, idle.device), idle)
            for idle in idles
            if idle.stream == NOTHING
        ),
        table=_table(trace, idles),
    )


def _table(trace: Trace, idles: Sequence[Idle]) -> TableRows:
    where = Column("where", "Where", unit="text").sent(
        device_title(trace, idle.device)
        if idle.stream == NOTHING
        else f"stream {idle.stream}"
        for idle in idles
    )
    idle, host, kernel, other = (
        {"notes": tuple(_share(idle, cause) for idle in idles)}
        for cause in ("idle", "host", "kernel", "other")
    )
    shares = {"idle_ms": idle, "host_ms": host, "kernel_ms": kernel, "other_ms": other}
    rows = rows_of(_COLUMNS, idles, "", None, **shares)
    rows = replace(rows, columns=(where, *rows.columns))
    return titled(rows, "Idle time of the device")


def _share(idle: Idle, cause: str) -> str:
    return (
        share_text(getattr(idle, f"{cause}_ns") / idle.span_ns) if idle.span_ns else ""
    )


def _sentence(device: str, idle: Idle) -> str:
    """How idle a device was, the largest cause first, and what helps."""
    causes = [
        ("host", "the host launched late"),
        ("kernel", "gaps between kernels"),
        ("other", "other causes"),
    ]
    causes = [(name, cause) for name, cause in causes if getattr(idle, f"{name}_ns")]
    causes.sort(key=lambda cause: -getattr(idle, f"{cause[0]}_ns"))
    why = ", ".join(f"{_share(idle, name)} {cause}" for name, cause in causes)
    text = f"{device} was idle {_share(idle, 'idle') or '0.0 %'} of"
    text += f" {duration_text(idle.span_ns / 1e9)}{why and f': {why}'}."
    if idle.host_ns > idle.idle_ns / 2 and idle.idle_ns > _MUCH * idle.span_ns:
        text += " Fewer or larger launches help: a larger batch, fused operators,"
        text += " CUDA graphs."
    return text
