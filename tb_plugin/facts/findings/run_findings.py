"""All that is wrong with a run, from all sources, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from memboard.tb_plugin.analysis.findings.improvements import with_improvements
from memboard.tb_plugin.analysis.findings.losses import steps_missing, traces_missing
from memboard.tb_plugin.api.findings import FindingsResponse
from memboard.tb_plugin.facts.findings.ends import ending_findings
from memboard.tb_plugin.facts.findings.improvements import memory_use_of
from memboard.tb_plugin.facts.findings.missing import simulating
from memboard.tb_plugin.facts.findings.rank_findings import (
    cycle_findings,
    rank_findings,
)
from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
from memboard.tb_plugin.facts.ranks.standings import Verdict
from memboard.tb_plugin.facts.series.selection import RanksQuery, chosen_ranks
from memboard.tb_plugin.facts.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.tb_plugin.analysis.findings.stragglers import RunStraggler
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.findings import Finding, Severity
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.findings.errors import ErrorsReader
    from memboard.tb_plugin.facts.findings.rank_findings import ReadRetained
    from memboard.tb_plugin.facts.ranks.losses import LossReader
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.facts.steps.stragglers import StragglersReader
    from memboard.tb_plugin.formats.recording.captures.modules import ModulesReader
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

_ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "info")


class RunFindings:
    """What is wrong with runs, from all sources. Hold a run's lock."""

    def __init__(
        self,
        series: SeriesReader,
        facts: FactsReader,
        losses: LossReader,
        stragglers: StragglersReader,
    ) -> None:
        self._series = series
        self._facts = facts
        self._losses = losses
        self._stragglers = stragglers
        self._verdicts: dict[str, tuple[int, Verdict]] = {}
        """By run, with its version."""

    def of(
        self,
        view: View[RanksQuery],
        reader: ErrorsReader,
        modules: ModulesReader,
        straggler: RunStraggler,
    ) -> FindingsResponse:
        """All findings of a run, without their Markdown.

        Args:
            view: of the run.
            reader: of errors.
            modules: of what tracked steps held.
            straggler: as the run's traces name it.
        """
        run = view.run
        errors = reader.errors(run, view.query.rank, view.budget)
        others: list[Finding] = []
        is_reading = errors.is_reading or not straggler.is_final
        if run.made_of == "recording":
            oom_steps: dict[int, int] = {}
            for error in errors.found:
                state = error.state
                if error.rank is not None and state and state.is_out_of_memory:
                    step = -1 if error.step is None else error.step
                    oom_steps[error.rank] = max(step, oom_steps.get(error.rank, -1))
            others, reads_growth = self._beside_errors(
                view, oom_steps, lambda rank: reader.retained(run, rank, view.budget)
            )
            is_reading |= reads_growth
        late = straggler.of_traces
        if late is not None and view.query.rank in (None, late.rank):
            others.append(late)
        if not errors.found and all(finding.severity == "info" for finding in others):
            others = _with_improvements(view, others, reader.facts, modules)
        if straggler.is_final and run.made_of == "recording":
            self._note(view, others)
        return FindingsResponse(
            run=view.summary,
            findings=ranked([*errors.found, *others]),
            num_errors=errors.num_errors,
            still_reading=is_reading,
            problems=errors.problems,
        )

    def verdict(self, run: Run, summary: RunSummary, budget: Budget) -> Verdict | None:
        """What the findings beside errors make of a recording; None: not known yet.

        No history is opened for it.
        """
        if not self._is_noted(run) and budget.allows():
            view = View(self._series, run, summary, RanksQuery(), budget)
            findings, _ = self._beside_errors(view, {}, None)
            self._note(view, findings)
        return self._verdicts[run.found.id][1] if self._is_noted(run) else None

    def _note(self, view: View[RanksQuery], findings: Iterable[Finding]) -> None:
        """Remember what these say, where all ranks were read for them."""
        is_all = structs.replace(view.query, run="") == RanksQuery()
        if is_all and not (view.budget.exhausted or view.run.unfinished):
            all_ranked = ranked(findings)
            wrong = [finding for finding in all_ranked if finding.severity != "info"]
            # Findings about time are off then: nobody can say that there are none.
            is_overloaded = any(finding.key == "overloaded" for finding in all_ranked)
            verdict = Verdict(None if is_overloaded else "fine")
            if wrong:
                verdict = Verdict("warned", wrong[0].title)
            self._verdicts[view.run.found.id] = view.run.version, verdict

    def _is_noted(self, run: Run) -> bool:
        stamped = self._verdicts.get(run.found.id)
        return stamped is not None and stamped[0] == run.version

    def _beside_errors(
        self,
        view: View[RanksQuery],
        ran_out: Mapping[int, int],
        retained: ReadRetained | None,
    ) -> tuple[list[Finding], bool]:
        """All that is wrong with a recording but its errors; whether more will be known.

        `ran_out`, `retained`: as `rank_findings` takes them.
        """
        run = view.run
        shown = chosen_ranks(run, view.query)
        numbers = RankNumbers(self._facts, run, view.budget)
        ends = ending_findings(run, shown, numbers, ran_out)
        of_ranks, is_reading = rank_findings(view, numbers, ran_out, retained)
        accounts = tuple(self._losses.of_run(run, set(shown), view.budget))
        missing = filter(None, (steps_missing(accounts), traces_missing(accounts)))
        cycles = cycle_findings(run, shown, view.series, view.budget)
        times = self._stragglers.of(view).findings
        findings = [*missing, *simulating(view), *ends, *of_ranks, *cycles, *times]
        return findings, is_reading


def _with_improvements(
    view: View[RanksQuery],
    findings: list[Finding],
    facts: FactsReader,
    modules: ModulesReader,
) -> list[Finding]:
    """Findings of a run in which nothing is wrong, with what would make it better."""
    if not any(finding.key == "peak" for finding in findings):
        return findings
    use = memory_use_of(view, facts, modules)
    if use is None:
        return findings
    return [
        with_improvements(finding, use) if finding.key == "peak" else finding
        for finding in findings
    ]


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first; of one severity as they came. No two have the same id."""
    seen: dict[str, int] = {}
    unique = []
    for finding in findings:
        number = seen[finding.id] = seen.get(finding.id, 0) + 1
        unique.append(
            finding
            if number == 1
            else structs.replace(finding, id=f"{finding.id}-{number}")
        )
    return tuple(sorted(unique, key=lambda finding: _ORDER.index(finding.severity)))
