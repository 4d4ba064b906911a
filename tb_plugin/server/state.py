"""State that all requests share: runs and their readers, and what the server adds.

Heavy, and imported at the first question.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.ranks.standings import SECONDS as STANDING_SECONDS
from memboard.tb_plugin.facts.ranks.standings import (
    by_need,
    standing_of,
    while_reading,
)
from memboard.tb_plugin.facts.readers import RunReaders
from memboard.tb_plugin.facts.series.selection import DrawnQuery, prefetcher
from memboard.tb_plugin.index.store import (
    CHECK_SECONDS,
    FOLLOW_SECONDS,
    Store,
    glance,
    is_large,
)
from memboard.tb_plugin.server.drop import Drops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from werkzeug.wrappers import Request

    from memboard.tb_plugin.api.base import RunStanding, RunSummary
    from memboard.tb_plugin.api.drop import DropResponse
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.listing import FoundRun
    from memboard.tb_plugin.index.logdirs import Logdir
    from memboard.tb_plugin.index.run import Run

PICKER_SECONDS: Final = 0.5
"""Time of the run picker for reading."""


class State(RunReaders):
    """One for each plugin. Safe for threads."""

    def __init__(
        self,
        logdirs: tuple[Logdir, ...],
        opened_runs: Sequence[FoundRun] = (),
        drops: Drops | None = None,
        has_perfetto: Callable[[], bool] = lambda: False,
    ) -> None:
        """`opened_runs`: runs of files that were named one by one.

        `has_perfetto`: whether a build of Perfetto's page is served beside ours.
        """
        self.drops: Final = Drops(allowed=False) if drops is None else drops
        super().__init__(Store(logdirs, lambda: (*opened_runs, *self.drops.runs())))
        self.has_perfetto: Final = has_perfetto
        self._first_series = prefetcher(self.store.series, DrawnQuery())
        self._asked: list[str] = []
        """One entry per request that is being answered; appending is atomic."""

    @contextmanager
    def answering(self, route: str) -> Iterator[None]:
        """A request of `/<name>` is being answered."""
        self._asked.append(route)
        try:
            yield
        finally:
            self._asked.pop()

    @property
    def is_asked(self) -> bool:
        """Whether a request is being answered now."""
        return bool(self._asked)

    def drop(self, request: Request) -> DropResponse:
        """Take the body of a request as a file that was dropped onto the page.

        Raises:
            RequestError: it is not taken.
        """
        candidate = self.drops.receive(request)
        run = self.store.hand_over(lambda: self.drops.add(candidate))
        return self.drops.response(candidate, run)

    def glance_at_all(self) -> tuple[list[RunSummary], tuple[RunStanding, ...]]:
        """Every run as the run picker shows it, and how it stands, the worst first."""
        runs = self.store.runs()
        budget, facts_budget = Budget(PICKER_SECONDS), Budget(STANDING_SECONDS)
        num_large = sum(map(is_large, runs))
        summaries, standings = [], []
        for run in runs:
            with run.lock:
                check, of_facts = Budget(CHECK_SECONDS / len(runs)), facts_budget
                if is_large(run):
                    of_facts = Budget(FOLLOW_SECONDS / num_large)
                    glance(run, of_facts, check, self.facts.of_file)
                else:
                    glance(run, budget, check)
                summary = self.summary(run)
                version, before = self.standings.get(summary.id, (None, None))
                standing = before
                if standing is None or version != run.version:
                    worst = partial(self._worst_title, run, summary)
                    standing, is_final = standing_of(
                        run, summary, self.facts, of_facts, worst
                    )
                    if before is not None and standing.peak_bytes is None:
                        standing = while_reading(standing, before)
                    of_version = run.version if is_final else None
                    self.standings[summary.id] = of_version, standing
            summaries.append(summary)
            standings.append(standing)
        return summaries, by_need(standings, summaries)

    def _worst_title(self, run: Run, summary: RunSummary, budget: Budget) -> str | None:
        return self.worst_titles.of_run(run, summary, budget)

    def read_first(self, file: RankFile) -> None:
        """Decode what the page shows first of a file, while its bytes are at hand."""
        self._first_series(file)

    def open_ahead(self, path: str) -> None:
        """Begin to open a history's file that was named one by one; nobody waits."""
        from memboard.tb_plugin.facts.histories.opening import begin

        begin(self, path)

    def open_trace_ahead(self, run_id: str) -> None:
        """Begin to open the trace that a run's Overview shows first, if it has any."""
        from memboard.tb_plugin.facts.traces.profiled import begin

        if self.store.run(run_id).traces:
            begin(self, run_id)

    def judge_ahead(self, run_id: str) -> bool:
        """Read some snapshots of a run, for its standing; whether more are left."""
        from memboard.tb_plugin.facts.histories.file_peaks import judge_ahead

        return judge_ahead(self, run_id)
