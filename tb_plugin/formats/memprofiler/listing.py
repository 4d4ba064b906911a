"""MemProfiler's files in one directory: looked at, not opened."""

# os.path: a listing of thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tb_plugin import storage
from tb_plugin.formats.found_files import problem_of
from tb_plugin.formats.memprofiler.names import parse_file_name
from tb_plugin.formats.plain_files import NotOpened, plain_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from tb_plugin.api.base import Problem
    from tb_plugin.formats.memprofiler.names import FileName
    from tb_plugin.storage.contract import Entry

MAX_FILES: Final = 20_000
"""Of one directory; a file per rank, function and iteration."""
_MAX_PROBLEMS: Final = 50


@dataclass(frozen=True, slots=True)
class ImportFile:
    """A file as it was last seen."""

    name: FileName
    path: str
    shown_path: str
    """Relative to the logdir, for people."""
    size_bytes: int
    mtime_ns: int
    inode: int
    device: int


@dataclass(slots=True)
class ImportListing:
    """The files of one directory, and its latest listing."""

    folder: str
    """Absolute, free of links."""
    shown_folder: str
    root: str
    """The logdir; see `plain_files`."""
    files: tuple[ImportFile, ...] = ()
    """By kind, rank, function and iteration."""
    problems: tuple[Problem, ...] = ()
    _seen: tuple[object, ...] = field(default=())

    def list_files(self) -> bool:
        """Stat every file; whether anything changed."""
        found: list[ImportFile] = []
        problems: list[Problem] = []
        with contextlib.suppress(OSError), self._entries() as entries:
            for entry in entries:
                self._look_at(entry, found, problems)
        found.sort(key=lambda f: (f.name.kind, f.name.rank, f.name.function, f.path))
        if len(found) > MAX_FILES:
            problems.append(
                problem_of(
                    self.shown_folder,
                    f"Of {len(found):,} files of MemProfiler, {MAX_FILES:,} are read.",
                    "Move some of them into another directory.",
                )
            )
            del found[MAX_FILES:]
        seen = (tuple(found), tuple(problems[:_MAX_PROBLEMS]))
        if seen == self._seen:
            return False
        self._seen = seen
        self.files, self.problems = seen
        return True

    def _entries(self) -> AbstractContextManager[Iterator[Entry]]:
        return storage.at(self.folder).scandir(self.folder)

    def _look_at(
        self,
        entry: Entry,
        found: list[ImportFile],
        problems: list[Problem],
    ) -> None:
        name = parse_file_name(entry.name)
        if name is None:
            return
        shown = entry.name
        if self.shown_folder != ".":
            shown = f"{self.shown_folder}/{entry.name}"
        try:
            looked = plain_file(entry.path, self.root, _is_of_memprofiler)
        except OSError:
            return  # it vanished between the listing and the look
        if isinstance(looked, NotOpened):
            problems.append(
                problem_of(shown, looked.sentence, looked.remedy, rank=name.rank)
            )
            return
        path, status = looked
        found.append(
            ImportFile(
                name,
                path,
                shown,
                status.st_size,
                status.st_mtime_ns,
                status.st_ino,
                status.st_dev,
            )
        )


def _is_of_memprofiler(name: str) -> bool:
    return parse_file_name(name) is not None
