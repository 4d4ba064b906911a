"""Folders of this user's alone: caches, and temporary folders that go with the process.

What lies in them is preloaded, mapped, believed or deleted later, so another user of the
machine must not have put it there, and must not be able to. `private_folder` is for a
place that stays, `TemporaryFolder` for one that is new: all of the project go through them.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from typing_extensions import Self

CACHE_VARIABLE: Final = "MEMBOARD_CACHE_DIR"

_KNOWS_USERS: Final = hasattr(os, "geteuid")
"""Windows has no user ids; folders there lie in the user's own."""

_PRIVATE: Final = 0o700
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_IN_USE: Final = "in_use"


class NotPrivateError(PermissionError):
    """A folder is another user's, or others can write into it or put another in its place."""


def cache_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder that all caches lie in: `$MEMBOARD_CACHE_DIR`, or the user's usual one.

    Raises:
        RuntimeError: the user has no home.
    """
    if folder := environ.get(CACHE_VARIABLE):
        return Path(folder).absolute()
    if folder := environ.get("XDG_CACHE_HOME"):
        return Path(folder).absolute() / "memboard"
    return Path.home() / ".cache" / "memboard"


def private_folder(path: Path) -> Path:
    """`path` as a folder that only this user can read, write and replace.

    It is made where it is missing, as are those above it. One that others could only read
    is closed to them; one that they could write into is refused, for what is in it may be
    theirs. So is one below a folder in which another user can rename: that user's own, or
    one that lets everybody.

    Raises:
        NotPrivateError: it is not this user's alone.
        OSError: it cannot be made.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100  # links are looked at, not resolved
    _make_way(path)
    with suppress(FileExistsError):
        path.mkdir(_PRIVATE)
    if not _KNOWS_USERS:
        return path
    descriptor = _opened_folder(path)
    try:
        status = os.fstat(descriptor)
        if not is_own(status):
            raise NotPrivateError(f"{path} belongs to another user ({status.st_uid})")
        if status.st_mode & _OTHERS_WRITE:
            raise NotPrivateError(f"other users can write into {path}")
        if status.st_mode & 0o777 != _PRIVATE:
            os.fchmod(descriptor, _PRIVATE)
            if os.fstat(descriptor).st_mode & 0o777 != _PRIVATE:
                raise NotPrivateError(f"{path} cannot be closed to other users")
    finally:
        os.close(descriptor)
    return path


def is_own(status: os.stat_result) -> bool:
    """Whether a file or folder is this user's, by its `lstat`."""
    return not _KNOWS_USERS or status.st_uid == os.geteuid()


def own_files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The regular files in a folder that are this user's, with their `lstat`.

    Links, folders and files of others are left out. None where it cannot be read.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # another process may remove it meanwhile
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and is_own(status):
                    yield Path(entry.path), status


def _opened_folder(path: Path) -> int:
    """A descriptor of the folder itself: no link leads to it."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if path.is_symlink():
            raise NotPrivateError(f"{path} is a link") from error
        raise


def _make_way(path: Path) -> None:
    """Make the folders above `path`; refuse one through which others lead it elsewhere."""
    for folder in reversed(path.parents):
        if not folder.exists():
            with suppress(FileExistsError):
                folder.mkdir(_PRIVATE)
        elif _KNOWS_USERS:
            _check_above(folder)
    resolved = path.parent.resolve()
    if resolved != path.parent:
        _make_way(resolved / path.name)


def _check_above(folder: Path) -> None:
    """Refuse a folder whose entries another user can rename: its owner always can.

    Anybody can in one for all that is not sticky. In a sticky one, as /tmp, a link may be anybody's. The rule for links is Linux's own
    (`protected_symlinks`), which not every machine has on.
    """
    status, link = folder.stat(), folder.lstat()
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise NotPrivateError(f"any user can replace what lies in {folder}")
    # Who owns the root can replace everything: in a container that may not be 0.
    if status.st_uid not in (os.geteuid(), 0, Path(folder.anchor).stat().st_uid):
        raise NotPrivateError(
            f"another user ({status.st_uid}) can replace what lies in {folder}"
        )
    if stat.S_ISLNK(link.st_mode):
        around = folder.parent.stat()
        is_trusted = link.st_uid in (os.geteuid(), around.st_uid)
        if around.st_mode & stat.S_IWOTH and not is_trusted:
            raise NotPrivateError(f"{folder} is a link of another user's")


class TemporaryFolder:
    """A new folder of this user's alone, made on first use; it goes with this process.

    What processes left that were killed is removed by the next that makes one under the
    same prefix: a lock says whether a folder is in use.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._finalizer: weakref.finalize[[Path, IO[bytes], int], TemporaryFolder]

    def path(self) -> Path:
        """The folder.

        Raises:
            OSError: it cannot be made.
        """
        with self._lock:
            if self._path is None or not self._path.is_dir():
                _sweep(Path(tempfile.gettempdir()), self._prefix)
                path = Path(tempfile.mkdtemp(prefix=self._prefix))
                lock = path / f"{_IN_USE}.new"
                lock_file = lock.open("wb")
                self._finalizer = weakref.finalize(
                    self, _remove, path, lock_file, os.getpid()
                )
                with suppress(OSError):  # then only we must not be killed
                    _hold(lock_file)
                    # Who tidies up looks for this name: it was locked before it was there.
                    lock.rename(path / _IN_USE)
                self._path = path
            return self._path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._path is not None:
                self._finalizer()
                self._path = None


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


def _remove(path: Path, lock_file: IO[bytes], pid: int) -> None:
    lock_file.close()
    if os.getpid() == pid:  # else it is a fork's copy
        shutil.rmtree(path, ignore_errors=True)


def _sweep(temporary: Path, prefix: str) -> None:
    """Remove what processes of this user left that were killed.

    Others may have made folders and links of such names: they stay, and so does what is
    in use, which cannot be locked.
    """
    for path in temporary.glob(f"{prefix}*"):
        with suppress(OSError):
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode) or not is_own(status):
                continue
            with (path / _IN_USE).open("rb+") as file:
                _hold(file)
            shutil.rmtree(path, ignore_errors=True)
