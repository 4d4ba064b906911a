"""Route `/runs`: everything the logdir holds; and the summary every route repeats."""

from __future__ import annotations

from memboard.tb_plugin import plugin_version
from memboard.tb_plugin.api.base import RunsResponse
from memboard.tb_plugin.contract.parameters import Query
from memboard.tb_plugin.server.routes import RouteRequest, route


@route("runs", Query)
def runs(asked: RouteRequest[Query]) -> RunsResponse:
    """All runs, and what else lies in the logdirs."""
    state = asked.state
    summaries, standings = state.glance_at_all()
    version, foreign, problems = state.store.seen_besides()
    asked.decided_by(version, summaries, standings)
    return RunsResponse(
        logdirs=tuple(logdir.shown for logdir in state.store.index.logdirs),
        runs=tuple(summaries),
        standings=standings,
        foreign=foreign,
        problems=problems,
        plugin_version=plugin_version(),
        drop_limit_bytes=state.drops.limit_bytes,
    )
