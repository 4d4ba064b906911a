"""The routes of all histories of a run, and of one: how far its opening is, what it holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.api.memory.histories import (
    HistoriesResponse,
    HistoryChoice,
    HistoryResponse,
)
from memboard.tb_plugin.contract.parameters import Query, Rank
from memboard.tb_plugin.facts.histories.description import facts_of
from memboard.tb_plugin.facts.histories.opening import HistoryQuery, begin_opening
from memboard.tb_plugin.facts.view import setup_of, why_absent
from memboard.tb_plugin.index.history_list import default_of, listed, of_rank
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from memboard.tb_plugin.index.history_list import FoundHistory
    from memboard.tb_plugin.jobs.histories import HistoryJob

OPEN_SECONDS: Final = 1.0
"""Longest wait of an answer for a history before it returns the progress."""

MAX_HISTORIES: Final = 1000

_COST: Final = "2 us per allocation, 7 us per event kept for each capture"


class HistoriesQuery(Query, frozen=True):
    """All histories of a run, or those of one rank."""

    rank: Rank | None = None


@route("histories", HistoriesQuery)
def histories(asked: RouteRequest[HistoriesQuery]) -> HistoriesResponse:
    """Those of the query, by time."""
    state, query = asked.state, asked.query
    with state.reading(query.run) as reading:
        run, budget = reading
        all_histories = listed(run, budget)
        if budget.exhausted:
            run.expect_more()
        wanted = of_rank(all_histories, query.rank)
        shown = wanted[-MAX_HISTORIES:]
        openings = [state.histories.known(history.key) for history in shown]
        asked.decided_by(
            run.version, [opening and opening.state for opening in openings]
        )
        default = default_of(wanted)
        ranks = {history.reference.rank for history in all_histories}
        return HistoriesResponse(
            run=state.summary(run),
            histories=tuple(map(_choice, shown, openings)),
            num_histories=len(wanted),
            ranks=tuple(sorted(rank for rank in ranks if rank is not None)),
            default=None if default is None else default.reference.id,
            still_reading=reading.goes_on,
            absent=()
            if reading.goes_on
            else why_absent(
                run,
                "history",
                reason=""
                if all_histories
                else "No allocator history was recorded in this run.",
                remedy=setup_of(run).no_history_remedy,
                cost=_COST,
            ),
            problems=run.problems,
        )


def _choice(history: FoundHistory, opening: HistoryJob | None) -> HistoryChoice:
    problem = None if opening is None else opening.problem
    return HistoryChoice(
        reference=history.reference,
        origin=history.origin,
        state="closed" if opening is None else opening.state,
        problem="" if problem is None else problem.what,
    )


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
