"""The private directory that dropped files are kept in until this process ends."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

_PREFIX: Final = "memboard-dropped-"
_LOCK: Final = "in_use"


class DropFolder:
    """Made when first asked for, removed at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._path: Path | None = None

    def path(self) -> Path:
        """The directory: only this user may look into it.

        Raises:
            OSError: it cannot be made.
        """
        with self._lock:
            if self._path is None:
                _sweep(Path(tempfile.gettempdir()))
                path = Path(tempfile.mkdtemp(prefix=_PREFIX))
                lock = path / f"{_LOCK}.new"
                held = lock.open("wb")
                weakref.finalize(self, _remove, path, held)
                with suppress(OSError):  # then only we must not be killed
                    _hold(held)
                    # Who tidies up looks for this name: it was locked before it was there.
                    lock.rename(path / _LOCK)
                self._path = path
            return self._path


def _hold(file: IO[bytes]) -> None:
    """Lock a file for as long as it is open, however this process ends.

    Raises:
        OSError: another process holds it, or there are no such locks here.
    """
    try:
        import fcntl
    except ImportError as error:  # Windows tidies its temporary directory itself
        raise OSError("there are no locks of this kind") from error
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove(path: Path, held: IO[bytes]) -> None:
    held.close()
    shutil.rmtree(path, ignore_errors=True)


def _sweep(temporary: Path) -> None:
    """Remove what processes of this user left that were killed."""
    for path in temporary.glob(f"{_PREFIX}*"):
        # Others' directories cannot be opened; one in use cannot be locked.
        with suppress(OSError):
            with (path / _LOCK).open("rb+") as file:
                _hold(file)
            shutil.rmtree(path, ignore_errors=True)
