"""A profiled trace in a report: what the page leads with."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import bytes_text, counted
from memboard.tb_plugin.analysis.findings.text import duration_text, share_text
from memboard.tb_plugin.analysis.text_tables import Column, Table
from memboard.tb_plugin.cli.report.document import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from memboard.tb_plugin.api.tables import ColumnUnit, TableColumn, TableRows
    from memboard.tb_plugin.api.time.profile import ProfileResponse
    from memboard.tb_plugin.cli.report.trace_answers import TraceAnswers

_TOP: Final = 10
"""Operators and kernels that are printed; the JSON has more."""
_MAX_NAME: Final = 64
_TEXTS: Final = frozenset({"text", "name", "category", "problem"})
_CELL_BY_UNIT: Final[Mapping[ColumnUnit, Callable[[float], str]]] = {
    "ms": lambda value: duration_text(value / 1e3),
    "us": lambda value: duration_text(value / 1e6),
    "seconds": duration_text,
    "share": share_text,
    "bytes": bytes_text,
    "count": "{:,.0f}".format,
    "flops": lambda value: f"{value / 1e12:.3g} T",
}


def trace_section(answers: TraceAnswers | None) -> Section | None:
    """Steps and parts, operators, kernels, idle time, path and communication."""
    if answers is None:
        return None
    profile = answers.profile
    section = Section(f"trace: {_title(profile)}", [_steps(profile)])
    section.add(_table(profile.roles, "role", "ms", "share"))
    section.add(_table(profile.devices, "device", "num_kernels", "utilization"))
    section.add(
        _table(
            answers.categories.table, "name", "total_ms", "flop_per_s", "peak_share"
        ),
        _titled("operators", answers.operators.table),
        _titled("kernels", answers.kernels.table),
    )
    for title, sentences in (
        ("idle time", answers.trace_idle.sentences),
        ("critical path", answers.trace_path.sentences),
        ("communication", tuple(_communication(answers))),
    ):
        if sentences:
            section.add(Section(title, [*sentences]))
    return section


def _title(profile: ProfileResponse) -> str:
    chosen = (
        trace.title
        for trace in profile.choice.traces
        if trace.id == profile.choice.source
    )
    return next(chosen, "")


def _steps(profile: ProfileResponse) -> str:
    mean = duration_text(profile.mean_ms / 1e3)
    if not profile.are_marked:
        return f"no steps are marked; all of it takes {mean}"
    return f"{counted(len(profile.step), 'profiled step')}, mean {mean}"


def _communication(answers: TraceAnswers) -> Iterator[str]:
    """Of several ranks; one alone compares with none."""
    distributed = answers.distributed
    if distributed is not None and distributed.ranks.num_rows > 1:
        yield from filter(None, (distributed.sentence, distributed.summary))


def _titled(title: str, rows: TableRows) -> Section | None:
    """The first rows of a table, with the columns that a terminal has room for."""
    table = _table(
        rows,
        "name",
        "num_calls",
        "host_self_ms",
        "device_self_ms",
        "total_ms",
        "mean_us",
    )
    if table is None:
        return None
    return Section(f"{title}: {rows.summary}", [table])


def _table(rows: TableRows | None, *keys: str) -> Table[int] | None:
    """Of some columns, as far as the table has them and knows a value."""
    if rows is None or not rows.num_rows:
        return None
    num_rows = min(rows.num_rows, _TOP)
    column_by_key = {column.key: column for column in rows.columns}
    columns = [column_by_key[key] for key in keys if key in column_by_key]
    return Table(
        [_column(column) for column in columns if _has_values(column, num_rows)],
        range(num_rows),
    )


def _has_values(column: TableColumn, num_rows: int) -> bool:
    if column.unit in _TEXTS:
        return True
    return not all(map(math.isnan, column.numbers[:num_rows].tolist()))


def _column(column: TableColumn) -> Column[int]:
    is_text = column.unit in _TEXTS
    return Column(
        column.title.replace("\n", " "),
        lambda row: _short(column.texts[row]) if is_text else _number(column, row),
        is_text=is_text,
    )


def _short(text: str) -> str:
    """A name whose middle is left out where it is long: kernels' hold their templates."""
    if len(text) <= _MAX_NAME:
        return text
    half = _MAX_NAME // 2
    return f"{text[:half]}…{text[len(text) - half + 1 :]}"


def _number(column: TableColumn, row: int) -> str:
    value = float(column.numbers[row])
    if math.isnan(value):
        return column.absent_text or "-"
    return _CELL_BY_UNIT.get(column.unit, "{:.4g}".format)(value)
