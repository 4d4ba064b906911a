"""Column files of imported files, and of what was made of them, kept within a bound.

In `columns` of the user's caches (`cache_home`); where that cannot be written or is not the
user's alone, in a temporary directory that goes with the process. Several TensorBoards may use one cache: files come by renaming and go by
unlinking, which leaves those that are mapped as they are.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from memboard.collector.process.private_folder import (
    TemporaryFolder,
    cache_home,
    private_folder,
)
from memboard.tb_plugin.worker.columns import (
    ColumnTables,
    NotColumnsError,
    open_columns,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.storage.contract import Status

_logger = logging.getLogger(__name__)

MAX_BYTES: Final = 4 << 30
_SUFFIX: Final = ".columns"
_PART: Final = ".part"
_COUNT_EVERY: Final = 256
"""Files that are written before the directory is counted, though there seems to be room."""
_SLACK: Final = 17 / 16
"""Of the most bytes: a full cache is not counted for each file either."""
_STALE_S: Final = 3600
"""Age at which a part is nobody's any more; it is written to all the time."""


class FileKey(NamedTuple):
    """Which content a file has, known without reading it."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: Status) -> FileKey:
        """The key of a file by its `fstat`."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class ColumnCache:
    """One directory of column files. Safe for threads and beside other processes."""

    def __init__(
        self, directory: Path | None = None, max_bytes: int = MAX_BYTES
    ) -> None:
        """`directory`: None for where the user's cache is."""
        self._wanted = directory
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._directory: Path | None = None
        self._num_bytes = 2 * max_bytes
        """In the directory: counted when room is made, added to with each file since."""
        self._num_uncounted = 0
        self._stand_in = TemporaryFolder("memboard-columns-")

    def get(self, key: FileKey, made: str) -> ColumnTables | None:
        """What was `made` of a file, if it is cached; None where the cache fails."""
        try:
            path = self.path(key, made)
        except OSError:
            return None
        try:
            tables = open_columns(path)
            with suppress(OSError):
                os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, NotColumnsError) as error:
            _logger.info("%s is made again: %s", path, error)
            with suppress(OSError):
                path.unlink()
            return None
        return tables

    def put(
        self, key: FileKey, made: str, write: Callable[[IO[bytes]], None]
    ) -> ColumnTables:
        """Cache what `write` writes into an empty file, and map it.

        Raises:
            OSError: the directory is gone or full.
            NotColumnsError: what was written is no column file.
        """
        descriptor, part_path = tempfile.mkstemp(_PART, dir=self.directory())
        part = Path(part_path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                write(file)
            tables = open_columns(part)
            path = self.path(key, made)
            part.replace(path)
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        if self._may_be_full(tables.num_bytes):
            self._make_room(spare=path.name)
        return tables

    def directory(self) -> Path:
        """Where the files are; made on first use.

        Raises:
            OSError: there is none that can be written.
        """
        with self._lock:
            if self._directory is None or not self._directory.is_dir():
                self._directory = _private(self._wanted) or self._stand_in.path()
            return self._directory

    def path(self, key: FileKey, made: str) -> Path:
        """Where what is made of a file lies, or would.

        Raises:
            OSError: there is no directory that can be written.
        """
        text = ":".join(map(str, (*key, made)))
        digest = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self.directory() / (digest + _SUFFIX)

    def _may_be_full(self, num_bytes: int) -> bool:
        """Whether the directory is to be counted, with one more file of so many bytes.

        Not at each: of many small files that would take longer than to read them. Other
        processes write there too, so it is counted now and then.
        """
        with self._lock:
            self._num_bytes += num_bytes
            self._num_uncounted += 1
            is_due = self._num_uncounted >= _COUNT_EVERY
            return is_due or self._num_bytes > self._max_bytes * _SLACK

    def _make_room(self, spare: str) -> None:
        """Remove the files that were not used for longest, but for one."""
        with suppress(OSError):
            with os.scandir(self.directory()) as entries:
                files = filter(None, map(_cached_file, entries))
                newest_first = sorted(files, reverse=True)
            total = 0
            for _, size, path in newest_first:
                total += size
                if total > self._max_bytes and path.name != spare:
                    with suppress(OSError):
                        path.unlink()
                        total -= size
            with self._lock:
                self._num_bytes, self._num_uncounted = total, 0


def _cached_file(entry: os.DirEntry[str]) -> tuple[float, int, Path] | None:
    """When it was last used, its size and its path; forgotten parts are removed."""
    with suppress(OSError):  # another process may remove it
        status = entry.stat(follow_symlinks=False)
        if entry.name.endswith(_SUFFIX):
            return status.st_mtime, status.st_size, Path(entry.path)
        if entry.name.endswith(_PART) and status.st_mtime < time.time() - _STALE_S:
            Path(entry.path).unlink()
    return None


def _private(wanted: Path | None) -> Path | None:
    """A directory of the user's own that nobody else may read; None: there is none."""
    try:
        home = cache_home() if wanted is None else wanted
        directory = private_folder(home / "columns")
        # Writable in deed: root may write where a read-only disk says no.
        descriptor, probe_path = tempfile.mkstemp(_PART, dir=directory)
        os.close(descriptor)
        Path(probe_path).unlink()
    except (OSError, RuntimeError) as error:
        _logger.warning(
            "imported files are cached in a temporary directory, for this process"
            " alone: %s. Set MEMBOARD_CACHE_DIR to a directory of your own that can be"
            " written.",
            error,
        )
        return None
    return directory
