"""One file on its way to tables, as everybody sees it who waits for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from tb_plugin.jobs.worker.kinds import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_plugin.jobs.worker.column_cache import FileKey
    from tb_plugin.jobs.worker.column_file import ColumnTables
    from tb_plugin.jobs.worker.errors import ImportFailedError
    from tb_plugin.jobs.worker.kinds import Kind
    from tb_plugin.jobs.worker.worker_process import WorkerProcess

_POLL_S: Final = 0.05


class Import:
    """One file on its way to tables, or there."""

    def __init__(
        self, path: str, kind: Kind = SNAPSHOT, key: FileKey | None = None
    ) -> None:
        self.path = path
        self.kind = kind
        self.key = key
        """Which content the file has; None where it has none."""
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._progress = 0.0
        self._cancelled = False
        self._tables: ColumnTables | None = None
        self._error: ImportFailedError | None = None

    @property
    def done(self) -> bool:
        """Whether there is a result, or an error."""
        return self._ended.is_set()

    @property
    def progress(self) -> float:
        """From 0, waiting, to 1, done."""
        return 1.0 if self.done else self._progress

    @property
    def error(self) -> ImportFailedError | None:
        """What `result` raises; None while it is not done, or where it went well."""
        return self._error

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most so long; whether it came."""
        return self._ended.wait(seconds)

    def result(self) -> ColumnTables:
        """The tables; waits for them.

        Raises:
            ImportFailedError: there are none; its parts say why.
        """
        self._ended.wait()
        if self._error is not None:
            raise self._error.with_traceback(None)
        assert self._tables is not None  # noqa: S101  # it is that or an error
        return self._tables

    def followed(self, note: Callable[[float], object] | None) -> ColumnTables:
        """The tables; `note` is told how far it is, from 0 to 1, while waiting for them.

        Raises:
            ImportFailedError: there are none; its parts say why.
        """
        while not self.wait(_POLL_S):
            if note is not None and self.progress > 0:
                note(self.progress)
        return self.result()

    def cancel(self) -> None:
        """Nobody wants it any more: the worker is stopped, `result` raises."""
        with self._lock:
            self._cancelled = True
            if self._worker is not None:
                self._worker.kill()

    @property
    def cancelled(self) -> bool:
        """Whether somebody called it off."""
        return self._cancelled

    # For the importer alone.

    def started(self, worker: WorkerProcess) -> None:
        """A worker reads the file now."""
        with self._lock:
            self._worker = worker
            if self._cancelled:
                worker.kill()

    def note(self, share: float) -> None:
        """So much of it is done."""
        self._progress = max(self._progress, min(0.99, share))

    def end(
        self, tables: ColumnTables | None = None, error: ImportFailedError | None = None
    ) -> None:
        """It is over: tables or an error."""
        with self._lock:
            self._worker = None
        self._tables, self._error = tables, error
        self._ended.set()
