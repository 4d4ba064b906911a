"""What exists: the runs of the logdirs and their files, found cheaply.

Two loops at two paces. The walk looks for directories that hold runs: it lists a
directory again only when its modification time says so, gives way after a while and
goes on from there at the next call. The other (`listing`) stats the rank files of known
runs. Nothing is opened, and what is named here is all that is ever opened: ids in
requests are looked up, never joined into paths.

A directory with MemProfiler's files is a run of its own, made of them, unless they are
our own export of a run in whose directory they lie.
"""

# ruff: noqa: PTH112, PTH116, PTH118, PTH119, PTH120
# os.path: a walk over thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from collector.format.names import (
    EXPORT_MARK,
    PLUGIN_NAME,
    RANK_FILES_DIR,
    parse_rank_file_name,
)
from tb_plugin import api
from tb_plugin.foreign import kind_of
from tb_plugin.listing import MAX_PROBLEMS, FoundRun, is_inside, problem
from tb_plugin.readers.memprofiler.listing import ImportListing
from tb_plugin.readers.memprofiler.names import parse_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tb_plugin.foreign import Kind
    from tb_plugin.logdirs import Logdir

MAX_DEPTH: Final = 16
MAX_DIRECTORIES: Final = 100_000
MAX_ENTRIES: Final = 1_000_000
_WALK_SECONDS: Final = 0.5
"""How long one call may walk before it answers with what it has."""
_SETTLED_SECONDS: Final = 2.0
"""A directory changed this recently is listed again: clocks of file systems tick
slowly, and a change within the same tick leaves the modification time as it was."""
_WALK_PAUSE_SECONDS: Final = 1.0
_LIST_PAUSE_SECONDS: Final = 0.2
_PAUSE_RATIO: Final = 10
"""Looking takes at most a tenth of the time, however slow the file system is."""


@dataclass(slots=True)
class _Folder:
    """What one directory of the walk held when it was last listed."""

    mtime_ns: int
    listed_at: float
    num_entries: int
    subfolders: tuple[str, ...]
    foreign: tuple[tuple[Kind, int, str], ...]
    problems: tuple[api.Problem, ...]
    has_imports: bool = False
    """Whether MemProfiler's files lie here."""
    is_export: bool = False
    """Whether it was `memboard export` that wrote them."""


class Index:
    """Everything the logdirs hold. Not thread-safe: its owner locks."""

    def __init__(
        self,
        logdirs: tuple[Logdir, ...],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.logdirs = logdirs
        self.runs: dict[str, FoundRun] = {}
        self.version = 0
        """Raised when runs, foreign files or problems of no run change."""
        self._clock = clock
        self._folders: dict[str, _Folder] = {}
        self._walk: Iterator[None] | None = None
        self._next_walk = 0.0
        self._next_listing = 0.0
        self._summary: object = None

    def refresh(self) -> None:
        """Bring everything up to date, as far as it is due."""
        now = self._clock()
        if self._walk is not None or now >= self._next_walk:
            self._continue_walk(now)
        if now >= self._next_listing:
            for run in self.runs.values():
                run.list_files()
            cost = self._clock() - now
            self._next_listing = now + max(_LIST_PAUSE_SECONDS, _PAUSE_RATIO * cost)

    @property
    def is_walking(self) -> bool:
        """Whether the walk gave way and has not seen everything yet."""
        return self._walk is not None

    def foreign(self) -> tuple[api.ForeignFiles, ...]:
        """Other tools' files, by kind."""
        counts: dict[Kind, tuple[int, str]] = {}
        for path in sorted(self._folders):
            for kind, count, example in self._folders[path].foreign:
                known = counts.get(kind)
                counts[kind] = (
                    (count, example) if known is None else (known[0] + count, known[1])
                )
        return tuple(
            api.ForeignFiles(kind=kind, num_files=count, example=example)
            for kind, (count, example) in sorted(counts.items())
        )

    def problems(self) -> tuple[api.Problem, ...]:
        """Problems that belong to no run."""
        found = [at for logdir in self.logdirs for at in _at_logdir(logdir)]
        for folder in self._folders.values():
            found += folder.problems
        return tuple(found[:MAX_PROBLEMS])

    def _continue_walk(self, now: float) -> None:
        if self._walk is None:
            self._walk = self._walk_all()
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
        folders: dict[str, _Folder] = {}
        runs: dict[str, FoundRun] = {}
        num_entries = 0
        for logdir in self.logdirs:
            if logdir.path is None:
                continue
            root = logdir.path
            stack = [(root, 0)]
            while stack:
                path, depth = stack.pop()
                if path in folders:
                    continue  # two ways to the same directory, or a loop of links
                folder = self._look_into(path, root, depth)
                if folder is None:
                    continue
                num_entries += folder.num_entries
                if len(folders) >= MAX_DIRECTORIES or num_entries > MAX_ENTRIES:
                    stack.clear()
                    folder.subfolders = ()
                    folder.problems += (_too_large(logdir),)
                folders[path] = self._folders[path] = folder
                stack += [(sub, depth + 1) for sub in reversed(folder.subfolders)]
                for run in self._runs_at(path, folder, logdir.name, root, runs):
                    runs[run.id] = run
                    if run.id not in self.runs:
                        run.list_files()
                        self.runs[run.id] = run
                yield
        # Directories that vanished drop out only after a whole pass.
        self._folders, self.runs = folders, runs

    def _look_into(self, path: str, root: str, depth: int) -> _Folder | None:
        known = self._folders.get(path)
        try:
            mtime_ns = os.stat(path).st_mtime_ns
            if known is not None and known.mtime_ns == mtime_ns:
                settled = known.listed_at * 1e9 - mtime_ns > _SETTLED_SECONDS * 1e9
                if settled:
                    return known
            return _list_folder(path, root, depth, mtime_ns)
        except FileNotFoundError:
            return None
        except OSError as error:
            unreadable = problem(
                _relative(path, root),
                f"The directory cannot be read: {error.strerror or error}.",
                "Check its permissions.",
            )
            return _Folder(0, 0.0, 0, (), (), (unreadable,))

    def _runs_at(
        self,
        path: str,
        folder: _Folder,
        prefix: str,
        root: str,
        others: Mapping[str, FoundRun],
    ) -> Iterator[FoundRun]:
        """The run recorded in a directory, and the one made of MemProfiler's files."""
        recorded = None
        if os.path.join(path, RANK_FILES_DIR[0]) in folder.subfolders:
            recorded = self._run_at(path, prefix, root)
        if recorded is not None:
            yield recorded
        if folder.has_imports:
            known = [run.folder for run in others.values() if run.imports is None]
            if recorded is not None:
                known.append(recorded.folder)
            if not (folder.is_export and _lies_in_run(path, root, known)):
                yield self._imported_at(
                    path, prefix, root, is_both=recorded is not None
                )

    def _imported_at(
        self, path: str, prefix: str, root: str, *, is_both: bool
    ) -> FoundRun:
        relative, name, run_id = _named(path, prefix, root, made_of="memprofiler")
        known = self.runs.get(run_id)
        if known is not None:
            return known
        listing = ImportListing(path, relative, root)
        if is_both:
            name = f"{name} (MemProfiler)"
        return FoundRun(run_id, name, path, relative, root, imports=listing)

    def _run_at(self, path: str, prefix: str, root: str) -> FoundRun | None:
        folder = os.path.join(path, *RANK_FILES_DIR)
        _, name, run_id = _named(path, prefix, root)
        known = self.runs.get(run_id)
        if known is not None:
            return known if os.path.isdir(folder) else None
        if not _holds_rank_files(folder, root):
            return None
        shown = _relative(folder, root)
        return FoundRun(run_id, name, folder, shown, root)


def _named(
    path: str, prefix: str, root: str, made_of: str = ""
) -> tuple[str, str, str]:
    """A run's path below the logdir, its name and its id."""
    relative = _relative(path, root)
    name = os.path.normpath(f"{prefix}/{relative}") if prefix else relative
    key = f"{root}\0{name}" + (f"\0{made_of}" if made_of else "")
    digest = hashlib.sha256(key.encode("utf-8", "replace"))
    return relative, name, digest.hexdigest()[:16]


def _lies_in_run(path: str, root: str, folders: Iterable[str]) -> bool:
    """Whether a directory is, or lies below, one whose rank files are in `folders`."""
    rank_folders = set(folders)
    while os.path.join(path, *RANK_FILES_DIR) not in rank_folders:
        if path == root:
            return False
        path = os.path.dirname(path)
    return True


def _list_folder(path: str, root: str, depth: int, mtime_ns: int) -> _Folder:
    listed_at = time.time()
    subfolders: list[str] = []
    foreign: dict[Kind, tuple[int, str]] = {}
    problems: list[api.Problem] = []
    num_entries = 0
    has_imports = is_export = False
    ours = os.path.basename(path) == PLUGIN_NAME
    with os.scandir(path) as entries:
        for entry in entries:
            num_entries += 1
            if num_entries > MAX_ENTRIES:
                break
            if entry.is_dir(follow_symlinks=False):
                if not (ours and os.path.basename(os.path.dirname(path)) == "plugins"):
                    subfolders.append(entry.path)
            elif entry.is_symlink() and _is_folder(entry):
                target = os.path.realpath(entry.path)
                if is_inside(target, root):
                    continue  # it is walked where it really lies
                problems.append(
                    problem(
                        _relative(entry.path, root),
                        "This link leads out of the logdir; it is not followed.",
                        "Point --logdir_spec at its target as well.",
                    )
                )
            elif parse_file_name(entry.name) is not None:
                has_imports = True
            elif entry.name == EXPORT_MARK:
                is_export = True
            else:
                _count_foreign(entry, root, foreign, ours=ours)
    if depth >= MAX_DEPTH and subfolders:
        problems.append(
            problem(
                _relative(path, root),
                f"Directories more than {MAX_DEPTH} levels deep are not looked into.",
                "Point --logdir further down.",
            )
        )
        subfolders.clear()
    return _Folder(
        mtime_ns,
        listed_at,
        num_entries,
        tuple(sorted(subfolders)),
        tuple((kind, count, example) for kind, (count, example) in foreign.items()),
        tuple(problems[:MAX_PROBLEMS]),
        has_imports=has_imports,
        is_export=is_export,
    )


def _count_foreign(
    entry: os.DirEntry[str],
    root: str,
    foreign: dict[Kind, tuple[int, str]],
    *,
    ours: bool,
) -> None:
    kind = kind_of(entry.name)
    if kind is None or (ours and kind == "tfevents"):
        return
    count, example = foreign.get(kind, (0, _relative(entry.path, root)))
    foreign[kind] = (count + 1, example)


def _holds_rank_files(folder: str, root: str) -> bool:
    if not is_inside(os.path.realpath(folder), root):
        return False
    try:
        with os.scandir(folder) as entries:
            return any(parse_rank_file_name(entry.name) for entry in entries)
    except OSError:
        return False


def _at_logdir(logdir: Logdir) -> Iterator[api.Problem]:
    if logdir.path is None:
        yield problem(
            logdir.shown,
            "Logdirs on remote storage are not read by this version of MemBoard.",
            "Copy the run to a local disk, or mount the bucket, and point --logdir"
            " there.",
            severity="error",
        )
    elif not os.path.isdir(logdir.path):
        yield problem(
            logdir.shown,
            "There is no such directory (yet).",
            "Check --logdir; the page fills by itself once the directory exists.",
        )


def _too_large(logdir: Logdir) -> api.Problem:
    return problem(
        logdir.shown,
        "The logdir holds too many entries; only a part of it was looked at.",
        "Point --logdir further down, at the directory that holds the runs.",
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _relative(path: str, root: str) -> str:
    if path == root:
        return "."
    return path[len(root.rstrip(os.sep)) + 1 :]
