"""Route `/findings`: all that is wrong with a run, from all sources, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.tb_plugin.api.findings import Finding, FindingsResponse
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.pages.run_view import of_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memboard.tb_plugin.facts.findings.errors import ErrorsReader
    from memboard.tb_plugin.facts.ranks.losses import LossReader
    from memboard.tb_plugin.facts.view import View
from memboard.tb_plugin.facts.findings.run_findings import (
    _beside_errors,
    _errors,
    _worst_titles,
    _WorstTitles,
    ranked,
)


@of_run(
    "findings",
    RanksQuery,
    reads=lambda state: (_errors(state), state.losses, _worst_titles(state)),
    prefetches="facts",
    version=lambda state: _errors(state).judge.version,
)
def findings(
    view: View[RanksQuery],
    reader: ErrorsReader,
    losses: LossReader,
    worst_titles: _WorstTitles | None = None,
) -> FindingsResponse:
    """Answer `/findings`; hold the run's lock.

    `worst_titles`: where the list of runs looks; None: nobody lists them.
    """
    run = view.run
    errors = reader.errors(run, view.query.rank, view.budget)
    others: Iterable[Finding] = ()
    is_reading = errors.is_reading
    if run.made_of == "recording":
        ran_out: dict[int, int] = {}
        for one in errors.found:
            if one.rank is not None and one.state and one.state.is_out_of_memory:
                step = -1 if one.step is None else one.step
                ran_out[one.rank] = max(step, ran_out.get(one.rank, -1))
        others, reads_growth = _beside_errors(
            view,
            reader.facts,
            losses,
            ran_out,
            lambda rank: reader.retained(run, rank, view.budget),
        )
        if worst_titles is not None:
            worst_titles.note(view, others)
        is_reading |= reads_growth
    return FindingsResponse(
        run=view.summary,
        findings=ranked([*errors.found, *others]),
        num_errors=errors.num_errors,
        still_reading=is_reading,
        problems=errors.problems,
    )
