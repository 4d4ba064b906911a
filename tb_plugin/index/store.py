"""The one place that holds state: what exists, what was read of it, what was decoded.

Requests come on many threads. Two kinds of locks: the store's, held while looking for
runs, and each run's own, held by whoever reads it: a long look at one run keeps nobody
from another. A thread that holds a run's lock never asks for the store's.
"""

from __future__ import annotations

import secrets
import threading
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin import storage
from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.formats.recording.series import SeriesReader
from memboard.tb_plugin.index.run import Run
from memboard.tb_plugin.index.search.walk import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from memboard.tb_plugin.api.base import ForeignFiles, Problem
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.listing import FoundRun
    from memboard.tb_plugin.index.logdirs import Logdir

REQUEST_SECONDS: Final = 3.0
"""A request answers with what it has after about this long."""
CHECK_SECONDS: Final = 0.1
"""Time of one poll for finding damage that no picture has met yet."""
SMALL_RUN_FILES: Final = 64
"""The run picker opens runs of at most so many files whole at once."""
FOLLOW_SECONDS: Final = 0.1
"""Time of one poll for all larger runs together: what they wrote is read in turns."""


class Store:
    def __init__(
        self,
        logdirs: tuple[Logdir, ...],
        handed: Callable[[], Iterable[FoundRun]] = tuple,
    ) -> None:
        """`handed`: runs of files that a person handed over, wherever they lie."""
        self.cache: Final = Cache()
        self.series = SeriesReader(self.cache)
        self.epoch = secrets.token_hex(4)
        """Part of every ETag: another process has read other things."""
        self.index = Index(logdirs, handed=handed)
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}

    @property
    def knows_runs(self) -> bool:
        """Whether any run was found so far."""
        return bool(self.index.runs)

    @property
    def is_unsure(self) -> bool:
        """Whether a store has not said yet what it holds, or would not say it."""
        return self.index.is_listing or self.index.is_refused

    def runs(self) -> list[Run]:
        """All runs by name, none of them brought up to date."""
        self.look()
        runs = [run for run in list(self._runs.values()) if not run.found.is_empty]
        runs = _without_copies(runs)
        return sorted(runs, key=lambda run: (run.found.name, run.found.id))

    def run(self, run_id: str) -> Run:
        """One run.

        Raises:
            NotFoundError: there is no such run (any more).
        """
        self.look()
        run = self._runs.get(run_id)
        if run is None or run.found.is_empty:
            raise NotFoundError(
                "There is no such run in the logdir.",
                "the run in the address",
                "It may have been deleted or renamed: choose another run.",
            )
        return run

    def look(self) -> None:
        """Look for runs, as far as that is due."""
        with self._lock:
            self._look()

    def hand_over(self, add: Callable[[], FoundRun]) -> FoundRun:
        """Let `add` change the runs that were handed over, and know them at once."""
        with self._lock:
            run = add()
            self._look()
            return run

    def _look(self) -> None:
        self.index.refresh()
        runs = self.index.runs
        for run_id in self._runs.keys() - runs.keys():
            del self._runs[run_id]
        for run_id, run in runs.items():
            if run_id not in self._runs:
                self._runs[run_id] = Run(run)

    def problems(self) -> tuple[Problem, ...]:
        """Problems that belong to no run."""
        with self._lock:
            return self.index.problems()

    def seen_besides(
        self,
    ) -> tuple[int, tuple[ForeignFiles, ...], tuple[Problem, ...]]:
        """The index's version, other tools' files and problems that are no run's."""
        with self._lock:
            return self.index.version, self.index.foreign(), self.index.problems()


def _without_copies(runs: list[Run]) -> list[Run]:
    """Without traces that were merged from what other runs hold."""
    if not any(run.found.merged_of for run in runs):
        return runs
    marks = {mark for run in runs for mark in run.found.marks()}
    return [
        run for run in runs if not run.found.merged_of or run.found.merged_of - marks
    ]


def glance(
    run: Run,
    budget: Budget,
    check: Budget,
    prefetch: Callable[[RankFile], object] | None = None,
) -> None:
    """Bring a run up to date as far as the run picker needs it; hold its lock.

    A large run is opened at its ends first, and at later looks file by file, as far as
    the budget goes; at a store only once a person has opened it.
    """
    # Another tool's files are opened for what is asked of them: names tell the rest.
    if run.imported is not None:
        run.update(budget)
    elif not is_large(run):
        run.update(budget)
        run.check(check)
    elif run.is_whole or (run.files and not storage.is_remote(run.found.folder)):
        run.update(budget, prefetch)
    else:
        ends = [end(run.found.files, key=itemgetter(1, 0)) for end in (min, max)]
        run.update(budget, only=ends)


def is_large(run: Run) -> bool:
    """Whether its files are too many to be opened for one look."""
    return len(run.found.files) > SMALL_RUN_FILES
