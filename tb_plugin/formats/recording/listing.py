"""The rank files of one run as they lie in its directory: looked at, not opened."""

# ruff: noqa: PTH118
# os.path: a listing of thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

from memboard.collector.format.names import parse_rank_file_name
from memboard.tb_plugin import storage
from memboard.tb_plugin.formats.file_listing import MAX_PROBLEMS
from memboard.tb_plugin.formats.plain_files import (
    OpenRefusal,
    plain_file,
    target_outside,
)
from memboard.tb_plugin.formats.recording.frames.parts import Part

if TYPE_CHECKING:
    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.storage.entries import Entry

FileKey = tuple[int, str]
"""(rank, attempt) as the file's name says."""


class RankFileListing:
    """The files of one directory, and its latest listing."""

    def __init__(self, folder: str, shown_folder: str, root: str) -> None:
        """`root`: of the logdir; see `plain_files`."""
        self.files: dict[FileKey, tuple[Part, ...]] = {}
        self.problems: tuple[Problem, ...] = ()
        self._folder = folder
        self._shown_folder = shown_folder
        self._root: Final = root
        self._seen: dict[str, tuple[int, int, int]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing (more) lies there."""
        return not self.files

    def list_files(self) -> bool:
        """Stat every file; whether anything changed."""
        parts: dict[FileKey, list[Part]] = {}
        seen: dict[str, tuple[int, int, int]] = {}
        problems: list[Problem] = []
        files = storage.at(self._folder)
        real_folder = files.realpath(self._folder)
        with contextlib.suppress(OSError), files.scandir(self._folder) as entries:
            for entry in entries:
                self._look_at(entry, real_folder, parts, seen, problems)
        first_problems = tuple(problems[:MAX_PROBLEMS])
        if seen == self._seen and first_problems == self.problems:
            return False
        self._seen, self.problems = seen, first_problems
        self.files = {
            key: self._in_order(key, of_key)
            for key, of_key in sorted(_joined(parts).items())
        }
        return True

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
        real_folder: str,
        parts: dict[FileKey, list[Part]],
        seen: dict[str, tuple[int, int, int]],
        problems: list[Problem],
    ) -> None:
        parsed = parse_rank_file_name(entry.name)
        if parsed is None:
            return
        try:
            file = plain_file(entry.path, self._root, _is_rank_file)
        except OSError:
            return  # it vanished between the listing and the look
        shown = f"{self._shown_folder}/{entry.name}"
        if isinstance(file, OpenRefusal):
            problems.append(file.problem(shown, parsed.rank))
            return
        path, status = file
        is_link = path != entry.path
        real_path = path if is_link else os.path.join(real_folder, entry.name)
        part = Part(
            path,
            status.st_size,
            status.st_mtime_ns,
            status.st_dev,
            status.st_ino,
            parsed.segment,
            shown,
            target_outside(real_path, self._root),
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
