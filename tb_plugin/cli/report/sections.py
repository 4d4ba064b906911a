"""Sections of a report: the most important numbers of each page, in units that fit."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.sizes import (
    bytes_text,
    counted,
    part_of,
    range_text,
    time_text,
)
from memboard.tb_plugin.analysis.findings.losses import KEYS as MISSING
from memboard.tb_plugin.analysis.findings.losses import loss_line
from memboard.tb_plugin.analysis.findings.render import FindingBlock
from memboard.tb_plugin.analysis.findings.text import duration_text
from memboard.tb_plugin.analysis.text_tables import Column, Table
from memboard.tb_plugin.cli.report.document import Section
from memboard.tb_plugin.cli.report.memory_sections import (
    MAX_ROWS,
    function_section,
    modules_section,
    snapshot_sections,
    values_of,
)
from memboard.tb_plugin.cli.report.trace_list import traces_section
from memboard.tb_plugin.cli.report.trace_sections import trace_section
from memboard.tb_plugin.cli.text import problem_lines
from memboard.tb_plugin.formats.registry import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.api.overview import (
        Attempt,
        Headline,
        OverviewResponse,
        Prediction,
    )
    from memboard.tb_plugin.api.time.steps import StepPartMean, StepRate
    from memboard.tb_plugin.cli.report.reading import RunReport

_MAX_STRAGGLERS: Final = 5

_UNITS: Final = {
    "bytes_per_step": " per step",
    "bytes_per_second": "/s",
    "percent": " %",
    "seconds": " s",
}
_ENDS: Final = {
    "closed": "in order",
    "exception": "by an exception",
    "signal": "by a signal",
    "lost": "without closing its recording",
    "running": "not yet",
}
_RATES: Final = {
    "steps": "steps per second, with pauses",
    "samples": "samples per second",
    "tokens": "tokens per second",
    "flops": "operations per second",
    "mfu": "MFU (flops per second / device peak)",
}


def run_section(report: RunReport, run_name: str) -> Section:
    """Everything that is reported of a run."""
    run = report.run
    marks = ["live"] if run.live else []
    if run.simulated:
        marks.append("simulated")
    elif run.virtual_gpu:
        marks.append(run.virtual_gpu)
    if run.made_of != "recording":
        marks.append(f"imported from {FORMATS[run.made_of].shown}")
    section = Section(f"{run_name} ({', '.join(marks)})" if marks else run_name)
    if run.simulated:
        section.add("Simulated data: no training produced these numbers.")
    elif run.virtual_gpu:
        section.add(
            f"{run.virtual_gpu}: memory is what torch's allocator did; values and times"
            " are not real."
        )
    section.add(loss_line(report.overview.losses) or None)
    if report.problems:
        section.add(f"{_counted_problems(report.problems)}, listed at the end")
    section.add(_prediction(report.overview.prediction))
    section.add(*_findings(report))
    if run.made_of == "recording":
        section.add(_numbers(report))
    elif run.num_ranks:
        section.add(counted(run.num_ranks, "rank"))
    section.add(_ranks(report.overview))
    section.add(_steps(report))
    section.add(modules_section(report))
    section.add(
        *map(
            function_section,
            (function for function in report.functions if function.function),
        )
    )
    histories = report.histories
    if histories and run.made_of == "recording":
        ranks = {history.rank for history in histories}
        of = f" on rank {ranks.pop()}" if len(ranks) == 1 else ""
        section.add(f"captures of the allocator: {len(histories)}{of}")
    section.add(*snapshot_sections(report.snapshots))
    section.add(traces_section(report.traces))
    section.add(trace_section(report.trace))
    for group in report.overview.missing:
        reason = f": {group.reason}" if group.reason else ""
        names = ", ".join(group.sources)
        section.add(f"not recorded: {names} ({group.status}){reason}")
    for problem in report.problems:
        section.add(*problem_lines(problem))
    return section


def _counted_problems(problems: Sequence[Problem]) -> str:
    """`2 problems, 1 note`, counted as in the list of runs."""
    num_notes = sum(problem.is_note for problem in problems)
    counts = ((len(problems) - num_notes, "problem"), (num_notes, "note"))
    return ", ".join(counted(number, noun) for number, noun in counts if number)


def _prediction(prediction: Prediction | None) -> Section | None:
    """Whether a run on a virtual GPU fits a real one, as `memboard run --on` said it."""
    if prediction is None:
        return None
    first, *more = prediction.sentences
    section = Section(f"{prediction.fit}: {first}")
    section.add(*more)
    rows = [
        (row.label, _range_text(row.low_bytes, row.high_bytes), row.source)
        for row in prediction.rows
    ]
    section.add(Table(PREDICTION, rows))
    return section


def _range_text(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else range_text(low, high)


def _findings(report: RunReport) -> Iterator[str | FindingBlock]:
    """What is wrong, the first error in full and the others by their sentence."""
    # What is missing stands above already.
    findings = [
        finding for finding in report.findings.findings if finding.key not in MISSING
    ]
    findings += () if report.trace is None else report.trace.profile.findings
    for place, finding in enumerate(findings):
        yield FindingBlock(finding, is_first=place == 0)
    num_errors = sum(
        finding.state is not None and finding.state.is_out_of_memory
        for finding in findings
    )
    if report.findings.num_errors > num_errors:
        more = report.findings.num_errors - num_errors
        yield f"{counted(more, 'more error')} not listed"
    if report.run.made_of == "recording" and not num_errors:
        yield "No out-of-memory error was recorded."


def _numbers(report: RunReport) -> Section:
    run = report.run
    section = Section("numbers")
    section.add(
        f"{part_of(run.num_ranks, run.world_size or run.num_ranks, 'rank')},"
        f" {counted(run.num_attempts, 'attempt')}, last step {_step(run.last_step)}"
    )
    if len(report.overview.attempts) > 1:
        section.add(Table(ATTEMPTS, report.overview.attempts))
    if report.overview.headlines:
        section.add(Table(HEADLINES, report.overview.headlines))
    return section


def _lasted(attempt: Attempt) -> str:
    return "-" if attempt.seconds is None else duration_text(attempt.seconds)


def _attempt_steps(attempt: Attempt) -> str:
    return (
        "-"
        if attempt.first_step is None
        else f"{attempt.first_step:,} to {attempt.last_step:,}"
    )


def _attempt_end(attempt: Attempt) -> str:
    overlap = ", beside the one before" if attempt.overlaps_previous else ""
    return _ENDS[attempt.ended] + overlap


def _headline_value(headline: Headline) -> str:
    if headline.value is None:
        return "-"
    if headline.other_end is not None:
        return f"{range_text(*sorted((headline.value, headline.other_end)))}, estimated"
    text = bytes_text if headline.unit.startswith("bytes") else "{:.4g}".format
    return text(headline.value) + _UNITS.get(headline.unit, "")


def _headline_place(headline: Headline) -> str:
    if headline.value is None:
        return headline.absent_reason or "not recorded"
    places = [] if headline.rank is None else [f"rank {headline.rank}"]
    places += [] if headline.step is None else [f"step {headline.step}"]
    return ", ".join(places)


ATTEMPTS: Final[Sequence[Column[Attempt]]] = (
    Column("attempt", lambda attempt: str(attempt.index)),
    Column("started", lambda attempt: time_text(attempt.started_ms), is_text=True),
    Column("lasted", _lasted),
    Column("steps", _attempt_steps, is_text=True),
    Column("ranks", lambda attempt: str(attempt.num_ranks)),
    Column("ended", _attempt_end, is_text=True),
)
HEADLINES: Final[Sequence[Column[Headline]]] = (
    Column("", lambda row: row.title),
    Column("value", _headline_value),
    Column("of", _headline_place, is_text=True),
    Column("caveat", lambda row: "; ".join(row.caveats), is_text=True),
)
PREDICTION: Final[Sequence[Column[tuple[str, str, str]]]] = (
    Column("memory", lambda row: row[0]),
    Column("size", lambda row: row[1]),
    Column("source", lambda row: row[2], is_text=True),
)
RANKS: Final[Sequence[Column[Mapping[str, Any]]]] = (
    Column("rank", lambda row: f"{row['rank']:.0f}"),
    Column("host", lambda row: row["host"] or "-", is_text=True),
    Column("peak", lambda row: bytes_text(row["peak_bytes"])),
    Column("at step", lambda row: _step(row["peak_step"])),
    Column("of", lambda row: bytes_text(row["capacity_bytes"])),
    Column("", lambda row: row["lost"]),
)
PARTS: Final[Sequence[Column[tuple[str, float, float]]]] = (
    Column("part of the step", lambda row: row[0]),
    Column("time", lambda row: duration_text(row[1])),
    Column("share", lambda row: f"{100 * row[2]:.1f} %"),
)
RATES: Final[Sequence[Column[StepRate]]] = (
    Column("throughput", lambda rate: _RATES[rate.key]),
    Column("of the rank", lambda rate: _rate(rate, rate.median)),
    Column("of all ranks", lambda rate: _rate(rate, rate.summed_median)),
)


def _step(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _ranks(overview: OverviewResponse) -> Section | None:
    columns = {
        column.key: column.texts or values_of(column.numbers)
        for column in overview.strip.table.columns
    }
    every = [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
        if overview.rank in (None, row[0])
    ]
    with_peak = [row for row in every if row["peak_bytes"] is not None]
    if not with_peak:
        return None
    with_peak.sort(key=lambda row: -row["peak_bytes"])
    title = f"highest peaks of {counted(len(every), 'rank')}"
    return Section(title, [Table(RANKS, with_peak[:MAX_ROWS])])


def _steps(report: RunReport) -> Section | None:
    steps, beside = report.steps, report.stragglers
    if steps is None or beside is None:
        return None
    usual = beside.step_seconds
    took = "-" if usual is None else duration_text(usual)
    on = "on the median rank" if beside.num_ranks > 1 else "at the median"
    section = Section(f"steps: {beside.num_steps}, {took} each {on}")
    parts = _parts(beside.parts, usual)
    if parts:
        section.add(Table(PARTS, parts))
    if steps.rates:
        rates = Table(RATES, steps.rates)
        section.add(f"throughput, rank {steps.rank} at the median:", rates)
    if steps.flops.missing and all(rate.key != "mfu" for rate in steps.rates):
        section.add(f"MFU is not known without {steps.flops.missing}")
    num_late = len(beside.late)
    if beside.ranks is not None:
        texts = {column.key: column.texts for column in beside.ranks.columns}
        rows = zip(texts["words"], texts["host"], strict=True)
        # Those that stand out come first.
        for sentence, host in islice(rows, min(num_late, _MAX_STRAGGLERS)):
            section.add(sentence + (f" ({host})" if host else ""))
    if num_late > _MAX_STRAGGLERS:
        section.add(
            f"{counted(num_late - _MAX_STRAGGLERS, 'more straggler')} not listed"
        )
    for part in steps.absent:
        section.add(f"not recorded: {part.name}: {part.reason}; {part.remedy}")
    return section


def _parts(
    parts: Sequence[StepPartMean], step_seconds: float | None
) -> list[tuple[str, float, float]]:
    """By name: seconds and share of the step above, which they sum to."""
    if not step_seconds:
        return []
    return [
        (part.name, part.usual, part.usual / step_seconds)
        for part in parts
        if part.usual is not None
    ]


def _rate(rate: StepRate, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f} %" if rate.key == "mfu" else rate_text(value)


def rate_text(value: float) -> str:
    """A number per second: `6.793`, `27,823`, `40.8 T`."""
    for low, prefix in ((1e15, " P"), (1e12, " T"), (1e9, " G")):
        if value >= low:
            return f"{value / low:.1f}{prefix}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
