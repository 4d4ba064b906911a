"""The readers that all questions share: one of each, which caches what it has read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.ranks.losses import LossReader
from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
from memboard.tb_plugin.facts.ranks.run_summary import summary_of
from memboard.tb_plugin.facts.ranks.standings import Standings
from memboard.tb_plugin.jobs.lazy import LazyCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.facts.comparison.run_table import RunTable
    from memboard.tb_plugin.facts.findings.errors import ErrorsReader
    from memboard.tb_plugin.facts.findings.run_findings import RunFindings
    from memboard.tb_plugin.facts.histories.rank_peaks import RankHistories
    from memboard.tb_plugin.facts.ranks.standings import Verdict
    from memboard.tb_plugin.facts.steps.stragglers import StragglersReader
    from memboard.tb_plugin.facts.traces.run_traces import RunTraces
    from memboard.tb_plugin.formats.recording.captures.modules import ModulesReader
    from memboard.tb_plugin.formats.recording.captures.trace_reports import TraceReports
    from memboard.tb_plugin.formats.recording.functions import FunctionsReader
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.rank_summaries import RankSummaries
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.index.store import Store
    from memboard.tb_plugin.jobs.histories import Histories
    from memboard.tb_plugin.worker.importer import Importer

FIND_SECONDS: Final = 2.0
"""Time of one search for a run's histories, traces or reports."""


class Reading(NamedTuple):
    """A run whose lock is held, read as far as the budget allowed."""

    run: Run
    budget: Budget

    @property
    def goes_on(self) -> bool:
        """Whether something is left to be read."""
        return self.budget.exhausted or self.run.unfinished


class RunReaders:
    """The runs of some logdirs, and what reads them. Safe for threads.

    Readers that only some questions need are made when they are first used: what they
    import is not paid for at the start.
    """

    def __init__(self, store: Store, capacity_bytes: int | None = None) -> None:
        """`capacity_bytes`: size of the devices, for files that do not record it."""
        self.store: Final = store
        self.capacity_bytes = capacity_bytes
        self.facts: Final = FactsReader(store.series, store.cache)
        self.losses: Final[LossReader] = LossReader(store.series, self.facts)
        self.standings: Final = Standings(self.facts, self._verdict)
        self._lazy: Final = LazyCache()
        self._summaries: WeakKeyDictionary[Run, tuple[tuple[int, int], RunSummary]] = (
            WeakKeyDictionary()
        )

    def importer(self) -> Importer:
        """The one importer of other tools' files, so that few are read at a time."""

        def make() -> Importer:
            from memboard.tb_plugin.worker.importer import Importer

            return Importer()

        return self._lazy.get("importer", make)

    @property
    def histories(self) -> Histories:
        """The histories that are open, or being opened."""

        def make() -> Histories:
            from memboard.tb_plugin.jobs.histories import Histories

            return Histories(self.importer)

        return self._lazy.get("histories", make)

    @property
    def errors(self) -> ErrorsReader:
        """Errors of runs, with verdicts about their histories."""

        def make() -> ErrorsReader:
            from memboard.tb_plugin.facts.findings.errors import ErrorsReader

            return ErrorsReader(
                self.facts, self.histories, self.store.cache, self.capacity_bytes
            )

        return self._lazy.get("errors", make)

    @property
    def stragglers(self) -> StragglersReader:
        """Ranks that the others wait for, in recorded steps."""

        def make() -> StragglersReader:
            from memboard.tb_plugin.facts.steps.stragglers import StragglersReader

            return StragglersReader(self.facts)

        return self._lazy.get("stragglers", make)

    @property
    def findings(self) -> RunFindings:
        """What is wrong with runs."""

        def make() -> RunFindings:
            from memboard.tb_plugin.facts.findings.run_findings import RunFindings

            return RunFindings(
                self.store.series, self.facts, self.losses, self.stragglers
            )

        return self._lazy.get("findings", make)

    def _verdict(self, run: Run, summary: RunSummary, budget: Budget) -> Verdict | None:
        return self.findings.verdict(run, summary, budget)

    @property
    def run_table(self) -> RunTable:
        """Numbers of all runs, to compare them by."""

        def make() -> RunTable:
            from memboard.tb_plugin.facts.comparison.run_table import RunTable

            return RunTable(self)

        return self._lazy.get("run table", make)

    @property
    def functions(self) -> FunctionsReader:

        def make() -> FunctionsReader:
            from memboard.tb_plugin.formats.recording.functions import FunctionsReader

            return FunctionsReader(self.store.cache)

        return self._lazy.get("functions", make)

    @property
    def modules(self) -> ModulesReader:

        def make() -> ModulesReader:
            from memboard.tb_plugin.formats.recording.captures.modules import (
                ModulesReader,
            )

            return ModulesReader(self.store.cache)

        return self._lazy.get("modules", make)

    @property
    def rank_histories(self) -> RankHistories:
        """Peaks of the histories of all ranks."""

        def make() -> RankHistories:
            from memboard.tb_plugin.facts.histories.rank_peaks import RankHistories

            return RankHistories(self.histories, self.store.cache)

        return self._lazy.get("rank histories", make)

    @property
    def traces(self) -> RunTraces:
        """The traces of runs, and what is open of them."""

        def make() -> RunTraces:
            from memboard.tb_plugin.facts.traces.run_traces import RunTraces

            return RunTraces(self)

        return self._lazy.get("traces", make)

    @property
    def rank_summaries(self) -> RankSummaries:
        """What the ranks of a cycle of traces are compared by."""

        def make() -> RankSummaries:
            from memboard.tb_plugin.formats.recording.rank_summaries import (
                RankSummaries,
            )

            return RankSummaries(self.traces.sources)

        return self._lazy.get("rank summaries", make)

    @property
    def trace_reports(self) -> TraceReports:
        """What recordings say of traces that need not be there any more."""

        def make() -> TraceReports:
            from memboard.tb_plugin.formats.recording.captures.trace_reports import (
                TraceReports,
            )

            return TraceReports(self.store.series.capture_metas)

        return self._lazy.get("trace reports", make)

    @contextmanager
    def reading(
        self,
        run_id: str,
        seconds: float = FIND_SECONDS,
        prefetch: Callable[[RankFile], object] | None = None,
    ) -> Iterator[Reading]:
        """Hold a run's lock, and bring it up to date first; `prefetch`: see `Run.update`.

        Raises:
            NotFoundError: there is no such run.
        """
        run = self.store.run(run_id)
        with run.lock:
            budget = Budget(seconds)
            run.update(budget, prefetch)
            yield Reading(run, budget)

    def summary(self, run: Run) -> RunSummary:
        """Made anew only where the run changed; hold its lock."""
        stamp = (run.version, run.found.version)
        stamped = self._summaries.get(run)
        if stamped is None or stamped[0] != stamp:
            stamped = self._summaries[run] = (stamp, summary_of(self.store.series, run))
        return stamped[1]
