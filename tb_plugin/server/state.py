"""State that all requests share: runs and their readers, and what the server adds.

Heavy, and imported at the first question.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.ranks.standings import SECONDS as STANDING_SECONDS
from memboard.tb_plugin.facts.ranks.standings import by_need
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
        budget, num_large = Budget(PICKER_SECONDS), sum(map(is_large, runs))
        summaries = []
        for run in runs:
            with run.lock:
                check = Budget(CHECK_SECONDS / len(runs))
                if is_large(run):
                    of_facts = Budget(FOLLOW_SECONDS / num_large)
                    glance(run, of_facts, check, self.facts.of_file)
                else:
                    glance(run, budget, check)
                summaries.append(self.summary(run))
        looked = list(zip(runs, summaries, strict=True))
        standings = self.standings.look(looked, STANDING_SECONDS)
        return summaries, by_need(standings, summaries)

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
