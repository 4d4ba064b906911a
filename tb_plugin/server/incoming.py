"""Bytes that come in: the body of a request, and the private folder it is kept in.

Few bodies are taken at a time, so one that never ends must not keep its place. A slow one
may: only the time that is spent waiting for the sender counts, and after every 64 KiB it
counts anew.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from tb_plugin.contract.errors import StalledError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from werkzeug.wrappers import Request

STALL_SECONDS: Final = 60.0
"""Longest wait for the next bytes."""
PACE_BYTES: Final = 1 << 16
"""Least bytes in that time, or it is no upload."""

_PIECE: Final = 1 << 20

_PREFIX: Final = "memboard-dropped-"
_LOCK: Final = "in_use"


def pieces_of(request: Request, length: int) -> Iterator[bytes]:
    """Pieces of a body of `length` bytes; fewer where the sender breaks off.

    Raises:
        StalledError: it comes no longer, or too slowly.
    """
    from werkzeug.exceptions import ClientDisconnected

    connection = request.environ.get("werkzeug.socket")
    if connection is None:  # a server that ends connections itself
        read = request.stream.read
    else:  # one read of the socket each: a longer one would wait for the whole piece
        read = request.environ["wsgi.input"].read1
    left, waited, num_bytes = length, 0.0, 0
    while left > 0:
        began = time.monotonic()
        if connection is not None:
            connection.settimeout(STALL_SECONDS - waited)
        try:
            piece = read(min(_PIECE, left))
        except TimeoutError:
            raise _stalled(length, left) from None
        except (ClientDisconnected, ConnectionError):
            return
        if not piece:
            return
        left -= len(piece)
        num_bytes += len(piece)
        waited += time.monotonic() - began
        if num_bytes >= PACE_BYTES:
            waited, num_bytes = 0.0, 0
        elif waited >= STALL_SECONDS and left > 0:
            raise _stalled(length, left)
        yield piece


def _stalled(length: int, left: int) -> StalledError:
    return StalledError(
        f"The file stopped coming after {length - left:,} of {length:,} bytes.",
        f"{STALL_SECONDS:.0f} s without {PACE_BYTES:,} bytes",
        "Check the connection and drop the file again.",
    )


class DropFolder:
    """The private directory of dropped files, removed when this process ends."""

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
