"""Routes of what recordings say of the traces that they saved: operators and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from memboard.collector.format.capture import TRACE_ENDED
from memboard.collector.format.errors import FormatError
from memboard.collector.format.memory import FOLDS_INTO
from memboard.collector.format.sizes import agreeing, capitalized
from memboard.tb_plugin.analysis.findings.text import duration_text, size_text
from memboard.tb_plugin.analysis.trace_memory.pictures import memory_columns
from memboard.tb_plugin.api.base import f64
from memboard.tb_plugin.api.memory.modules import CategorySeries
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.api.time.traces import (
    TraceReport,
    TraceReportMemory,
    TraceReportResponse,
    TraceReportsResponse,
)
from memboard.tb_plugin.contract.errors import (
    BadRequestError,
    NotFoundError,
    UnreadableError,
)
from memboard.tb_plugin.contract.parameters import Number, Pixels, Query, Text
from memboard.tb_plugin.contract.table import Column, titled
from memboard.tb_plugin.facts.series.selection import OfRanksQuery
from memboard.tb_plugin.facts.view import why_absent
from memboard.tb_plugin.formats.recording.captures.trace_reports import (
    device_shown,
    tables_of,
)
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.api.overview import SourceStatus
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.formats.recording.captures.trace_reports import (
        FoundReport,
        ReportTables,
    )
    from memboard.tb_plugin.index.run import Run

_MOST: Final = 2**62
_MOST_FLOPS: Final = 1e30
NEEDED_BY_MEMORY: Final = ("record_shapes", "profile_memory", "with_stack")
MAX_SUMMARY: Final = 500_010
"""Letters; what the recorder writes at most, and the dots behind it."""
_TIMELINE: Final = "torch_profiler.memory_timeline"
"""Its name among recorders' sources."""

_OPERATORS: Final = (
    Column("name", "Operator", unit="name", help="The operator as PyTorch names it"),
    Column("calls", "Calls", unit="count", help="How often it ran"),
    Column("self_cpu_ms", "Self CPU", unit="ms", help="Self time on the host"),
    Column("cpu_ms", "CPU", unit="ms", help="Its time on the host"),
    Column(
        "self_device_ms",
        "Self device",
        unit="ms",
        help="Time of the kernels that it launched itself",
    ),
    Column("device_ms", "Device", unit="ms", help="Time of the kernels launched in it"),
    Column(
        "self_cpu_memory_bytes",
        "Self CPU memory",
        unit="bytes",
        help="Allocated less freed on the host, without the operators inside",
    ),
    Column(
        "cpu_memory_bytes",
        "CPU memory",
        unit="bytes",
        help="Allocated less freed on the host",
    ),
    Column(
        "self_device_memory_bytes",
        "Self device memory",
        unit="bytes",
        help="Allocated less freed on devices, without the operators inside",
    ),
    Column(
        "device_memory_bytes",
        "Device memory",
        unit="bytes",
        help="Allocated less freed on devices",
    ),
    Column("flops", "FLOP", unit="flops", help="As torch counts them"),
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


@route("trace_reports", OfRanksQuery)
def trace_reports(asked: RouteRequest[OfRanksQuery]) -> TraceReportsResponse:
    """What the recordings of a run say of their traces."""
    state, query = asked.state, asked.query
    with state.reading(query.run) as reading:
        run, budget = reading
        reports = [
            report
            for report in state.trace_reports.of(run, budget)
            if query.wants(report.file.rank)
        ]
        shown = [(report.id, report.entry.offset) for report in reports]
        asked.decided_by(run.version, shown, reading.goes_on)
        return TraceReportsResponse(
            run=state.summary(run),
            reports=tuple(map(_report, reports)),
            absent=tuple(
                status
                for status in why_absent(run, "torch_profiler")
                if not (status.status == "off" and reports)
            ),
            still_reading=reading.goes_on,
        )


@route("trace_report", ReportQuery)
def trace_report(asked: RouteRequest[ReportQuery]) -> TraceReportResponse:
    state, query = asked.state, asked.query
    with state.reading(query.run) as (run, budget):
        report = _named(state, run, query, budget)
        asked.decided_by(report.file.identity, report.entry.offset)
        absent = why_absent(run, "torch_profiler")
        try:
            tables = tables_of(report)
        except (FormatError, OSError) as error:
            raise UnreadableError(
                f"The report of the trace cannot be read: {error}",
                f"{report.file.shown_path}, byte {report.entry.offset}",
                "The other reports can; the trace's file may be there.",
            ) from error
    memory = _memory(report, tables, query)
    return TraceReportResponse(
        report=_report(report),
        summary=report.meta.text("summary", MAX_SUMMARY),
        operators=_operators(tables),
        memory=memory,
        missing="" if memory is not None else _missing(report, absent),
    )


def _named(
    readers: RunReaders, run: Run, query: ReportQuery, budget: Budget
) -> FoundReport:
    if query.report is None:
        raise BadRequestError(
            "A report must be given.", "report", "Choose one from the list."
        )
    for report in readers.trace_reports.of(run, budget):
        if report.id == query.report:
            return report
    raise NotFoundError(
        "There is no such report of a trace.",
        run.found.title[:80],
        "Reload the page: the recording may have been deleted.",
    )


def _report(report: FoundReport) -> TraceReport:
    return TraceReport(
        id=report.id,
        rank=report.file.rank,
        title=", ".join(_title(report)),
        facts=tuple(_facts(report)),
        problem=report.meta.text("problem"),
    )


def _title(report: FoundReport) -> Iterator[str]:
    """`rank 0`, `cycle 2`, `steps 10-11`, with a dash."""
    yield f"rank {report.file.rank}"
    cycle, first, last = (
        report.meta.count(key, _MOST) for key in ("cycle", "first_step", "last_step")
    )
    if cycle:
        yield f"cycle {cycle}"
    if first is not None and last is not None:
        yield f"step {first}" if first == last else f"steps {first}–{last}"  # noqa: RUF001


def _facts(report: FoundReport) -> Iterator[str]:
    meta = report.meta
    start, end = meta.count("start_ns", _MOST), meta.count("end_ns", _MOST)
    if start is not None and end is not None and end >= start:
        yield duration_text((end - start) / 1e9)
    for noun, names in (
        ("recorded", meta.texts("activities")),
        ("with", meta.flags_set("options")),
    ):
        if names:
            yield f"{noun} {', '.join(names)}"
    flops = meta.number("flops", _MOST_FLOPS)
    if flops:
        yield f"{flops_text(flops)}FLOP counted"
    path, remote = meta.text("path"), meta.text("remote")
    if not path:
        is_awaited = report.entry.context == TRACE_ENDED and report.file.close is None
        yield f"its trace {'is not yet' if is_awaited else 'was not'} saved"
        return
    gone = "" if meta.flag("kept") is True else ", no longer kept"
    size = size_text(meta.count("num_bytes", _MOST) or 0)
    yield f"{path.rpartition('/')[2]}, {size}{f' at {remote}' if remote else gone}"


def flops_text(flops: float) -> str:
    """`738 M`; without a unit below a thousand."""
    for prefix in ("", "K", "M", "G", "T", "P", "E"):
        if flops < 999.5 or prefix == "E":
            break
        flops /= 1000
    return f"{flops:.{max(0, 3 - len(str(int(flops))))}f} {prefix}"


def _operators(tables: ReportTables) -> TableRows:
    """Those with any time or memory; columns of zeros are left out."""
    columns = tables.operators
    sent = [_OPERATORS[0].sent(tables.names)]
    for column in _OPERATORS[1:]:
        values = columns.get(column.attribute)
        if values is not None and values.any():
            sent.append(column.sent(column.numbers(values)))
    num = len(tables.names)
    rows = TableRows(
        columns=tuple(sent), num_rows=num, num_all=num, usual="self_cpu_ms"
    )
    return titled(rows, "Operators of the trace", "", "No operators ran.")


def _missing(report: FoundReport, absent: tuple[SourceStatus, ...]) -> str:
    options = report.meta.flags_set("options")
    lacks = [option for option in NEEDED_BY_MEMORY if option not in options]
    if lacks:
        names = " and ".join(f"torch_profiler.{lack}" for lack in lacks)
        return (
            f"It was not recorded: the trace was made without {names}. Set"
            f" {agreeing(len(lacks), 'it', 'them')} to true; torch's analysis then takes"
            " about 50 µs for each event, beside training."
        )
    for status in absent:
        if status.source == _TIMELINE and status.reason:
            # Of several ranks one speaks there; the trace's own words stand above.
            has_own = "memory timeline" in report.meta.text("problem")
            why = "" if has_own else f" {capitalized(status.reason).rstrip('.')}."
            return f"It was not recorded.{why} {status.remedy}".rstrip()
    return (
        f"It was not recorded: {_TIMELINE} was off, or torch could not work it out; the"
        " recording says why."
    )


def _memory(
    report: FoundReport, tables: ReportTables, query: ReportQuery
) -> TraceReportMemory | None:
    devices = tuple(tables.memory)
    device = device_shown(devices, query.device)
    if device is None:
        return None
    time_ns, sizes = tables.memory[device]
    start = report.meta.count("start_ns", _MOST) or int(time_ns[0])
    x = (time_ns - start) / 1e3
    end = report.meta.count("end_ns", _MOST) or int(time_ns[-1])
    low, high = min(0.0, float(x[0])), max((end - start) / 1e3, float(x[-1]) + 1e-3)
    x0 = low if query.x0 is None else min(max(query.x0, low), high)
    x1 = high if query.x1 is None else min(max(query.x1, x0), high)
    shown = [
        category
        for category in range(len(tables.categories))
        if sizes[:, category].any()
    ]
    columns = memory_columns(x, sizes[:, shown], x0, max(x1, x0 + 1e-3), query.px)
    return TraceReportMemory(
        device=device,
        devices=devices,
        x_low=low,
        x_high=high,
        x0=x0,
        x_per_column=columns.width,
        total_bytes=f64(columns.total_bytes),
        peak_x=f64(columns.peak_x),
        categories=tuple(
            CategorySeries(
                name=tables.categories[category],
                group=FOLDS_INTO.get(tables.categories[category], "unknown"),  # type: ignore[arg-type]
                bytes=f64(columns.held[place]),
            )
            for place, category in enumerate(shown)
        ),
    )
