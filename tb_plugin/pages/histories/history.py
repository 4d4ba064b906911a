"""The route of one history: how far its opening is, and what it holds."""

from __future__ import annotations

from functools import partial
from typing import Final

from memboard.tb_plugin.api.memory.histories import (
    HistoryResponse,
)
from memboard.tb_plugin.facts.histories.description import facts_of
from memboard.tb_plugin.facts.histories.opening import HistoryQuery, begin_opening
from memboard.tb_plugin.server.routes import RouteRequest, route

OPEN_SECONDS: Final = 1.0
"""Longest wait of an answer for a history before it returns the progress."""


@route("history", HistoryQuery)
def history(asked: RouteRequest[HistoryQuery]) -> HistoryResponse:
    """How far it is; where it is open, what it says."""
    state = asked.state
    found_history, opening = begin_opening(state, asked.query)
    opening.wait(OPEN_SECONDS)
    run = state.store.run(asked.query.run)
    with run.lock:
        summary, version = state.summary(run), run.version
    asked.decided_by(
        version, found_history.key, opening.state, opening.progress, opening.doing
    )
    opened = opening.result
    made = HistoryResponse(
        run=summary,
        reference=found_history.reference,
        origin=found_history.origin,
        state=opening.state,
        progress=opening.progress,
        doing=opening.doing,
        facts=None
        if opened is None
        else opened.once("facts", partial(facts_of, opened)),
        problem=opening.problem,
    )
    state.histories.tidy()
    return made
