"""The list of a run's traces in a report."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.text_tables import Column, Table
from memboard.tb_plugin.cli.report.document import Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MAX_TRACES: Final = 10
_MAX_OPERATORS: Final = 10
_BETWEEN_COLUMNS: Final = re.compile(" {2,}")


def traces_section(traces: Sequence[Mapping[str, Any]]) -> Section | None:
    if not traces:
        return None
    there = sum(trace["exists"] for trace in traces)
    section = Section(
        f"torch profiler: {counted(len(traces), 'trace')}, {there} of them here",
        [Table(TRACES, traces[-_MAX_TRACES:])],
    )
    summed_up = [trace for trace in traces if trace.get("summary")]
    if summed_up:
        section.add(_operators(max(summed_up, key=lambda trace: trace["time_ms"])))
    return section


def _operators(trace: Mapping[str, Any]) -> Section | None:
    """The first rows of the summary of a recorded trace: a title, titles of columns, rows."""
    title, *lines = trace["summary"].partition("\n\n")[0].split("\n")
    head, *rows = [_BETWEEN_COLUMNS.split(line.strip()) for line in lines] or [[]]
    whole = [row for row in rows if len(row) == len(head)][:_MAX_OPERATORS]
    if not whole:
        return None
    columns = [Column(title, itemgetter(index)) for index, title in enumerate(head)]
    sorted_by = title.partition(":")[0]
    return Section(
        f"operators in {_trace_steps(trace) or '-'} of {sorted_by}",
        [Table(columns, whole)],
    )


def _trace_holds(trace: Mapping[str, Any]) -> str:
    events = counted(trace["events"], "event") if "events" in trace else ""
    return ", ".join(filter(None, (_trace_steps(trace), events))) or "-"


def _trace_steps(trace: Mapping[str, Any]) -> str:
    """Empty where no recording says them."""
    first, last = trace.get("first_step"), trace.get("last_step")
    if first is None or last is None:
        return ""
    return f"step {first}" if first == last else f"steps {first} to {last}"


def _trace_problem(trace: Mapping[str, Any]) -> str:
    """Why it cannot be read, or what of it is missing; in full it is a problem."""
    problems = [
        problem["what"].rstrip(".")
        for problem in trace.get("problems", ())
        if not problem["is_usual"]
    ]
    return str(trace["problem"] or "; ".join(problems))


def _trace_place(trace: Mapping[str, Any]) -> str:
    return str(trace["path"] if trace["exists"] else trace["remote"] or "not here")


TRACES: Final[Sequence[Column[Mapping[str, Any]]]] = (
    Column("rank", lambda row: "-" if row["rank"] is None else str(row["rank"])),
    Column("holds", _trace_holds, is_text=True),
    Column("problem", _trace_problem, is_text=True),
    Column("where", _trace_place, is_text=True),
)
