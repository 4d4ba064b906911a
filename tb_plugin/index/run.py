"""One training job: its rank files followed over time, sorted into attempts.

`Run.update` reads what is new within a budget, and goes on from there the next time;
everything else here is derived from what was read and kept until the next change.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin import storage
from memboard.tb_plugin.analysis.ranks.attempts import Start, grouped
from memboard.tb_plugin.formats.recording.rank_file import RankFile
from memboard.tb_plugin.formats.snapshots.files.listing import FoundSnapshots
from memboard.tb_plugin.formats.traces.files.listing import FoundTraces
from memboard.tb_plugin.index.catalogue import Catalogue
from memboard.tb_plugin.index.history_list import HistoryList
from memboard.tb_plugin.index.notes import RunNotes
from memboard.tb_plugin.index.problems import (
    FileProblems,
    being_simulated,
    overlap_problem,
    overlapping,
    problems_of,
    settled_at,
    worst_first,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Literal

    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.memprofiler.imports import Imports
    from memboard.tb_plugin.formats.recording.frames.parts import Part
    from memboard.tb_plugin.index.listing import FileKey, FoundRun, MadeOf
    from memboard.tb_plugin.worker.cache import FileKey as ContentKey

NO_TRACES: Final = FoundTraces()

LIVE_SECONDS: Final = 30.0
"""A file that has not grown for longer is taken for abandoned."""

_CHECKED_BYTES: Final = 1 << 26
"""Runs up to this size are looked through for damage whole, a little at each poll."""


_FETCHED_AHEAD: Final = 64


@dataclass(frozen=True, slots=True)
class AttemptFiles:
    """One start of the job."""

    index: int
    started_ns: int
    files: dict[int, RankFile]  # By rank, ascending
    ended: Literal["closed", "exception", "lost", "running"]
    last_ns: int
    """When the newest row was written."""
    overlaps_previous: bool


class Run:
    """What is known of a run. Whoever reads or updates it holds its `lock`."""

    def __init__(
        self, found_run: FoundRun, clock: Callable[[], float] = time.time
    ) -> None:
        self.found = found_run
        self.lock = threading.RLock()
        self.files: dict[FileKey, RankFile] = {}
        self.version = 0
        """Raised whenever an answer about the run may change."""
        self.is_whole = False
        """Whether every file was opened (the run picker opens only a few)."""
        self._clock = clock
        self._seen = self._listing = -1
        """Versions of the listing: of the last one, and of the last read to its end."""
        self._go_on_at: FileKey = (0, "")
        """Where the last update ran out of time: the next one begins there."""
        self._attempts: tuple[AttemptFiles, ...] | None = None
        self._catalogue: Catalogue | None = None
        self._problems: tuple[Problem, ...] | None = None
        self.imported: Imports | None = None
        """What another tool's files hold, where the run is made of them."""
        if found_run.imports is not None:
            from memboard.tb_plugin.formats.memprofiler.imports import Imports

            self.imported = Imports()
        self.snapshots = FoundSnapshots()
        """Allocator snapshots in files of their own, of any tool; by id and by rank."""
        self.histories: Final = HistoryList()
        self._file_problems = FileProblems()
        self._notes = RunNotes()
        self._stale_notes = True
        self._was_live, self._num_growing = False, 0
        self._is_checked = False
        self._settled_at = inf
        """When what is fresh now, and holds nothing, is to hold something."""

    def update(
        self,
        budget: Budget,
        prefetch: Callable[[RankFile], object] | None = None,
        *,
        only: Iterable[FileKey] | None = None,
    ) -> None:
        """Read what is new in all files, or in some.

        `prefetch` is called with each file that changed, while the bytes just read are
        still at hand. Files the budget does not reach stay as they were.
        """
        # The version first: a newer listing under an older version is looked at twice,
        # the other way round it would be missed.
        version, listing = self.found.version, self.found.files
        changed = version != self._seen
        self._seen = version
        for key in self.files.keys() - listing.keys():
            del self.files[key]
        if version != self._listing or self.unfinished:
            behind = self._behind(listing, only)
            start = bisect_left(behind, self._go_on_at)
            self._fetch_ahead(behind[start : start + _FETCHED_AHEAD], listing)
            for index, key in enumerate(behind[start:] + behind[:start]):
                if index and not budget.allows():
                    self._go_on_at = key
                    break
                changed |= self._update_file(key, listing[key], budget, prefetch)
            else:
                if only is None:
                    self._listing, self._go_on_at = version, (0, "")
            self.is_whole = self.files.keys() == listing.keys()
        if self.imported is not None and self.found.imports is not None:
            changed |= self.imported.update(self.found.imports.found)
            self.snapshots = self.imported.snapshots
        elif self.found.snapshots is not None:
            self.snapshots = self.found.snapshots.found
        self._file_problems.keep(self.found.other_files)
        live, growing = self._is_live(), sum(map(self._may_grow, self.files.values()))
        changed |= (live, growing) != (self._was_live, self._num_growing)
        self._was_live, self._num_growing = live, growing
        changed |= self._clock() > self._settled_at
        if changed:
            self._changed()

    def check(self, budget: Budget, *, rank: int | None = None) -> None:
        """Look for damage where opening did not: in small runs, or in one rank.

        At a store recordings only for those who wait: it fetches all that lies there.
        """
        if rank is None and self._is_checked:
            return
        before = self.num_faults
        done = self._look_for_damage(budget, rank)
        self.note_new_faults(before)
        if rank is None:
            self._is_checked = done

    def _look_for_damage(self, budget: Budget, rank: int | None) -> bool:
        """Whether nothing is left to look at."""
        if self.imported is not None:
            size = sum(file.num_bytes for file in self.imported.found.files)
            return size > _CHECKED_BYTES or self.imported.check(budget)
        if self.found.snapshots is not None:
            return self._file_problems.check(self.snapshots, budget)
        folder = self.found.folder
        if storage.is_remote(folder) and not storage.remote_at(folder).is_patient:
            return False
        files = [f for f in self.files.values() if rank in (None, f.rank)]
        if rank is None and sum(f.num_bytes for f in files) > _CHECKED_BYTES:
            return False
        return all(file.check(budget) for file in files)

    def note_new_faults(self, before: int) -> None:
        """Reading columns may find damage: call with `num_faults` from before."""
        if self.num_faults != before:
            self._changed()

    def note_read(
        self, path_text: str, problems: Sequence[Problem], *, listed: ContentKey | None
    ) -> None:
        """Take what a reader knows to be wrong with what it read, in place of what was.

        Hold the lock. `path_text`: the path of a file, or any name of what is in no listing;
        `listed`: the content that the listing saw; None: it is in none.
        """
        if self._file_problems.note(path_text, problems, listed):
            self._changed()

    def expect_more(self) -> None:
        """An answer was cut short: the next poll gets a fuller one."""
        self.version += 1

    @property
    def num_faults(self) -> int:
        """Faults of all files so far."""
        imported = 0 if self.imported is None else self.imported.num_problems
        of_files = sum(file.num_faults_said for file in self.files.values())
        return imported + len(self._file_problems.problems) + of_files

    @property
    def unfinished(self) -> bool:
        """Whether files were left unopened or partly unread for lack of time."""
        return self.files.keys() != self.found.files.keys() or any(
            file.unfinished for file in self.files.values()
        )

    @property
    def unread_ranks(self) -> frozenset[int]:
        """Ranks some file of which was not read to its end yet."""
        read = {key for key, file in self.files.items() if not file.unfinished}
        return frozenset(rank for rank, _ in self.found.files.keys() - read)

    @property
    def attempts(self) -> tuple[AttemptFiles, ...]:
        """Starts of the job, in order."""
        if self._attempts is None:
            self._attempts = self._find_attempts()
        return self._attempts

    @property
    def catalogue(self) -> Catalogue:
        """What was recorded, and what was not and why."""
        if self._catalogue is None:
            self._catalogue = Catalogue(
                list(self.files.values()), self.notes, self.made_of
            )
        return self._catalogue

    @property
    def made_of(self) -> MadeOf:
        return self.found.made_of

    @property
    def traces(self) -> FoundTraces:
        """Files of traces in the run's directory."""
        if self.found.traces is None:
            return NO_TRACES
        traces = self.found.traces.found
        return traces.of_ranks if self.made_of == "recording" else traces

    @property
    def notes(self) -> RunNotes:
        if self._stale_notes:
            self._notes.update(self.files)
            self._stale_notes = False
        return self._notes

    @property
    def ranks(self) -> list[int]:
        """All ranks of all attempts, ascending."""
        if self.made_of == "recording":
            return sorted({rank for rank, _ in self.found.files})
        return sorted(
            {rank for other_file in self.found.other_files for rank in other_file.ranks}
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that could not be read whole, worst first, at most 200."""
        if self._problems is None:
            self._problems = self._find_problems()
        return self._problems

    def rank_files(self, rank: int) -> list[tuple[AttemptFiles, RankFile]]:
        """A rank's files by attempt, in order."""
        return [(a, a.files[rank]) for a in self.attempts if rank in a.files]

    def is_live(self) -> bool:
        """Rows arrived lately and no rank closed; or a simulation is being written."""
        return self._was_live

    def _behind(
        self,
        listing: Mapping[FileKey, tuple[Part, ...]],
        only: Iterable[FileKey] | None,
    ) -> list[FileKey]:
        """Files that hold something new, ascending."""
        keys = []
        for key in listing if only is None else sorted(listing.keys() & set(only)):
            file = self.files.get(key)
            if file is None or file.unfinished or file.parts != listing[key]:
                keys.append(key)
        return keys

    def _fetch_ahead(
        self, keys: Iterable[FileKey], listing: Mapping[FileKey, tuple[Part, ...]]
    ) -> None:
        """Have a store send what will be read next, rather than a file at a time."""
        paths = [part.path for key in keys for part in listing[key][-2:]]
        storage.at(self.found.folder).ahead(paths)

    def _update_file(
        self,
        key: FileKey,
        parts: tuple[Part, ...],
        budget: Budget,
        prefetch: Callable[[RankFile], object] | None,
    ) -> bool:
        file = self.files.get(key)
        if file is None:
            file = RankFile(*key, parts[0].path_text)
            self.files[key] = file
        if not file.update(parts, budget):
            return False
        if prefetch is not None:
            prefetch(file)
        file.drop_payloads()
        return True

    def _changed(self) -> None:
        self.version += 1
        self._attempts = self._catalogue = self._problems = None
        self._stale_notes = True
        self._is_checked = False
        self._settled_at = inf

    def _is_live(self) -> bool:
        last_by_rank: dict[int, RankFile] = {}
        for (rank, attempt), file in self.files.items():
            if rank not in last_by_rank or attempt > last_by_rank[rank].attempt:
                last_by_rank[rank] = file
        files = list(last_by_rank.values())
        is_open = not any(file.close is not None for file in files)
        return (is_open and any(map(self.file_is_live, files))) or being_simulated(
            files, self._clock() - LIVE_SECONDS
        )

    def file_is_live(self, file: RankFile) -> bool:
        """Whether its program may still run."""
        return file.close is None and self._may_grow(file)

    def _may_grow(self, file: RankFile) -> bool:
        is_over = file.is_complete or file.is_foreign
        return not is_over and self._clock() - file.newest_ns / 1e9 <= LIVE_SECONDS

    def _find_attempts(self) -> tuple[AttemptFiles, ...]:
        files = sorted(self.files.values(), key=lambda f: (f.attempt, f.rank))
        readable = [file for file in files if file.has_records]
        starts = [
            Start(f.rank, header.started.wall_ns, header.job, header.world_size)
            for f in readable
            for header in (f.header,)
        ]
        attempts: list[AttemptFiles] = []
        for index, members in enumerate(grouped(starts), start=1):
            by_rank = {readable[i].rank: readable[i] for i in members}
            by_rank = dict(sorted(by_rank.items()))
            previous = attempts[-1] if attempts else None
            attempts.append(
                AttemptFiles(
                    index=index,
                    started_ns=min(starts[i].started_ns for i in members),
                    files=by_rank,
                    ended=self._how_ended(by_rank.values()),
                    last_ns=max(file.newest_ns for file in by_rank.values()),
                    overlaps_previous=previous is not None
                    and overlapping(previous.files, by_rank) is not None,
                )
            )
        return tuple(attempts)

    def _how_ended(
        self, files: Iterable[RankFile]
    ) -> Literal["closed", "exception", "lost", "running"]:
        files = list(files)
        if any(map(self.file_is_live, files)):
            return "running"
        # Of those not read to their end yet, nobody knows.
        closes = [file.close for file in files if not file.unfinished]
        if any(close is not None and close.how == "exception" for close in closes):
            return "exception"
        return "closed" if all(close is not None for close in closes) else "lost"

    def _find_problems(self) -> tuple[Problem, ...]:
        problems = list(self.found.problems)
        if self.imported is not None:
            problems += self.imported.problems
        problems += self._file_problems.problems
        for file in self.files.values():
            problems += problems_of(file, live=self._may_grow(file), now=self._clock())
            if not file.has_records and self._clock() < settled_at(file):
                self._settled_at = min(self._settled_at, settled_at(file))
        problems = list(dict.fromkeys(problems))  # a share of a file has the file's
        for before, after in zip(self.attempts, self.attempts[1:], strict=False):
            if pair := overlapping(before.files, after.files):
                problems.append(overlap_problem(*pair))
        return worst_first(problems, self.found.shown_folder)
