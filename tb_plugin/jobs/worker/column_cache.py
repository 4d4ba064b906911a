"""Column files of imported files, and of what was made of them, kept within a bound.

In `$MEMBOARD_CACHE_DIR`, else `$XDG_CACHE_HOME/memboard`, else `~/.cache/memboard`; where
that cannot be written or is not the user's own, in a temporary directory that goes with
the process. Several TensorBoards may use one cache: files come by renaming and go by
unlinking, which leaves those that are mapped as they are. Nothing here raises: a cache
that does not work is one without entries.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import stat
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from tb_plugin.jobs.worker.column_file import (
    ColumnTables,
    NotColumnsError,
    open_columns,
)
from tb_plugin.jobs.worker.kinds import SNAPSHOT

if TYPE_CHECKING:
    from tb_plugin.jobs.worker.kinds import Kept
    from tb_plugin.storage.contract import Status

_logger = logging.getLogger(__name__)

MAX_BYTES: Final = 4 << 30
_SUFFIX: Final = ".columns"
_PART: Final = ".part"
_STALE_S: Final = 3600
"""Age at which a part is nobody's any more; it is written to all the time."""


class FileKey(NamedTuple):
    """Which content a file has, told without reading it."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: Status) -> FileKey:
        """The key of a file by what `fstat` says of it."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def name(self, kind: Kept) -> str:
        """The name in the cache, without suffix."""
        text = ":".join(map(str, (*self, kind.name, kind.version)))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class Part(NamedTuple):
    """A file under way: to be written, then given back to `keep` or `discard`."""

    file: IO[bytes]
    path: Path


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

    def get(self, key: FileKey, kind: Kept = SNAPSHOT) -> ColumnTables | None:
        """The tables of a file, if they are kept; notes that they are used."""
        try:
            path = self._path(key, kind)
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

    def begin(self) -> Part:
        """A new file to be written.

        Raises:
            OSError: not even a temporary directory takes one.
        """
        descriptor, name = tempfile.mkstemp(_PART, dir=self.directory())
        return Part(os.fdopen(descriptor, "wb"), Path(name))

    def keep(self, part: Part, key: FileKey, kind: Kept = SNAPSHOT) -> ColumnTables:
        """Keep a file that was written, under its key, and map it.

        Raises:
            OSError: the directory is gone or full.
            NotColumnsError: what was written is no column file.
        """
        try:
            part.file.close()
            tables = open_columns(part.path)
            part.path.replace(self._path(key, kind))
        finally:
            self.discard(part)
        self._make_room(spare=self._path(key, kind).name)
        return tables

    def discard(self, part: Part) -> None:
        """Let go of a file that is not to be kept."""
        with suppress(OSError):
            part.file.close()
        with suppress(OSError):
            part.path.unlink(missing_ok=True)

    def directory(self) -> Path:
        """Where the files are; made on first use.

        Raises:
            OSError: there is none that can be written.
        """
        with self._lock:
            if self._directory is None or not self._directory.is_dir():
                self._directory = _private(self._wanted) or _temporary()
            return self._directory

    def _path(self, key: FileKey, kind: Kept) -> Path:
        return self.directory() / (key.name(kind) + _SUFFIX)

    def _make_room(self, spare: str) -> None:
        """Remove the files that were not used for longest, but for one."""
        with suppress(OSError):
            kept = sorted(self._kept(), reverse=True)
            total = 0
            for used, size, path in kept:
                total += size
                if total > self._max_bytes and path.name != spare:
                    with suppress(OSError):
                        path.unlink()
                        _logger.debug("%s was last used at %s: removed", path, used)

    def _kept(self) -> list[tuple[float, int, Path]]:
        """When each file was last used, its size and itself; drops forgotten parts."""
        with os.scandir(self.directory()) as entries:
            found = [_kept_file(entry) for entry in entries]
        return [file for file in found if file is not None]


def _kept_file(entry: os.DirEntry[str]) -> tuple[float, int, Path] | None:
    with suppress(OSError):  # another process may remove it
        status = entry.stat(follow_symlinks=False)
        if entry.name.endswith(_SUFFIX):
            return status.st_mtime, status.st_size, Path(entry.path)
        if entry.name.endswith(_PART) and status.st_mtime < time.time() - _STALE_S:
            Path(entry.path).unlink()
    return None


def cache_home() -> Path:
    """Where the user wants caches.

    Raises:
        RuntimeError: the user has no home.
    """
    if folder := os.environ.get("MEMBOARD_CACHE_DIR"):
        return Path(folder)
    if folder := os.environ.get("XDG_CACHE_HOME"):
        return Path(folder) / "memboard"
    return Path.home() / ".cache" / "memboard"


def _private(wanted: Path | None) -> Path | None:
    """A directory of the user's own that nobody else may look into; None: not to be had."""
    try:
        directory = (cache_home() if wanted is None else wanted) / "columns"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or not _is_ours(status):
            raise PermissionError(f"{directory} is not a directory of this user's")
        if stat.S_IMODE(status.st_mode) != 0o700:
            directory.chmod(0o700)
        # Writable in deed: root may write where a read-only disk says no.
        descriptor, name = tempfile.mkstemp(_PART, dir=directory)
        os.close(descriptor)
        Path(name).unlink()
    except (OSError, RuntimeError) as error:
        _logger.warning(
            "imported files are kept in a temporary directory, for this process"
            " alone: %s. Set MEMBOARD_CACHE_DIR to a directory that can be written.",
            error,
        )
        return None
    return directory


def _is_ours(status: os.stat_result) -> bool:
    # Windows knows no user ids; the directory is in the user's own folder there.
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _temporary() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="memboard-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
