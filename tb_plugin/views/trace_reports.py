"""Routes `/trace_reports` and `/trace_report`: what recordings say of their traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.memory import FOLDS_INTO
from tb_plugin import api
from tb_plugin.analysis.report_memory import memory_columns
from tb_plugin.readers.trace_reports import device_shown
from tb_plugin.wire import f64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.readers.trace_reports import FoundReport, ReportTables
    from tb_plugin.run import Run
    from tb_plugin.trace_report_query import ReportQuery

SOURCE: Final = "torch_profiler"
NEEDED_BY_MEMORY: Final = ("record_shapes", "profile_memory", "with_stack")


def trace_reports(
    run: Run,
    summary: api.RunSummary,
    found: Sequence[FoundReport],
    *,
    still_reading: bool,
) -> api.TraceReportsResponse:
    """Answer `/trace_reports`; hold the run's lock."""
    return api.TraceReportsResponse(
        run=summary,
        reports=tuple(map(_report, found)),
        absent=tuple(
            said
            for said in run.catalogue.recorded()
            if said.status != "recorded"
            and said.source.partition(".")[0] == SOURCE
            and not (said.status == "off" and found)
        ),
        still_reading=still_reading,
    )


def trace_report(
    found: FoundReport, tables: ReportTables, query: ReportQuery
) -> api.TraceReportResponse:
    """Answer `/trace_report`."""
    options = found.options
    memory = _memory(found, tables, query)
    return api.TraceReportResponse(
        report=_report(found),
        summary=found.text("summary", MAX_SUMMARY),
        operators=_operators(tables),
        memory=memory,
        missing=()
        if memory is not None
        else tuple(one for one in NEEDED_BY_MEMORY if one not in options),
    )


MAX_SUMMARY: Final = 500_010
"""Letters; what the recorder writes at most, and the dots behind it."""


def _report(found: FoundReport) -> api.TraceReport:
    start, end = found.number("start_ns"), found.number("end_ns")
    is_known = start is not None and end is not None and end >= start
    return api.TraceReport(
        id=found.id,
        rank=found.file.rank,
        cycle=found.number("cycle"),
        first_step=found.number("first_step"),
        last_step=found.number("last_step"),
        num_steps=found.number("num_steps"),
        path=found.text("path"),
        num_bytes=float(found.number("num_bytes") or 0),
        seconds=((end or 0) - (start or 0)) / 1e9 if is_known else None,
        activities=found.activities,
        options=found.options,
        flops=found.flops,
        kept=found.meta.get("kept") is True,
        remote=found.text("remote"),
        problem=found.text("problem"),
    )


def _operators(tables: ReportTables) -> api.TraceReportOperators:
    columns = tables.operators
    none = np.empty(0, np.int64)
    own = columns.get("self_cpu_ns", none) + columns.get("self_device_ns", none)
    order = np.argsort(-own, kind="stable")
    return api.TraceReportOperators(
        tuple(tables.names[row] for row in order.tolist()),
        **{name: f64(column[order]) for name, column in columns.items()}
        if columns
        else dict.fromkeys(_COLUMNS, f64([])),
    )


_COLUMNS: Final = tuple(api.TraceReportOperators.__dataclass_fields__)[1:]


def _memory(
    found: FoundReport, tables: ReportTables, query: ReportQuery
) -> api.TraceReportMemory | None:
    devices = tuple(tables.memory)
    device = device_shown(devices, query.device)
    if device is None:
        return None
    time_ns, held = tables.memory[device]
    start = found.number("start_ns") or int(time_ns[0])
    x = (time_ns - start) / 1e3
    end = found.number("end_ns") or int(time_ns[-1])
    low, high = min(0.0, float(x[0])), max((end - start) / 1e3, float(x[-1]) + 1e-3)
    x0 = low if query.x0 is None else min(max(query.x0, low), high)
    x1 = high if query.x1 is None else min(max(query.x1, x0), high)
    shown = [at for at in range(len(tables.categories)) if held[:, at].any()]
    columns = memory_columns(x, held[:, shown], x0, max(x1, x0 + 1e-3), query.px)
    return api.TraceReportMemory(
        device=device,
        devices=devices,
        x_low=low,
        x_high=high,
        x0=x0,
        x_per_column=columns.width,
        total_bytes=f64(columns.held.sum(axis=1)),
        peak_x=f64(columns.peak_x),
        categories=tuple(
            api.ModuleCategory(
                name=tables.categories[at],
                group=FOLDS_INTO.get(tables.categories[at], "unknown"),  # type: ignore[arg-type]
                bytes=f64(columns.held[:, place]),
                baseline_bytes=None,
            )
            for place, at in enumerate(shown)
        ),
    )
