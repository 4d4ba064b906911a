"""The files of one run as they lie in its directory: looked at, not opened."""

# os.path: a listing of thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from collector.format.names import parse_rank_file_name
from tb_plugin import storage
from tb_plugin.api.base import Problem
from tb_plugin.formats.plain_files import NotOpened, plain_file
from tb_plugin.formats.recording.frames.parts import Part
from tb_plugin.formats.snapshots.files.listing import SnapshotListing
from tb_plugin.formats.traces.files.listing import TraceListing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tb_plugin.formats.found_files import Candidate
    from tb_plugin.formats.memprofiler.listing import ImportListing
    from tb_plugin.storage.contract import Entry

MadeOf: TypeAlias = Literal["recording", "memprofiler", "snapshots", "traces"]

FileKey = tuple[int, str]
"""(rank, attempt) as the file's name says."""

MAX_PROBLEMS: Final = 50
"""Of one run, and of all that belongs to none."""


@dataclass(slots=True)
class FoundRun:
    """A directory with rank files, or with another tool's, and its latest listing."""

    id: str
    name: str
    folder: str
    """Absolute path of the directory that holds the files."""
    shown_folder: str
    """Relative to the logdir, for people."""
    root: str
    files: dict[FileKey, tuple[Part, ...]] = field(default_factory=dict)
    imports: ImportListing | None = None
    """MemProfiler's files: the run is made of them, and has no rank files."""
    snapshots: SnapshotListing | None = None
    """Files of allocator snapshots: the run is made of them, and has no rank files."""
    traces: TraceListing | None = None
    """Files of traces that lie in the run's directory."""
    only_traces: bool = False
    """The run is made of its traces, and has no rank files."""
    problems: tuple[Problem, ...] = ()
    version: int = 0
    """Raised when anything in the listing changes."""
    _seen: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def made_of(self) -> MadeOf:
        """What its files are."""
        if self.imports is not None:
            return "memprofiler"
        if self.only_traces:
            return "traces"
        return "recording" if self.snapshots is None else "snapshots"

    @property
    def is_empty(self) -> bool:
        """Whether nothing (more) lies there."""
        if self.snapshots is not None:
            return self.snapshots.is_empty and not self._has_traces
        if self.only_traces:
            return self.traces is None or self.traces.is_empty
        return not (self.files if self.imports is None else self.imports.files)

    @property
    def _has_traces(self) -> bool:
        return self.traces is not None and not self.traces.is_empty

    def put(
        self,
        kind: Literal["snapshots", "traces"],
        folder: str,
        candidates: Iterable[Candidate],
        root: str | None,
    ) -> None:
        """Say which files of a kind one directory holds; `root`: see `Listing`."""
        if kind == "traces":
            if self.traces is None:
                self.traces = TraceListing(self.shown_folder, root)
            self.traces.put(folder, candidates)
        else:
            if self.snapshots is None:
                self.snapshots = SnapshotListing(self.shown_folder, root)
            self.snapshots.put(folder, candidates)

    def list_files(self) -> None:
        """Stat every file; `files` and `version` change where something did."""
        if self.traces is not None and self.traces.list_files():
            self.version += 1
        if self.only_traces:
            self.problems = () if self.traces is None else self.traces.problems
            return
        listing = self.imports if self.snapshots is None else self.snapshots
        if listing is not None:
            if listing.list_files():
                self.problems = listing.problems
                self.version += 1
            return
        parts: dict[FileKey, list[Part]] = {}
        seen: dict[str, tuple[int, int, int]] = {}
        problems: list[Problem] = []
        files = storage.at(self.folder)
        with contextlib.suppress(OSError), files.scandir(self.folder) as entries:
            for entry in entries:
                self._look_at(entry, parts, seen, problems)
        found = tuple(problems[:MAX_PROBLEMS])
        if seen == self._seen and found == self.problems:
            return
        self._seen, self.problems = seen, found
        parts = _joined(parts)
        self.files = {
            key: self._in_order(key, files) for key, files in sorted(parts.items())
        }
        self.version += 1

    def _in_order(self, key: FileKey, files: list[Part]) -> tuple[Part, ...]:
        """The parts by number, none older than the one that follows it.

        A segment may have grown between the look at it and the listing of the next one.
        """
        files.sort(key=lambda part: part.segment or 0)
        if len(files) > 1 and len(files) != len(self.files.get(key, ())):
            finished = files[-2]
            with contextlib.suppress(OSError):
                status = storage.at(finished.path).stat(finished.path)
                files[-2] = finished._replace(
                    size_bytes=status.st_size, mtime_ns=status.st_mtime_ns
                )
        return tuple(files)

    def _look_at(
        self,
        entry: Entry,
        parts: dict[FileKey, list[Part]],
        seen: dict[str, tuple[int, int, int]],
        problems: list[Problem],
    ) -> None:
        parsed = parse_rank_file_name(entry.name)
        if parsed is None:
            return
        try:
            found = plain_file(entry.path, self.root, _is_rank_file)
        except OSError:
            return  # it vanished between the listing and the look
        if isinstance(found, NotOpened):
            path = f"{self.shown_folder}/{entry.name}"
            problems.append(
                problem(path, found.sentence, found.remedy, rank=parsed.rank)
            )
            return
        path, status = found
        part = Part(
            path,
            status.st_size,
            status.st_mtime_ns,
            status.st_dev,
            status.st_ino,
            parsed.segment,
        )
        seen[entry.name] = (part.size_bytes, part.mtime_ns, part.inode)
        parts.setdefault((parsed.rank, parsed.attempt), []).append(part)


def _joined(parts: dict[FileKey, list[Part]]) -> dict[FileKey, list[Part]]:
    """Parts by key: a process that turned out to be another rank went on under its name."""
    firsts, ends = [], {}
    for key, files in parts.items():
        numbers = [part.segment or 0 for part in files]
        firsts.append((min(numbers), key))
        ends[key[1], max(numbers)] = key
    joined = dict(parts)
    for number, key in sorted(firsts):
        before = ends.get((key[1], number - 1))
        if before in joined and before != key:
            joined[key] = [*joined.pop(before), *joined[key]]
    return joined


def _is_rank_file(name: str) -> bool:
    return parse_rank_file_name(name) is not None


def problem(
    path: str,
    what: str,
    remedy: str,
    *,
    severity: str = "warning",
    rank: int | None = None,
) -> Problem:
    """Something in the logdir that is not read."""
    return Problem(
        severity="error" if severity == "error" else "warning",
        path=path,
        what=what,
        where="",
        salvaged="",
        remedy=remedy,
        rank=rank,
    )
