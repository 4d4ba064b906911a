"""The one place that holds state: what exists, what was read of it, what was decoded.

Requests come on many threads; each takes the lock for as long as it reads.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Final

from tb_plugin.budget import Budget
from tb_plugin.cache import Cache
from tb_plugin.errors import NotFoundError
from tb_plugin.index import Index
from tb_plugin.readers.series import SeriesReader
from tb_plugin.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_plugin.logdirs import Logdir
    from tb_plugin.readers.rank_file import RankFile

CACHE_BYTES: Final = 96 << 20
REQUEST_SECONDS: Final = 3.0
"""A request answers with what it has after about this long."""
_PICKER_SECONDS: Final = 0.5
_SMALL_RUN_FILES: Final = 64
"""The run picker opens runs of at most so many files whole, of others one or two."""
CHECK_SECONDS: Final = 0.1
"""What one poll may spend on looking for damage that no picture has met yet."""


class Store:
    """Runs by id, brought up to date when asked for."""

    def __init__(self, logdirs: tuple[Logdir, ...]) -> None:
        self.lock = threading.RLock()
        self.index = Index(logdirs)
        self.series = SeriesReader(Cache(CACHE_BYTES))
        self.epoch = secrets.token_hex(4)
        """Part of every ETag: another process has read other things."""
        self._runs: dict[str, Run] = {}

    @property
    def knows_runs(self) -> bool:
        """Whether any run was found so far."""
        return bool(self.index.runs)

    def look(self) -> None:
        """Look for runs, as far as that is due."""
        with self.lock:
            self.index.refresh()
            found = self.index.runs
            for run_id in self._runs.keys() - found.keys():
                del self._runs[run_id]
            for run_id, run in found.items():
                if run_id not in self._runs:
                    self._runs[run_id] = Run(run)

    def runs(self) -> list[Run]:
        """All runs by name, opened as far as the run picker needs it."""
        self.look()
        budget = Budget(_PICKER_SECONDS)
        for run in self._runs.values():
            num_files = len(run.found.files)
            if run.is_whole or num_files <= _SMALL_RUN_FILES:
                run.update(budget)
                run.check(Budget(CHECK_SECONDS / len(self._runs)))
            else:
                keys = sorted(run.found.files, key=lambda key: (key[1], key[0]))
                run.update(budget, only=(keys[0], keys[-1]))
        found = [run for run in self._runs.values() if run.found.files]
        return sorted(found, key=lambda run: (run.found.name, run.found.id))

    def run(
        self,
        run_id: str,
        budget: Budget,
        prefetch: Callable[[RankFile], object] | None = None,
    ) -> Run:
        """One run, with all its files read as far as the budget allows.

        Raises:
            NotFoundError: there is no such run (any more).
        """
        self.look()
        run = self._runs.get(run_id)
        if run is None or not run.found.files:
            raise NotFoundError(
                "There is no such run in the logdir.",
                f"run={run_id[:80]}",
                "It may have been deleted or renamed: choose another run.",
            )
        run.update(budget, prefetch)
        return run
