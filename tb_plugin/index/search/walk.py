"""Finds the runs of the logdirs and their files, cheaply.

Two loops at two paces. The walk looks for directories that hold runs: it lists a
directory again only when its modification time says so, gives way after a while and
goes on from there at the next call. It follows links to directories, as TensorBoard
does, but for those that lead to where it is already. The other (`listing`) stats the rank files of known
runs. What is named here is all that is ever opened: ids in requests are looked up, never
joined into paths.

A directory with files of other tools becomes a run by `layout`; only where a name does not
tell what a file is, its first bytes are looked at.
"""

# ruff: noqa: PTH118, PTH120
# os.path: a walk over thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from memboard.collector.format.names import (
    DUMPS_DIR,
    RANK_FILES_DIR,
    parse_rank_file_name,
)
from memboard.tb_plugin import storage
from memboard.tb_plugin.api.base import ForeignFiles, Problem
from memboard.tb_plugin.formats.file_listing import MAX_PROBLEMS
from memboard.tb_plugin.index.listing import FoundRun
from memboard.tb_plugin.index.problems import problems_at
from memboard.tb_plugin.index.search.folders import MAX_ENTRIES, Folder, list_folder
from memboard.tb_plugin.index.search.layout import OtherRuns, relative, run_name
from memboard.tb_plugin.index.search.sniffing import SniffedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from memboard.tb_plugin.index.logdirs import Logdir
    from memboard.tb_plugin.index.search.folders import ForeignKind, Place

MAX_DIRECTORIES: Final = 100_000
_WALK_SECONDS: Final = 0.5
"""Time of one call before it returns the files found so far."""
_SETTLED_SECONDS: Final = 2.0
"""A directory changed this recently is listed again: clocks of file systems tick
slowly, and a change within the same tick leaves the modification time as it was."""
_WALK_PAUSE_SECONDS: Final = 1.0
_LIST_PAUSE_SECONDS: Final = 0.2
_POLL_SECONDS: Final = 0.02
_PAUSE_RATIO: Final = 10
"""Looking takes at most a tenth of the time, however slow the file system is."""


class Index:
    """Everything the logdirs hold. Not thread-safe: its owner locks."""

    def __init__(
        self,
        logdirs: tuple[Logdir, ...],
        clock: Callable[[], float] = time.monotonic,
        handed: Callable[[], Iterable[FoundRun]] = tuple,
    ) -> None:
        """`handed`: runs of files that a person handed over, wherever they lie."""
        self.logdirs = logdirs
        self._remotes = [
            storage.remote_at(logdir.path)
            if logdir.url is None
            else storage.mount(logdir.url)
            for logdir in logdirs
            if logdir.path is not None and storage.is_remote(logdir.path)
        ]
        self._news = 0
        """Of stores, that the last look knew."""
        self._walked_news = 0
        """Of stores, that the newest walk knew as it began: what came while it gave way
        may be of what it had passed, and is walked for again."""
        self.runs: dict[str, FoundRun] = {}
        self.version = 0
        """Raised when runs, foreign files or problems of no run change."""
        self._clock = clock
        self._handed = handed
        self._looks = SniffedFiles(clock)
        self._folders: dict[str, Folder] = {}
        self._walk: Iterator[None] | None = None
        self._next_walk = 0.0
        self._next_listing = 0.0
        self._summary: object = None

    def refresh(self) -> None:
        """Bring everything up to date, as far as it is due."""
        now = self._clock()
        news = self._num_news()
        is_news, self._news = news != self._news, news
        is_walk_due = now >= self._next_walk or news != self._walked_news
        if self._walk is not None or is_walk_due:
            self._continue_walk(now)
        for run in self._handed():
            if run.id not in self.runs:
                self.runs[run.id] = run
                self.version += 1
        if now >= self._next_listing or is_news:
            for run in self.runs.values():
                run.list_files()
            cost = self._clock() - now
            self._next_listing = now + max(_LIST_PAUSE_SECONDS, _PAUSE_RATIO * cost)

    def finish(self) -> None:
        """Walk until everything was seen; for commands, which wait for stores then."""
        for remote in self._remotes:
            remote.is_patient = False
        self._looks.is_patient = True
        self.refresh()
        while self.is_walking:
            time.sleep(_POLL_SECONDS if self.is_listing else 0.0)
            self.refresh()
        for run in self.runs.values():
            run.list_files()
        for remote in self._remotes:
            remote.is_patient = True
        self._looks.is_patient = False

    @property
    def is_walking(self) -> bool:
        """Whether the walk gave way and has not seen everything yet."""
        return self._walk is not None or self.is_listing

    @property
    def is_listing(self) -> bool:
        """Whether a store has not said yet what it holds."""
        return self._num_news() != self._walked_news or any(
            remote.is_listing for remote in self._remotes
        )

    @property
    def is_refused(self) -> bool:
        """Whether a store would not say what it holds."""
        return any(remote.refusal() is not None for remote in self._remotes)

    def _num_news(self) -> int:
        return sum(remote.version for remote in self._remotes)

    def foreign(self) -> tuple[ForeignFiles, ...]:
        """Other tools' files, by kind."""
        counts: dict[ForeignKind, tuple[int, str]] = {}
        for path in sorted(self._folders):
            for kind, count, example in self._folders[path].foreign:
                count_and_path = counts.get(kind)
                counts[kind] = (
                    (count, example)
                    if count_and_path is None
                    else (count_and_path[0] + count, count_and_path[1])
                )
        return tuple(
            ForeignFiles(kind=kind, num_files=count, example=example)
            for kind, (count, example) in sorted(counts.items())
        )

    def problems(self) -> tuple[Problem, ...]:
        """Problems that belong to no run."""
        problems = [
            problem for logdir in self.logdirs for problem in problems_at(logdir)
        ]
        if self._looks.num_allowed is not None:
            problems.append(_too_many_unknown(self._looks.num_allowed))
        for folder in self._folders.values():
            problems += folder.problems
            # Among other programs' files they surprise nobody.
            if folder.files or not self.runs:
                problems += folder.unread
        return tuple(problems[:MAX_PROBLEMS])

    def _continue_walk(self, now: float) -> None:
        if self._walk is None:
            self._walked_news = self._num_news()
            self._walk = self._walk_all()
        self._looks.begin()
        deadline = now + _WALK_SECONDS
        for _ in self._walk:
            if self._clock() > deadline:
                break
        else:
            self._walk = None
            cost = self._clock() - now
            self._next_walk = now + max(_WALK_PAUSE_SECONDS, _PAUSE_RATIO * cost)
        summary = (tuple(self.runs), self.foreign(), self.problems())
        if summary != self._summary:
            self._summary = summary
            self.version += 1

    def _walk_all(self) -> Iterator[None]:
        """One pass over all logdirs; yields after every directory."""
        folders: dict[str, Folder] = {}
        runs: dict[str, FoundRun] = {}
        others = OtherRuns(self.runs)
        num_entries = 0
        for logdir in self.logdirs:
            if logdir.path is None:
                continue
            root = logdir.path
            # A directory that was listed comes again with what it holds.
            stack: list[tuple[str, tuple[Place, ...], Folder | None]] = [
                (root, (), None)
            ]
            while stack:
                path, above, listed = stack.pop()
                if listed is None and path in folders:
                    continue  # logdirs may lie in each other
                folder = listed or self._look_into(path, root, above)
                if folder is None:
                    continue
                if listed is None:
                    num_entries += folder.num_entries
                    if len(folders) >= MAX_DIRECTORIES or num_entries > MAX_ENTRIES:
                        stack.clear()
                        folder.subfolders = ()
                        folder.problems += (_too_large(logdir),)
                    folders[path] = self._folders[path] = folder
                    above = (*above, folder.place)
                    stack += [(sub, above, None) for sub in reversed(folder.subfolders)]
                    self._take_recorded(path, folder, logdir.name, root, runs)
                    dumps = os.path.join(path, DUMPS_DIR)
                    if dumps in folder.subfolders:
                        # A job's run is made of these; what lies beside them joins it.
                        stack += [(path, above, folder), (dumps, above, None)]
                        continue
                for kind, names in folder.files.items():
                    is_mine = kind == "memprofiler" and folder.is_export
                    if is_mine and _lies_in_run(path, root, runs.values()):
                        continue  # our own export
                    run = others.take(
                        kind, path, names, prefix=logdir.name, root=root, others=runs
                    )
                    self._found(run, runs)
                yield
        # Directories that vanished drop out only after a whole pass.
        others.finish(runs)
        runs.update((run.id, run) for run in self._handed())
        self._folders, self.runs = folders, runs

    def _take_recorded(
        self,
        path: str,
        folder: Folder,
        prefix: str,
        root: str,
        runs: dict[str, FoundRun],
    ) -> None:
        """The run that was recorded in a directory, where one was."""
        if os.path.join(path, RANK_FILES_DIR[0]) in folder.subfolders:
            recorded = self._run_at(path, prefix, root)
            if recorded is not None:
                self._found(recorded, runs)

    def _found(self, run: FoundRun, runs: dict[str, FoundRun]) -> None:
        runs[run.id] = run
        if run.id not in self.runs:
            run.list_files()
            self.runs[run.id] = run

    def _look_into(
        self, path: str, root: str, above: tuple[Place, ...]
    ) -> Folder | None:
        """`above`: the directories on the way to it; it is none of them again."""
        folder = self._folders.get(path)
        try:
            status = storage.at(path).stat(path)
            mtime_ns, place = status.st_mtime_ns, (status.st_dev, status.st_ino)
            if status.st_ino and place in above:
                return None  # links lead around; all there is was met on the way
            if (
                folder is not None
                and folder.is_known
                and folder.place == place
                and folder.mtime_ns == mtime_ns
                and folder.listed_at * 1e9 - mtime_ns > _SETTLED_SECONDS * 1e9
            ):
                return folder
            return list_folder(path, root, len(above), status, self._looks)
        except (FileNotFoundError, storage.PendingError):
            return None
        except OSError as error:
            if path == root and storage.is_remote(root):
                return None  # what is wrong with a whole store is said of the logdir
            unreadable = Problem(
                "warning",
                relative(path, root),
                f"The directory cannot be read: {error.strerror or error}.",
                remedy=str(getattr(error, "remedy", "Check its permissions.")),
            )
            return Folder((0, 0), 0, 0.0, 0, (), (), (unreadable,))

    def _run_at(self, path: str, prefix: str, root: str) -> FoundRun | None:
        folder = os.path.join(path, *RANK_FILES_DIR)
        _, run_title, run_id = run_name(path, prefix, root)
        run = self.runs.get(run_id)
        if run is not None:
            return run if storage.at(folder).isdir(folder) else None
        if not _holds_rank_files(folder):
            return None
        shown = relative(folder, root)
        return FoundRun.recorded(run_id, run_title, folder, shown, root)


def _lies_in_run(path: str, root: str, runs: Iterable[FoundRun]) -> bool:
    """Whether a directory is, or lies below, one that was recorded."""
    rank_folders = {run.folder for run in runs if "recording" in run.listings}
    while os.path.join(path, *RANK_FILES_DIR) not in rank_folders:
        if path == root:
            return False
        path = os.path.dirname(path)
    return True


def _holds_rank_files(folder: str) -> bool:
    try:
        with storage.at(folder).scandir(folder) as entries:
            return any(parse_rank_file_name(entry.name) for entry in entries)
    except OSError:
        return False


def _too_large(logdir: Logdir) -> Problem:
    return Problem(
        "warning",
        logdir.shown,
        "The logdir holds too many entries; only a part of it was looked at.",
        remedy="Point --logdir further down, at the directory that holds the runs.",
    )


def _too_many_unknown(num_allowed: int) -> Problem:
    return Problem(
        "warning",
        "",
        f"More than {num_allowed:,} files have names that do not tell what they are;"
        " the rest is not searched for memory snapshots and traces.",
        remedy="Name snapshots `memory_snapshot*.pickle` and traces `*.pt.trace.json`, or point --logdir further down.",
    )
