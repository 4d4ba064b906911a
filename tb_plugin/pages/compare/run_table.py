"""Route `/run_table`: the runs of the logdir beside each other, to choose two of them."""

from __future__ import annotations

from memboard.tb_plugin.api.compare import RunTableResponse
from memboard.tb_plugin.contract.parameters import Query
from memboard.tb_plugin.facts.comparison.run_table import MAX_ROWS, run_table
from memboard.tb_plugin.server.routes import RouteRequest, route


@route("run_table", Query)
def run_table_of_logdir(asked: RouteRequest[Query]) -> RunTableResponse:
    """Verdicts and peaks as the list of runs has them; other numbers as they are read."""
    state = asked.state
    summaries, every = state.glance_at_all()
    summary_by_id = {summary.id: summary for summary in summaries}
    run_by_id = {run.found.id: run for run in state.store.runs()}
    standings = tuple(
        standing for standing in every[:MAX_ROWS] if standing.run in run_by_id
    )
    rows, still_reading = state.run_table.rows_of(
        run_by_id[standing.run] for standing in standings
    )
    asked.decided_by(summaries, every, state.run_table.version, still_reading)
    return RunTableResponse(
        standings=standings,
        table=run_table(
            [summary_by_id[standing.run] for standing in standings],
            standings,
            rows,
            len(every),
        ),
        still_reading=still_reading,
    )
