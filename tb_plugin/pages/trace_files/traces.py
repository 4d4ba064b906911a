"""Routes of trace files: which there are, one as it is, and what recordings say of them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from msgspec import Meta
from werkzeug.wrappers import Response
from werkzeug.wsgi import wrap_file

from collector.format.errors import FormatError
from collector.format.memory import FOLDS_INTO
from tb_plugin import storage
from tb_plugin.analysis.trace_memory.pictures import memory_columns
from tb_plugin.api.modules import ModuleCategory
from tb_plugin.api.traces import (
    TraceFile,
    TraceReport,
    TraceReportMemory,
    TraceReportOperators,
    TraceReportResponse,
    TraceReportsResponse,
    TracesResponse,
)
from tb_plugin.contract.errors import BadRequestError, NotFoundError, UnreadableError
from tb_plugin.contract.parameters import Number, Pixels, Query, SourceId, Text
from tb_plugin.contract.routes import Asked, route
from tb_plugin.contract.wire import f64
from tb_plugin.formats.recording.trace_reports import (
    TraceReports,
    device_shown,
    tables_of,
)
from tb_plugin.pages.of_run import why_absent
from tb_plugin.pages.timeline.selection import OfRanksQuery
from tb_plugin.worker.cache import FileKey

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.trace_reports import FoundReport, ReportTables
    from tb_plugin.formats.traces.files.listing import FoundTrace
    from tb_plugin.index.run import Run
    from tb_plugin.jobs.trace_sources import FoundSource, TraceJob
    from tb_plugin.server.state import State

MAX_FILES: Final = 10_000

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_MAX_NAME: Final = 200
_TYPES: Final = {".gz": "application/gzip", ".html": "application/octet-stream"}

_MOST: Final = 2**62
_MOST_FLOPS: Final = 1e30
NEEDED_BY_MEMORY: Final = ("record_shapes", "profile_memory", "with_stack")
MAX_SUMMARY: Final = 500_010
"""Letters; what the recorder writes at most, and the dots behind it."""
_COLUMNS: Final = tuple(TraceReportOperators.__struct_fields__)[1:]


class FileQuery(Query, frozen=True):
    """One file."""

    source: SourceId | None = None


@route("traces", Query)
def traces(asked: Asked[Query]) -> TracesResponse:
    """All files, and how far each is."""
    state, sources = asked.state, asked.state.traces.sources
    with state.reading(asked.query.run) as reading:
        run, budget = reading
        found = list(state.traces.files.of(run, budget))
        listing = run.found.traces
        known = [sources.known((asked.query.run, one.id, *one.key)) for one in found]
        states = [one and one.state for one in known]
        asked.decided_by(run.version, found, states, reading.goes_on)
        return TracesResponse(
            run=state.summary(run),
            files=tuple(map(_file, found[:MAX_FILES], known)),
            num_files=len(found),
            problems=() if listing is None else listing.problems,
            still_reading=reading.goes_on,
        )


def _file(found: FoundTrace, opening: TraceJob | None) -> TraceFile:
    return TraceFile(
        id=found.id,
        name=found.name,
        path=found.shown_path,
        worker=found.worker,
        rank=found.rank,
        cycle=found.cycle,
        num_bytes=float(found.num_bytes),
        timeline=found.is_timeline,
        recorded=found.origin == "recording",
        state="found" if opening is None else opening.state,
        problem=None if opening is None else opening.problem,
    )


@route("trace_file", FileQuery)
def trace_file(asked: Asked[FileQuery]) -> Response:
    """The file of a source; answers `Range`."""
    for found in asked.state.traces.listed(asked.query.run).sources:
        if found.id == asked.query.source and found.path is not None:
            return _file_answer(asked.request, found)
    raise NotFoundError(
        "There is no such trace file.",
        "the trace in the address",
        "It may have been deleted: reload the page.",
    )


def _file_answer(request: Request, found: FoundSource) -> Response:
    path = found.path or ""
    try:
        file, status = storage.at(path).open(path)
    except OSError as error:
        raise _gone(found) from error
    same = tuple(FileKey.of(status)[:2]) == tuple(found.key[:2])
    if not same:
        file.close()
        raise _gone(found)
    ending = os.path.splitext(path)[1].lower()  # noqa: PTH122  # of a text
    response = Response(
        wrap_file(request.environ, file),
        content_type=_TYPES.get(ending, "application/json"),
        direct_passthrough=True,
    )
    name = _UNSAFE.sub("_", found.name)[-_MAX_NAME:]
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "no-cache"
    response.content_length = status.st_size
    response.set_etag(f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}")
    return response.make_conditional(
        request, accept_ranges=True, complete_length=status.st_size
    )


def _gone(found: FoundSource) -> NotFoundError:
    return NotFoundError(
        "The trace's file is no longer there.",
        found.shown_path[:500],
        "It may have been deleted or replaced: reload the page.",
    )


ReportId = Annotated[
    str,
    Meta(
        pattern=r"^\d{1,9}-[A-Za-z0-9_-]{1,80}-\d{1,19}\Z",
        description="the id of a report",
    ),
]


class ReportQuery(Query, frozen=True):
    """One report, and its memory over a range of microseconds since its trace began."""

    report: ReportId | None = None
    device: Text | None = None
    x0: Number | None = None
    x1: Number | None = None
    px: Pixels = 1200


def _reports(state: State) -> TraceReports:
    return state.kept.get("trace reports", TraceReports)


@route("trace_reports", OfRanksQuery)
def trace_reports(asked: Asked[OfRanksQuery]) -> TraceReportsResponse:
    """What the recordings of a run say of their traces."""
    state, query = asked.state, asked.query
    with state.reading(query.run) as reading:
        run, budget = reading
        found = [
            one for one in _reports(state).of(run, budget) if query.wants(one.file.rank)
        ]
        shown = [(one.id, one.entry.offset) for one in found]
        asked.decided_by(run.version, shown, reading.goes_on)
        return TraceReportsResponse(
            run=state.summary(run),
            reports=tuple(map(_report, found)),
            absent=tuple(
                said
                for said in why_absent(run, "torch_profiler")
                if not (said.status == "off" and found)
            ),
            still_reading=reading.goes_on,
        )


@route("trace_report", ReportQuery)
def trace_report(asked: Asked[ReportQuery]) -> TraceReportResponse:
    """One report in full."""
    state, query = asked.state, asked.query
    with state.reading(query.run) as (run, budget):
        found = _named(state, run, query, budget)
        asked.decided_by(found.file.identity, found.entry.offset)
        try:
            tables = tables_of(found)
        except (FormatError, OSError) as error:
            raise UnreadableError(
                f"The report of the trace cannot be read: {error}",
                f"{found.file.shown_path}, byte {found.entry.offset}",
                "The other reports can; the trace's file may be there.",
            ) from error
    memory = _memory(found, tables, query)
    options = found.meta.flags_set("options")
    return TraceReportResponse(
        report=_report(found),
        summary=found.meta.text("summary", MAX_SUMMARY),
        operators=_operators(tables),
        memory=memory,
        missing=()
        if memory is not None
        else tuple(one for one in NEEDED_BY_MEMORY if one not in options),
    )


def _named(state: State, run: Run, query: ReportQuery, budget: Budget) -> FoundReport:
    if query.report is None:
        raise BadRequestError(
            "A report must be given.", "report", "Choose one from the list."
        )
    for found in _reports(state).of(run, budget):
        if found.id == query.report:
            return found
    raise NotFoundError(
        "There is no such report of a trace.",
        run.found.name[:80],
        "Reload the page: the recording may have been deleted.",
    )


def _report(found: FoundReport) -> TraceReport:
    start, end = found.meta.count("start_ns", _MOST), found.meta.count("end_ns", _MOST)
    is_known = start is not None and end is not None and end >= start
    return TraceReport(
        id=found.id,
        rank=found.file.rank,
        cycle=found.meta.count("cycle", _MOST),
        first_step=found.meta.count("first_step", _MOST),
        last_step=found.meta.count("last_step", _MOST),
        num_steps=found.meta.count("num_steps", _MOST),
        path=found.meta.text("path"),
        num_bytes=float(found.meta.count("num_bytes", _MOST) or 0),
        seconds=((end or 0) - (start or 0)) / 1e9 if is_known else None,
        activities=tuple(found.meta.texts("activities")),
        options=tuple(found.meta.flags_set("options")),
        flops=found.meta.number("flops", _MOST_FLOPS),
        kept=found.meta.flag("kept") is True,
        remote=found.meta.text("remote"),
        problem=found.meta.text("problem"),
    )


def _operators(tables: ReportTables) -> TraceReportOperators:
    columns = tables.operators
    none = np.empty(0, np.int64)
    own = columns.get("self_cpu_ns", none) + columns.get("self_device_ns", none)
    order = np.argsort(-own, kind="stable")
    return TraceReportOperators(
        tuple(tables.names[row] for row in order.tolist()),
        **{name: f64(column[order]) for name, column in columns.items()}
        if columns
        else dict.fromkeys(_COLUMNS, f64([])),
    )


def _memory(
    found: FoundReport, tables: ReportTables, query: ReportQuery
) -> TraceReportMemory | None:
    devices = tuple(tables.memory)
    device = device_shown(devices, query.device)
    if device is None:
        return None
    time_ns, held = tables.memory[device]
    start = found.meta.count("start_ns", _MOST) or int(time_ns[0])
    x = (time_ns - start) / 1e3
    end = found.meta.count("end_ns", _MOST) or int(time_ns[-1])
    low, high = min(0.0, float(x[0])), max((end - start) / 1e3, float(x[-1]) + 1e-3)
    x0 = low if query.x0 is None else min(max(query.x0, low), high)
    x1 = high if query.x1 is None else min(max(query.x1, x0), high)
    shown = [at for at in range(len(tables.categories)) if held[:, at].any()]
    columns = memory_columns(x, held[:, shown], x0, max(x1, x0 + 1e-3), query.px)
    return TraceReportMemory(
        device=device,
        devices=devices,
        x_low=low,
        x_high=high,
        x0=x0,
        x_per_column=columns.width,
        total_bytes=f64(columns.held.sum(axis=1)),
        peak_x=f64(columns.peak_x),
        categories=tuple(
            ModuleCategory(
                name=tables.categories[at],
                group=FOLDS_INTO.get(tables.categories[at], "unknown"),  # type: ignore[arg-type]
                bytes=f64(columns.held[:, place]),
                baseline_bytes=None,
            )
            for place, at in enumerate(shown)
        ),
    )
