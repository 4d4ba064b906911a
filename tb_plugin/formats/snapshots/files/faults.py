"""Snapshot files that are plainly broken, named before anybody opens them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from tb_plugin import api
from tb_plugin.formats.snapshots.files.heads import fault_of
from tb_plugin.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_plugin.budget import Budget
    from tb_plugin.formats.snapshots.files.found import FoundSnapshot, FoundSnapshots

_WRITING_SECONDS: Final = 10.0
"""A file changed this recently may still be on its way to the disk."""


class Faults:
    """What is wrong with the files of one run, as far as they were looked at."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.problems: tuple[api.Problem, ...] = ()
        self._clock = clock
        self._looked_at: dict[str, tuple[FoundSnapshot, api.Problem | None]] = {}
        """By the file's id: what it was like, and what was wrong."""

    def keep(self, found: FoundSnapshots) -> None:
        """Forget files that are not in this listing, or not as they were."""
        self._looked_at = {
            key: seen
            for key, seen in self._looked_at.items()
            if found.by_id(key) is seen[0]  # listings keep what did not change
        }
        self._tell()

    def note(self, file: FoundSnapshot, problem: api.Problem | None) -> bool:
        """What reading a file found; whether that is news."""
        before = self.problems
        self._looked_at[file.id] = file, problem
        self._tell()
        return self.problems != before

    def check(self, found: FoundSnapshots, budget: Budget) -> bool:
        """Look at the ends of files; True when all are done."""
        done = True
        for file in found.files:
            if file.id in self._looked_at:
                continue
            if not budget.allows():
                done = False
                break
            if self._clock() - file.mtime_ns / 1e9 < _WRITING_SECONDS:
                done = False
                continue
            try:
                self._looked_at[file.id] = file, _problem(file)
            except StorageError:
                done = False
        self._tell()
        return done

    def _tell(self) -> None:
        found = (problem for _, problem in self._looked_at.values())
        self.problems = tuple(problem for problem in found if problem is not None)


def _problem(file: FoundSnapshot) -> api.Problem | None:
    fault = fault_of(file.path)
    if fault is None:
        return None
    what, remedy = fault
    return api.Problem(
        severity="error",
        path=file.shown_path,
        what=what,
        where="",
        salvaged="nothing",
        remedy=remedy,
        rank=file.rank,
    )
