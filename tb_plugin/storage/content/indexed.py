"""Pieces of a store's files that come from the index beside them: see `run_index`.

The index of a folder is fetched once, with a few large requests, into a file without a
name; from then on what it holds is read from there. Where there is none, or what it holds
is no longer so, files are read one by one.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from concurrent.futures import TimeoutError as OverdueError
from typing import IO, TYPE_CHECKING, Any

from memboard.collector.format.errors import FormatError
from memboard.collector.format.names import RUN_INDEX
from memboard.tb_plugin.storage.content.blocks import (
    PATIENCE_SECONDS,
    WAIT_SECONDS,
    Content,
)
from memboard.tb_plugin.storage.content.copies import nameless_copy
from memboard.tb_plugin.storage.content.run_index import (
    HEAD_BYTES,
    MAX_BYTES,
    decode_head,
    head_length,
)
from memboard.tb_plugin.storage.contract import StorageError
from memboard.tb_plugin.storage.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from memboard.tb_plugin.storage.entries import RemoteEntry

_logger = logging.getLogger(__name__)


class FolderIndexes:
    """The indexes of one store's folders. Safe for threads."""

    def __init__(
        self,
        entry: Callable[[str], RemoteEntry | None],
        fetch: Callable[[str, int, int], bytes],
    ) -> None:
        """`entry` gives what a listing says of a path; `fetch` waits for bytes of it."""
        self._entry = entry
        self._fetch = fetch
        self._workers = Workers("memboard-index", 2)
        self._lock = threading.Lock()
        self._coming: dict[str, tuple[Content, Future[_Index | None]]] = {}
        """By folder: the newest index that was listed."""

    def holds(self, path: str, size_bytes: int) -> bool:
        """Whether a file is read from an index, as far as that is known by now."""
        coming = self._of(path)
        if coming is None:
            return False
        index = coming.result() if coming.done() else None
        return not coming.done() or (
            index is not None and index.has(_name(path), size_bytes)
        )

    def read(
        self, content: Content, start: int, length: int, *, is_patient: bool
    ) -> bytes | None:
        """The same as of `Blocks.read`; None where no index holds it.

        Raises:
            StorageError: the index is still on its way.
        """
        coming = self._of(content.path)
        if coming is None:
            return None
        try:
            index = coming.result(PATIENCE_SECONDS if is_patient else WAIT_SECONDS)
        except OverdueError:
            raise StorageError(
                "The index of the run is still being read", "It is tried again."
            ) from None
        end = min(start + length, content.size_bytes)
        if index is None or start >= end:
            return None
        return index.read(_name(content.path), content.size_bytes, start, end)

    def _of(self, path: str) -> Future[_Index | None] | None:
        folder = path.rpartition("/")[0]
        entry = self._entry(f"{folder}/{RUN_INDEX}")
        if entry is None or entry.is_dir() or entry.path == path:
            return None
        content = Content.of(entry.path, entry.status)
        with self._lock:
            index_of_content = self._coming.get(folder)
            if index_of_content is None or index_of_content[0] != content:
                future = self._workers.do(lambda: self._opened(content))
                index_of_content = self._coming[folder] = (content, future)
        return index_of_content[1]

    def _opened(self, content: Content) -> _Index | None:
        """On a thread of ours; None where it cannot be used, which costs time alone."""
        path, size = content.path, content.size_bytes
        if size > MAX_BYTES:
            _logger.warning("%s is not used: it has %d bytes", path, size)
            return None
        try:
            copy = nameless_copy(size, lambda start, end: self._fetch(path, start, end))
            return _Index(copy, size)
        except (FormatError, OSError) as error:
            _logger.warning(
                "%s is not used, files are read one by one: %s", path, error
            )
        return None


class _Index:
    """An index that was fetched; its copy is gone with it."""

    def __init__(self, copy: IO[Any], size_bytes: int) -> None:
        """Raises a FormatError where it is none."""
        # Whoever reads holds the index: nobody else knows when it is not needed.
        weakref.finalize(self, copy.close)
        self._copy = copy
        start = os.pread(copy.fileno(), HEAD_BYTES, 0)
        start += os.pread(copy.fileno(), head_length(start), HEAD_BYTES)
        self._files = decode_head(start, size_bytes)

    def has(self, file_name: str, size_bytes: int) -> bool:
        """Whether it knows the file as it was listed."""
        file = self._files.get(file_name)
        return file is not None and file.size_bytes == size_bytes

    def read(
        self, file_name: str, size_bytes: int, start: int, end: int
    ) -> bytes | None:
        """Bytes of a file; None where it does not hold all of them, intact."""
        if not self.has(file_name, size_bytes):
            return None
        for piece in self._files[file_name].pieces:
            if piece.start <= start and end <= piece.start + piece.length:
                data = os.pread(self._copy.fileno(), piece.length, piece.offset)
                if piece.is_intact(data):
                    return data[start - piece.start : end - piece.start]
        return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
