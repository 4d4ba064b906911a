"""Traces that our own recordings point to: the files of captures of kind `trace`.

Such a capture names a file in the rank's artifact folder and knows what no file's name
says: cycle, steps, activities. Nothing outside that folder is opened.
"""

# ruff: noqa: PTH118, PTH120
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, Final

from collector.format.errors import FormatError
from collector.format.names import rank_file_stem
from tb_plugin import storage
from tb_plugin.formats.recording.captures import capture_of, traces_of
from tb_plugin.formats.traces.files.found import FoundTrace, trace_id
from tb_plugin.jobs.worker.column_cache import FileKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.format.records import CaptureEntry
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.rank_file import RankFile

_MAX_PATH: Final = 1024
_MAX_CYCLE: Final = 2**31 - 1


class CapturedTraces:
    """What captures point to; each is decoded once. Not safe for threads."""

    def __init__(self) -> None:
        self._said: dict[tuple[object, ...], dict[str, Any] | None] = {}
        """`meta` by file and offset; None where it cannot be read."""

    def of(self, file: RankFile, budget: Budget) -> Iterator[FoundTrace]:
        """The traces of one rank's file, oldest first."""
        for _, entry in traces_of(file, budget):
            key = (*file.identity, entry.offset)
            if key not in self._said:
                if not budget.allows():
                    return
                self._said[key] = _meta(file, entry)
            meta = self._said[key]
            found = None if meta is None else _found(file, meta)
            if found is not None:
                yield found


def _meta(file: RankFile, entry: CaptureEntry) -> dict[str, Any] | None:
    try:
        meta = capture_of(file, entry, ()).meta
    except (FormatError, OSError, ValueError):
        return None
    return dict(meta) if isinstance(meta, dict) else None


def _found(file: RankFile, meta: dict[str, Any]) -> FoundTrace | None:
    """The file as it lies there now; None where it was deleted, or lies elsewhere."""
    said = meta.get("path")
    if not isinstance(said, str) or not 0 < len(said) <= _MAX_PATH or "\0" in said:
        return None
    beside = file.parts[0].path
    files = storage.at(beside)
    name = rank_file_stem(file.rank, file.attempt)
    folder = os.path.join(os.path.dirname(beside), name)
    inside = files.realpath(folder)
    path = files.realpath(os.path.join(folder, said))
    if not path.startswith(inside + os.sep):
        return None
    try:
        status = files.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    shown = f"{file.shown_path.rpartition('/')[0]}/{name}/{said}".lstrip("/")
    cycle = meta.get("cycle")
    known = isinstance(cycle, int) and 0 < cycle <= _MAX_CYCLE
    return FoundTrace(
        id=trace_id(shown),
        path=path,
        shown_path=shown,
        key=FileKey.of(status),
        worker=f"rank{file.rank}",
        rank=file.rank,
        cycle=cycle if known else None,
        origin="recording",
    )
