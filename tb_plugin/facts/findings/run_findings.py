"""All that is wrong with a run, from all sources, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from memboard.tb_plugin.analysis.findings.losses import steps_missing, traces_missing
from memboard.tb_plugin.facts.findings.ends import ending_findings
from memboard.tb_plugin.facts.findings.missing import simulating
from memboard.tb_plugin.facts.findings.of_ranks import cycle_findings, rank_findings
from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
from memboard.tb_plugin.facts.series.selection import RanksQuery, chosen_ranks
from memboard.tb_plugin.facts.steps.stragglers import stragglers_view
from memboard.tb_plugin.facts.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.findings import Finding, Severity
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.findings.errors import ErrorsReader
    from memboard.tb_plugin.facts.findings.of_ranks import ReadRetained
    from memboard.tb_plugin.facts.ranks.losses import LossReader
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.server.state import State


_ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "info")


def _errors(state: State) -> ErrorsReader:
    """Imported when it is first asked for: the list of runs needs none of it."""

    def make() -> ErrorsReader:
        from memboard.tb_plugin.facts.findings.errors import ErrorsReader

        return ErrorsReader(
            state.facts, state.histories, state.store.cache, state.capacity_bytes
        )

    return state.kept.get("errors", make)


class _WorstTitles:
    """By run: the title of its worst finding beside errors, until the run changes."""

    def __init__(self) -> None:
        self._titles: dict[str, tuple[int, str]] = {}

    def of_run(self, run: Run) -> str | None:
        """Empty: it has no such finding; None: that is not known."""
        version, title = self._titles.get(run.found.id, (-1, ""))
        return title if version == run.version else None

    def note(self, view: View[RanksQuery], found: Iterable[Finding]) -> None:
        """Remember the worst of these, where all ranks were read for them."""
        is_all = structs.replace(view.query, run="") == RanksQuery()
        if is_all and not (view.budget.exhausted or view.run.unfinished):
            titles = (one.title for one in ranked(found) if one.severity != "info")
            self._titles[view.run.found.id] = view.run.version, next(titles, "")


def _worst_titles(state: State) -> _WorstTitles:
    return state.kept.get("worst titles", _WorstTitles)


def _beside_errors(
    view: View[RanksQuery],
    facts: FactsReader,
    losses: LossReader,
    ran_out: Mapping[int, int],
    retained: ReadRetained | None,
) -> tuple[list[Finding], bool]:
    """All that is wrong with a recording but its errors; whether more will be known.

    `retained`: as `rank_findings` takes it.
    """
    run = view.run
    shown = chosen_ranks(run, view.query)
    numbers = RankNumbers(facts, run, view.budget)
    ends = ending_findings(run, shown, numbers, ran_out)
    of_ranks, is_reading = rank_findings(view, numbers, ran_out, retained)
    accounts = tuple(losses.of_run(run, set(shown), view.budget))
    missing = filter(None, (steps_missing(accounts), traces_missing(accounts)))
    cycles = cycle_findings(run, shown, view.series, view.budget)
    times = stragglers_view(view).findings
    found = [*missing, *simulating(view), *ends, *of_ranks, *cycles, *times]
    return found, is_reading


def worst_title(
    state: State, run: Run, summary: RunSummary, budget: Budget
) -> str | None:
    """The worst finding of a recording beside its errors, by its title; empty: none.

    None: that is not known within the budget. No history is opened for it; hold the lock.
    """
    titles = _worst_titles(state)
    title = titles.of_run(run)
    if title is None and budget.allows():
        view = View(state.store.series, run, summary, RanksQuery(), budget)
        found, _ = _beside_errors(view, state.facts, state.losses, {}, None)
        titles.note(view, found)
        title = titles.of_run(run)
    return title


def ranked(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first; of one severity as they came. No two have the same id."""
    seen: dict[str, int] = {}
    unique = []
    for one in found:
        number = seen[one.id] = seen.get(one.id, 0) + 1
        unique.append(
            one if number == 1 else structs.replace(one, id=f"{one.id}-{number}")
        )
    return tuple(sorted(unique, key=lambda one: _ORDER.index(one.severity)))
