"""Route `/compare_traces`: a table of one profiler's trace against another's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.api.base import i32
from memboard.tb_plugin.api.compare import (
    CompareTracesResponse,
    TraceMeasure,
    TracePer,
    TraceTableName,
)
from memboard.tb_plugin.contract.parameters import SourceId, Text
from memboard.tb_plugin.contract.table import Column
from memboard.tb_plugin.facts.comparison.sentences import steps_sentence
from memboard.tb_plugin.facts.comparison.traces import (
    TABLES,
    joined,
    measures_of,
    roles_table,
    rows_of_measures,
    trace_side,
)
from memboard.tb_plugin.facts.traces.profiled import SourceQuery, shown
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.facts.comparison.traces import ComparedTable, TraceSide


class CompareTracesQuery(SourceQuery, frozen=True):
    """Side A, and by `b_` side B, which is of the same run where none is named."""

    b_run: Text | None = None
    b_source: SourceId | None = None
    table: TraceTableName = "operators"
    measure: Text | None = None
    per: TracePer | None = None
    """Where none is named: by step if the traces have not equally many."""


@route("compare_traces", CompareTracesQuery)
def compare_traces(asked: RouteRequest[CompareTracesQuery]) -> CompareTracesResponse:
    """Both traces are open already, or nothing is known of them yet."""
    query, state = asked.query, asked.state
    table = TABLES[query.table]
    chosen_traces = [
        shown(state, SourceQuery(run=run, source=source))
        for run, source in (
            (query.run, query.source),
            (query.b_run or query.run, query.b_source),
        )
    ]
    asked.decided_by(*(part for trace in chosen_traces for part in trace.stamp))
    a, b = (trace_side(trace, table) for trace in chosen_traces)
    matched = joined(a, b)
    by_trace = max(1, a.num_steps) == max(1, b.num_steps)
    per = query.per or ("trace" if by_trace else "step")
    measures = list(measures_of(table, a, b, (matched.a, matched.b), per))
    chosen = max(
        measures, key=lambda measure: measure.name == query.measure, default=None
    )
    compared, parents = rows_of_measures(
        Column(query.table, table.title, unit="name"), matched, measures, chosen
    )
    return CompareTracesResponse(
        sentence=steps_sentence(float(a.roles.sum()), float(b.roles.sum())),
        roles=roles_table(a, b),
        table=query.table,
        rows=compared,
        parent=i32(parents),
        measure="" if chosen is None else chosen.name,
        measures=tuple(
            TraceMeasure(measure.name, measure.title) for measure in measures
        ),
        per=per,
        lacks=_lacks(table, a, b),
        note=" ".join(_notes(a, b, len(matched.names) - compared.num_all)),
    )


def _lacks(table: ComparedTable, a: TraceSide, b: TraceSide) -> str:
    """What a trace did not record is no difference."""
    sides = (("A", a), ("B", b))
    opening = [side_name for side_name, side in sides if side.is_opening]
    if opening:
        return f"{' and '.join(opening)} {'are' if len(opening) == 2 else 'is'} being opened."
    without = [side_name for side_name, side in sides if not len(side.rows.names)]
    if not without:
        return ""
    subject = "Neither has any" if len(without) == 2 else f"{without[0]} has no"
    return f"{subject} {table.lacks}."


def _notes(a: TraceSide, b: TraceSide, num_left: int) -> Iterator[str]:
    if a.rows.device and a.rows.device == b.rows.device:
        yield f"Memory of {a.rows.device}."
    elif a.rows.device:
        yield f"Memory of {a.rows.device} in A, of {b.rows.device} in B."
    if num_left:
        yield f"{counted(num_left, 'row')} that differ least are not among them."
