"""Files of other tools become tables: from the cache, or read by a worker process.

At most `MAX_WORKERS` at a time, small files first. One of them is for small files alone, and
what takes long all the same leaves it to those that wait: it is stopped, and begins again
when there is room for one that takes long. So no small file waits behind large ones, or
behind others that only look small.

A worker that read a small file well reads the next one. What fails in one that read others
before is read again by a fresh one: what is said of a file never rests on another.
"""

from __future__ import annotations

import atexit
import errno
import logging
import os
import stat
import threading
from contextlib import contextmanager, suppress
from itertools import count
from typing import IO, TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from memboard.tb_plugin import storage
from memboard.tb_plugin.storage.contract import FixedStatus
from memboard.tb_plugin.worker.cache import ColumnCache, FileKey
from memboard.tb_plugin.worker.columns import ColumnTables, NotColumnsError
from memboard.tb_plugin.worker.errors import (
    REPORT,
    FileError,
    ImportFailedError,
    ReaderError,
)
from memboard.tb_plugin.worker.limits import GZIP, Kind, Limits, content_bytes
from memboard.tb_plugin.worker.process import Order, SetAsideError, WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_logger = logging.getLogger(__name__)

MAX_WORKERS: Final = 3
_MAX_LONG: Final = 2
"""Of these, at a time, read what is large, or takes longer than `_SHORT_S`."""
_MOST_SMALL: Final = 8 << 20
_SHORT_S: Final = 2.0
"""Of processor time, within which most files are read."""
_UNREADABLE: Final = (
    "Check that it is there and that the user who runs TensorBoard may read it."
)


class Importer:
    """Reads all files of this process. Safe for threads."""

    def __init__(self, cache: ColumnCache | None = None) -> None:
        self.cache: Final = ColumnCache() if cache is None else cache
        """Where tables are cached; what is made of them may be, too."""
        self._turns = _Turns()
        self._lock = threading.Lock()
        self._reading: WeakValueDictionary[tuple[FileKey, str], threading.Lock]
        self._reading = WeakValueDictionary()
        self._workers: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        """Those that have read, and may be handed another small file."""
        self._is_closed = False
        atexit.register(self.close)

    def tables(
        self,
        path: str | Path,
        kind: Kind,
        listed: FileKey | None = None,
        note: Callable[[float], object] | None = None,
    ) -> ColumnTables:
        """The tables of a file; waits until it is read.

        Args:
            path: of the file.
            kind: how it is read.
            listed: what the file was when its path was found free of links. Then nothing
                else is read in its place, and no link is followed; without it links are.
            note: is told how much of it was read, from 0 to 1.

        Raises:
            ImportFailedError: there are none; its parts say why.
        """
        path = os.fspath(path)
        key = key_of(path, listed)
        cached = self.cache.get(key, kind.cached_as)
        if cached is not None:
            return cached
        with self._lock:
            lock = self._reading.setdefault((key, kind.name), threading.Lock())
        is_long, num_bytes = False, _expected(path, key, kind)
        # Whoever asks for the same file meanwhile finds it in the cache then.
        with lock:
            while True:
                with self._turns.turn(num_bytes, is_long=is_long) as turn:
                    try:
                        return self._read(path, kind, key, listed is None, note, turn)
                    except SetAsideError:
                        is_long = True
                    except ImportFailedError as error:
                        _logger.info("%s is not shown: %s", path, error)
                        raise

    def close(self) -> None:
        """Stop all workers, and start none any more."""
        atexit.unregister(self.close)
        with self._lock:
            self._is_closed = True
            workers, idle = list(self._workers), self._idle
            self._idle = []
        for worker in workers:
            worker.kill()
        for worker in idle:
            worker.dismiss()

    def _read(
        self,
        path: str,
        kind: Kind,
        key: FileKey,
        follow: bool,
        note: Callable[[float], object] | None,
        turn: _Turn,
    ) -> ColumnTables:
        """By a worker, into the cache."""
        with _opened(path, key, follow) as file:
            # Another thread or process may have been faster.
            cached = self.cache.get(key, kind.cached_as)
            if cached is not None:
                return cached
            limits = Limits.of(_content_of(file, key, kind), kind)

            def write(columns: IO[bytes]) -> None:
                order = Order(file, columns, kind, limits, turn.is_long)
                try:
                    if not self._read_by_idle(order, note, turn):
                        self._follow(WorkerProcess(order), note, turn)
                except ImportFailedError as error:
                    # What is still being written looks torn.
                    if _is_another(path, file, key):
                        raise _changed(path) from error
                    error.where = ", ".join(filter(None, (path, error.where)))
                    raise
                if _is_another(path, file, key):
                    raise _changed(path)

            try:
                return self.cache.put(key, kind.cached_as, write)
            except NotColumnsError as error:
                sentence = f"The reader left no whole column file: {error}."
                raise ReaderError(sentence, path, REPORT) from error
            except OSError as error:
                raise FileError(
                    f"Its tables cannot be cached: {error.strerror or error}.",
                    str(error.filename or "the cache"),
                    "Make room on the disk, or set MEMBOARD_CACHE_DIR to another one.",
                ) from error

    def _read_by_idle(
        self, order: Order, note: Callable[[float], object] | None, turn: _Turn
    ) -> bool:
        """Whether a worker that has read other files read this one well, too."""
        worker = None if turn.is_long else self._take_idle()
        if worker is None:
            return False
        try:
            worker.read_more(order)
            self._follow(worker, note, turn)
        except ImportFailedError as error:
            _logger.info("a fresh worker reads it once more: %s", error)
            for file in (order.file, order.columns):
                os.lseek(file.fileno(), 0, os.SEEK_SET)
            os.ftruncate(order.columns.fileno(), 0)
            return False
        return True

    def _follow(
        self,
        worker: WorkerProcess,
        note: Callable[[float], object] | None,
        turn: _Turn,
    ) -> None:
        """Wait for a worker; it is idle then, if it may read another small file."""
        with self._lock:
            self._workers.add(worker)
            if self._is_closed:
                worker.kill()
        try:
            worker.follow(note or (lambda _: None), turn.may_go_on)
        finally:
            with self._lock:
                self._workers.discard(worker)
        with self._lock:
            may_wait = not (turn.is_long or self._is_closed)
            is_kept = (
                may_wait and worker.may_read_more and len(self._idle) < MAX_WORKERS
            )
            if is_kept:
                self._idle.append(worker)
        if not is_kept:
            worker.dismiss()

    def _take_idle(self) -> WorkerProcess | None:
        """One that waits for a file, the one that was used last; None: there is none."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                worker = self._idle.pop()
            if worker.may_read_more:
                return worker
            worker.dismiss()  # it waited too long


class _Turn:
    """One that reads a file, or waits for it."""

    def __init__(self, turns: _Turns, order: tuple[int, int], is_long: bool) -> None:
        self.order = order
        """By the bytes that are expected, then by time."""
        self.is_long = is_long
        self.has_come = threading.Event()
        self._turns = turns

    def may_go_on(self, seconds: float) -> bool:
        """Whether it may, after so much processor time, or so long a silence."""
        return seconds <= _SHORT_S or self.is_long or self._turns.take_long(self)


class _Turns:
    """The order in which files are read. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Turn] = []
        self._reading: list[_Turn] = []
        self._numbers = count()

    @contextmanager
    def turn(self, num_bytes: int, *, is_long: bool) -> Iterator[_Turn]:
        """Wait for one's turn; it lasts until the end of the block."""
        with self._lock:
            order = (num_bytes, next(self._numbers))
            mine = _Turn(self, order, is_long or num_bytes > _MOST_SMALL)
            self._waiting.append(mine)
            self._begin()
        try:
            mine.has_come.wait()
            yield mine
        finally:
            with self._lock:
                own = self._reading if mine in self._reading else self._waiting
                own.remove(mine)
                self._begin()

    def take_long(self, turn: _Turn) -> bool:
        """Whether one more file may take long; it counts as such then."""
        with self._lock:
            turn.is_long = self._num_long() < _MAX_LONG
            return turn.is_long

    def _num_long(self) -> int:
        return sum(turn.is_long for turn in self._reading)

    def _begin(self) -> None:
        """Begin what may be read now; hold the lock."""
        while len(self._reading) < MAX_WORKERS:
            has_room = self._num_long() < _MAX_LONG
            able = [turn for turn in self._waiting if has_room or not turn.is_long]
            if not able:
                return
            first = min(able, key=lambda turn: turn.order)
            self._waiting.remove(first)
            self._reading.append(first)
            first.has_come.set()


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


def _is_another(path: str, file: IO[Any], key: FileKey) -> bool:
    """Whether the file was written to since it had this key."""
    return storage.at(path).is_another(file, _status_of(key))


def _status_of(key: FileKey) -> FixedStatus:
    return FixedStatus(0, key.size, key.mtime_ns, key.device, key.inode)


def key_of(path: str, listed: FileKey | None) -> FileKey:
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
        raise _unreadable(path, OSError(0, "it is not a regular file"))
    key = FileKey.of(status)
    if listed is not None and key != listed:
        same = (key.device, key.inode) == (listed.device, listed.inode)
        raise _changed(path) if same else _replaced(path)
    return key


def _opened(path: str, key: FileKey, follow: bool) -> IO[Any]:
    """The file, which must be the one that was to be imported."""
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
