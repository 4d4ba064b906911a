"""Files of other tools become tables: from the cache, or read by a worker process.

At most `MAX_WORKERS` at a time, small files first. One of them is for small files alone, and
what takes long all the same leaves it to those that wait: it is set aside, and begins again
when there is room for one that takes long. So no small file waits behind large ones, or
behind others that only look small.
Whatever happens to a worker, it ends as a `ImportFailedError` of its import and of nothing
else.
"""

from __future__ import annotations

import atexit
import errno
import logging
import os
import stat
import threading
import time
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakValueDictionary

from tb_plugin import storage
from tb_plugin.jobs.worker.column_cache import ColumnCache, FileKey, Part
from tb_plugin.jobs.worker.column_file import ColumnTables, NotColumnsError
from tb_plugin.jobs.worker.errors import (
    REPORT,
    CancelledError,
    FileError,
    ImportFailedError,
    LimitError,
    ReaderError,
    RefusedError,
)
from tb_plugin.jobs.worker.forks import ForkServer
from tb_plugin.jobs.worker.kinds import SNAPSHOT, TRACE
from tb_plugin.jobs.worker.limits import GZIP, Limits, content_bytes
from tb_plugin.jobs.worker.running_import import Import
from tb_plugin.jobs.worker.worker_process import SetAsideError, WorkerProcess
from tb_plugin.storage.contract import FixedStatus

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeAlias

    from tb_plugin.jobs.worker.kinds import Kind

    _Place: TypeAlias = tuple[str, str]
    """A path and the name of the kind that it is read as."""

__all__ = ["Import", "Importer"]

_logger = logging.getLogger(__name__)

MAX_WORKERS: Final = 3
_MAX_LONG: Final = 2
"""Of these, at a time, read what is large, or takes longer than `_SHORT_S`."""
_MOST_SMALL: Final = 8 << 20
_SHORT_S: Final = 2.0
"""Of processor time, within which most files are read."""
_MAX_FAILED: Final = 1024
_RETRY_S: Final = 30.0
"""What failed for no fault of the file's is tried again after so long."""
_CALLED_OFF: Final = "The import was called off."
_UNREADABLE: Final = (
    "Check that it is there and that the user who runs TensorBoard may read it."
)


class _Waiting(NamedTuple):
    """An import that waits for its turn; those to be begun first are the smallest."""

    num_bytes: int
    """What is expected in the file, once it is inflated."""
    number: int
    """Of the import: the first to come is the first of equals."""
    found: Import
    key: FileKey
    follow: bool
    """Whether a link is followed."""


class Importer:
    """All imports of this process. Safe for threads."""

    def __init__(self, cache: ColumnCache | None = None) -> None:
        self.cache: Final = ColumnCache() if cache is None else cache
        """Where tables are kept; what is made of them may be, too."""
        self._lock = threading.Lock()
        self._queue: list[_Waiting] = []
        """A heap, as `_set_aside`."""
        self._set_aside: list[_Waiting] = []
        """What was begun and takes long."""
        self._numbers = count()
        self._num_long = 0
        """Of those that are read now."""
        self._running: dict[_Place, tuple[Import, FileKey]] = {}
        """Under way or waiting."""
        self._failed: dict[_Place, tuple[Import, FileKey, float]] = {}
        self._mapped: WeakValueDictionary[tuple[FileKey, str], ColumnTables]
        self._mapped = WeakValueDictionary()
        self._num_threads = 0
        # Of traces there are as many as ranks, most of them small.
        self._forks = ForkServer((TRACE,))
        atexit.register(self.close)

    def start(
        self,
        path: str | Path,
        listed: FileKey | None = None,
        *,
        again: bool = False,
        kind: Kind = SNAPSHOT,
    ) -> Import:
        """The import of a file: done at once where the cache has it.

        `listed`: what the file was when its path was found free of links. Then nothing
        else is read in its place, and no link is followed; without it links are.

        A file that is asked for while it is being read gives the same import; one that
        was refused, or needs too much, gives the same error until the file is another,
        or somebody wants it tried `again`.
        """
        path = os.fspath(path)
        try:
            key = _key_of(path, listed)
        except FileError as error:
            found = Import(path, kind)
            found.end(error=error)
            return found
        with self._lock:
            if again:
                self._failed.pop((path, kind.name), None)
            known = self._known(path, key, kind)
            if known is not None:
                return known
        tables = self._kept(key, kind)
        num_bytes = 0 if tables is not None else _expected(path, key, kind)
        with self._lock:
            known = self._known(path, key, kind)  # another thread was faster
            if known is not None:
                return known
            found = Import(path, kind, key)
            if tables is not None:
                found.end(tables)
                return found
            self._running[_place(found)] = (found, key)
            number = next(self._numbers)
            heappush(
                self._queue, _Waiting(num_bytes, number, found, key, listed is None)
            )
            if self._num_threads < MAX_WORKERS:
                self._num_threads += 1
                threading.Thread(
                    target=self._work, name="memboard-import", daemon=True
                ).start()
        return found

    def close(self) -> None:
        """Call everything off."""
        with self._lock:
            running = [found for found, _ in self._running.values()]
        for found in running:
            found.cancel()
        self._forks.close()

    def _known(self, path: str, key: FileKey, kind: Kind) -> Import | None:
        running = self._running.get((path, kind.name))
        if running is not None and running[1] == key and not running[0].cancelled:
            return running[0]
        failed = self._failed.get((path, kind.name))
        if failed is None or failed[1] != key:
            return None
        lasting = isinstance(failed[0].error, RefusedError | LimitError)
        return failed[0] if lasting or time.monotonic() < failed[2] else None

    def _kept(self, key: FileKey, kind: Kind) -> ColumnTables | None:
        """Tables that somebody holds, or that the cache has."""
        with self._lock:
            tables = self._mapped.get((key, kind.name))
        if tables is None:
            tables = self.cache.get(key, kind)
            if tables is not None:
                with self._lock:
                    self._mapped[key, kind.name] = tables
        return tables

    def _work(self) -> None:
        """Thread: import what waits, until nothing does."""
        while True:
            with self._lock:
                taken = self._next()
                if taken is None:
                    self._num_threads -= 1
                    return
            one, turn = taken
            try:
                tables, error = self._imported(one, turn)
            except SetAsideError:
                with self._lock:
                    heappush(self._set_aside, one)
                continue
            finally:
                with self._lock:
                    self._num_long -= turn.is_long
            found, key = one.found, one.key
            with self._lock:
                place = _place(found)
                if self._running.get(place, (None,))[0] is found:
                    del self._running[place]
                if tables is not None:
                    self._mapped[key, found.kind.name] = tables
                    self._failed.pop(place, None)
                elif not isinstance(error, CancelledError):
                    while len(self._failed) >= _MAX_FAILED:
                        del self._failed[next(iter(self._failed))]
                    retry_at = time.monotonic() + _RETRY_S
                    self._failed[place] = (found, key, retry_at)
                # Within the lock, so that who asks next finds the one or the other.
                found.end(tables, error)

    def _next(self) -> tuple[_Waiting, _Turn] | None:
        """What is to be read next; hold the lock."""
        has_room = self._num_long < _MAX_LONG
        waiting = self._set_aside if self._set_aside and has_room else self._queue
        is_long = waiting is self._set_aside or (
            bool(waiting) and waiting[0].num_bytes > _MOST_SMALL
        )
        if not waiting or (is_long and not has_room):
            return None
        self._num_long += is_long
        return heappop(waiting), _Turn(self, is_long=is_long)

    def takes_long(self) -> bool:
        """Whether one more file may take long; it is counted then."""
        with self._lock:
            if self._num_long >= _MAX_LONG:
                return False
            self._num_long += 1
            return True

    def _imported(
        self, one: _Waiting, turn: _Turn
    ) -> tuple[ColumnTables | None, ImportFailedError | None]:
        found = one.found
        try:
            return self._read(one, turn), None
        except SetAsideError:
            raise
        except ImportFailedError as error:
            _logger.info("%s is not shown: %s", found.path, error)
            return None, error
        except Exception as error:
            _logger.exception("%s could not be imported", found.path)
            return None, ReaderError(
                f"Importing it failed: {error!r}.",
                found.path,
                REPORT,
            )

    def _read(self, one: _Waiting, turn: _Turn) -> ColumnTables:
        """By a worker, into the cache."""
        found, key = one.found, one.key
        with _opened(found.path, key, one.follow) as file:
            tables = self._kept(key, found.kind)  # another process may have been faster
            if tables is not None:
                return tables
            try:
                part = self.cache.begin()
            except OSError as error:
                raise _unwritable(error) from error
            try:
                self._follow(one, file, part, turn)
                return self.cache.keep(part, key, found.kind)
            except NotColumnsError as error:
                raise ReaderError(
                    f"The reader left no whole column file: {error}.",
                    found.path,
                    REPORT,
                ) from error
            except OSError as error:
                raise _unwritable(error) from error
            finally:
                self.cache.discard(part)

    def _follow(self, one: _Waiting, file: IO[Any], part: Part, turn: _Turn) -> None:
        """Start a worker and wait for it to fill the part."""
        found, key = one.found, one.key
        if found.cancelled:
            raise CancelledError(_CALLED_OFF, "", "")
        num_bytes = _content_of(file, key, found.kind)
        limits = Limits.of(num_bytes, found.kind)
        worker = WorkerProcess(file, part.file, limits, found.kind, self._forks)
        found.started(worker)
        try:
            worker.follow(found.note, turn.may_go_on)
        except ImportFailedError as error:
            if found.cancelled:
                raise CancelledError(_CALLED_OFF, "", "") from error
            # What is still being written looks torn.
            if _is_another(found.path, file, key):
                raise _changed(found.path) from error
            places = filter(None, (found.path, error.where))
            error.where = ", ".join(places)
            raise
        if _is_another(found.path, file, key):
            raise _changed(found.path)


class _Turn:
    """Whether one file may go on being read."""

    def __init__(self, importer: Importer, *, is_long: bool) -> None:
        self.is_long = is_long
        """It is counted among those that take long."""
        self._importer = importer

    def may_go_on(self, seconds: float) -> bool:
        """Whether it may, after so much processor time, or so long a silence."""
        if seconds > _SHORT_S and not self.is_long:
            self.is_long = self._importer.takes_long()
            return self.is_long
        return True


def _expected(path: str, key: FileKey, kind: Kind) -> int:
    """How much is in a file that nobody has read yet, as far as that is known."""
    files = storage.at(path)
    with suppress(OSError):
        head = files.peek(path, 0, len(GZIP))
        end = files.peek(path, -4, 4) if head == GZIP else b""
        return content_bytes(key.size, head, end, kind)
    return key.size


def _content_of(file: IO[Any], key: FileKey, kind: Kind) -> int:
    """The same of an open one, which is left at its start."""
    head = file.read(len(GZIP))
    file.seek(max(0, key.size - 4))
    end = file.read(4)
    file.seek(0)
    return content_bytes(key.size, head, end, kind)


def _place(found: Import) -> _Place:
    return found.path, found.kind.name


def _is_another(path: str, file: IO[Any], key: FileKey) -> bool:
    """Whether the file was written to since it had this key."""
    return storage.at(path).is_another(path, file, _status_of(key))


def _status_of(key: FileKey) -> FixedStatus:
    return FixedStatus(0, key.size, key.mtime_ns, key.device, key.inode)


def _key_of(path: str, listed: FileKey | None) -> FileKey:
    """Which content the path has now.

    Raises:
        FileError: none, or not the listed one.
    """
    try:
        files = storage.at(path)
        status = files.stat(path) if listed is None else files.lstat(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    if listed is not None and stat.S_ISLNK(status.st_mode):
        raise _replaced(path)
    if not stat.S_ISREG(status.st_mode):
        raise _unreadable(path, OSError(0, "it is no regular file"))
    key = FileKey.of(status)
    if listed is not None and key != listed:
        same = (key.device, key.inode) == (listed.device, listed.inode)
        raise _changed(path) if same else _replaced(path)
    return key


def _opened(path: str, key: FileKey, follow: bool) -> IO[Any]:
    """The file, which must be the one that was asked for."""
    try:
        file = storage.at(path).descriptor(path, _status_of(key), follow=follow)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _replaced(path) from error
        raise _unreadable(path, error) from error
    if _is_another(path, file, key):
        file.close()
        raise _changed(path)
    return file


def _changed(path: str) -> FileError:
    return FileError(
        "The file changed after it was listed, or while it was read.",
        path,
        "Open it again when it is written whole.",
    )


def _replaced(path: str) -> FileError:
    return FileError(
        "Another file, or a link, took the place of the one that was listed.",
        path,
        "Choose it again from the list, which shows what lies there now.",
    )


def _unreadable(path: str, error: OSError) -> FileError:
    return FileError(
        f"The file cannot be read: {error.strerror or error}.",
        path,
        str(getattr(error, "remedy", _UNREADABLE)),
    )


def _unwritable(error: OSError) -> FileError:
    return FileError(
        f"Its tables cannot be kept: {error.strerror or error}.",
        str(error.filename or "the cache"),
        "Make room on the disk, or set MEMBOARD_CACHE_DIR to another one.",
    )
