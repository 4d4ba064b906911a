"""One store, or a folder of it: see `contract.Storage`, of which this is the other half.

Nothing here waits for a listing, unless it is patient; what is not known yet is a
`PendingError`. Only what a listing named is read.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import posixpath
import stat
import time
from concurrent.futures import TimeoutError as OverdueError
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from tb_plugin.storage.blocks import PATIENCE_SECONDS, Blocks, Content
from tb_plugin.storage.contract import FixedStatus, PendingError, StorageError
from tb_plugin.storage.fetching import Workers
from tb_plugin.storage.folders import Folders, RemoteEntry
from tb_plugin.storage.indexed import Indexed
from tb_plugin.storage.nameless import nameless_file
from tb_plugin.storage.ranges import RangedFile, RemoteRanges
from tb_plugin.storage.refusals import away
from tb_plugin.storage.system import System

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from tb_plugin.storage.contract import Status
    from tb_plugin.storage.folders import Known
    from tb_plugin.storage.urls import Url

_NUM_LISTERS: Final = 4
_PIECE: Final = 16 << 20
"""Of a file that is copied."""
_BUFFER: Final = 1 << 20
_SLOW_S: Final = 10.0
_SETTLING_S: Final = 5.0
"""A new folder that takes longer to be listed is told of."""
_T = TypeVar("_T")


class Remote:
    """The files below one URL. Safe for threads."""

    def __init__(self, url: Url) -> None:
        """Asks for nothing yet; fsspec is imported by the thread that first does."""
        self.url = url
        self.root = url.root
        self.is_patient = False
        """Whether whoever asks waits for what is not known yet."""
        self._listers = Workers("memboard-listing", _NUM_LISTERS)
        self._system = System(url)
        self._folders = Folders(url.root, self._system.ls, self._listers.do)
        self._blocks = Blocks(self._fetched)
        self._indexed = Indexed(self._listed, self._fetched)
        self.watch: Callable[[Content, int, int], None] | None = None
        """Called with every read of `ranges`: where from, and how many bytes at most."""
        self._has_settled = False

    # What the contract says.

    def scandir(self, path: str) -> AbstractContextManager[Iterator[RemoteEntry]]:
        """See `contract.Storage`."""
        known = self._known(path)
        if known.is_gone:
            raise FileNotFoundError(path)
        _refuse_unlisted(known)
        return contextlib.nullcontext(iter(list(known.entries.values())))

    def stat(self, path: str) -> Status:
        """See `contract.Storage`."""
        entry = None if path == self.root else self._entry(path)
        if entry is not None and not entry.is_dir():
            return entry.status
        known = self._known(path)
        if known.is_gone:
            raise FileNotFoundError(path)
        _refuse_unlisted(known)
        return FixedStatus(stat.S_IFDIR, 0, known.changed_ns, 1, 0)

    def lstat(self, path: str) -> Status:
        """See `contract.Storage`."""
        if path == self.root:
            return self.stat(path)
        entry = self._entry(path)
        if entry is None:
            raise FileNotFoundError(path)
        return entry.status

    def realpath(self, path: str) -> str:
        """See `contract.Storage`; empty where it leads out."""
        below = posixpath.normpath(path[len(self.root) :].lstrip("/") or ".")
        if below == ".." or below.startswith("../"):
            return ""
        return self.root if below == "." else f"{self.root}/{below}"

    def isdir(self, path: str) -> bool:
        """See `contract.Storage`."""
        known = self._known(path)
        return known.is_listed and not known.is_gone

    def peek(self, path: str, start: int, length: int) -> bytes:
        """See `contract.Storage`."""
        status = self.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            return b""
        start = start if start >= 0 else max(0, status.st_size + start)
        content = Content.of(path, status)
        if self.is_patient:
            return self._blocks.read(content, start, length, is_patient=True)
        return self._blocks.peek(content, start, length)

    def ranges(self, path: str) -> RemoteRanges:
        """See `contract.Storage`."""
        return RemoteRanges(self.read, path, self._status_of_file(path))

    def open(self, path: str) -> tuple[IO[bytes], Status]:
        """See `contract.Storage`."""
        status = self._status_of_file(path)
        raw = RangedFile(RemoteRanges(self.read, path, status))
        return io.BufferedReader(raw, _BUFFER), status

    def descriptor(self, path: str, status: Status, *, follow: bool) -> IO[Any]:
        """See `contract.Storage`: the copy has no name, and goes when it is closed."""
        del follow
        content = Content.of(path, status)
        return nameless_file(content.size_bytes, self._pieces(content))

    def is_another(self, path: str, file: IO[Any], status: Status) -> bool:
        """See `contract.Storage`: what was copied is what was listed."""
        del path
        return os.fstat(file.fileno()).st_size != status.st_size

    def ahead(self, paths: Iterable[str]) -> None:
        """See `contract.Storage`."""
        with contextlib.suppress(OSError):
            for path in paths:
                status = self.lstat(path)
                if self._indexed.holds(path, status.st_size):
                    continue
                content = Content.of(path, status)
                self._blocks.ahead(content, 0, 1)
                self._blocks.ahead(content, status.st_size - 1, status.st_size)

    # What is said of it.

    @property
    def version(self) -> int:
        """Raised when anything came that was not known."""
        return self._folders.version + self._blocks.version

    @property
    def is_listing(self) -> bool:
        """Whether something that was asked for has neither come nor been refused."""
        return self._folders.coming()[0] > 0 or self._blocks.is_coming

    @property
    def has_settled(self) -> bool:
        """Whether all that was asked for was listed at some time."""
        if not self._has_settled and self._folders.num_listed:
            self._has_settled = self._folders.coming()[0] == 0
        return self._has_settled

    def refusal(self) -> tuple[str, StorageError] | None:
        """What the store would not give when it was last asked: where, and why."""
        folders = sorted(self._folders.refusals(), key=lambda known: known.path)
        for known in folders:
            if known.refusal is not None:
                return known.path, known.refusal
        for refused in self._blocks.refusals():
            return refused.path, refused.error
        return None

    def progress(self) -> str:
        """What is being listed, in words; empty where all is known."""
        num_coming, since = self._folders.coming()
        if since is None:
            return ""
        seconds = time.monotonic() - since
        if self.has_settled and seconds < _SETTLING_S:
            return ""
        words = f"Listing… {self._folders.num_listed:,} folders are known"
        words += f", {num_coming:,} are being listed."
        if seconds > _SLOW_S:
            words += f" The store has not answered for {seconds:.0f} s."
        return words

    @property
    def num_refused_names(self) -> int:
        """Keys that no file could have as its name."""
        return self._folders.num_refused

    def kind(self) -> str:
        """Whether the URL is a `file` or a `folder`. Waits.

        Raises:
            StorageError: neither, or the store says nothing.
        """
        return "file" if self._waited_for(self._system.is_file) else "folder"

    def read(self, content: Content, start: int, length: int) -> bytes:
        """Bytes of a file that was listed; waits."""
        if self.watch is not None:
            self.watch(content, start, length)
        patient = self.is_patient
        found = self._indexed.read(content, start, length, is_patient=patient)
        if found is None:
            found = self._blocks.read(content, start, length, is_patient=patient)
        return found

    def write(self, path: str, data: bytes) -> None:
        """Put a file there; commands do, TensorBoard never. Waits.

        Raises:
            StorageError: the store refused.
        """
        self._listers.do(lambda: self._system.write(path, data)).result()
        self._folders.refresh(path.rpartition("/")[0])

    # How it is asked, on threads of its own.

    def _known(self, path: str) -> Known:
        if not self.is_patient:
            return self._folders.look(path)
        known = self._folders.wait(path, PATIENCE_SECONDS)
        if known.is_coming:
            raise away(f"no answer within {PATIENCE_SECONDS:.0f} s")
        return known

    def _listed(self, path: str) -> RemoteEntry | None:
        """What a listing of its folder says, if there was one; never waits."""
        folder, _, name = path.rpartition("/")
        return self._folders.look(folder).entries.get(name)

    def _entry(self, path: str) -> RemoteEntry | None:
        folder, _, name = path.rpartition("/")
        if len(folder) < len(self.root):
            return None
        return self._known(folder).entries.get(name)

    def _status_of_file(self, path: str) -> Status:
        status = self.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            raise StorageError("This is no plain file", "Put the file itself here.")
        return status

    def _fetched(self, path: str, start: int, end: int) -> bytes:
        """See `Blocks`."""
        try:
            return self._system.read(path, start, end)
        except StorageError as error:
            if error.errno == errno.ENOENT:
                self._folders.refresh(path.rpartition("/")[0])
            raise

    def _pieces(self, content: Content) -> Iterator[bytes]:
        """All of a file as it was listed, refused at the end where it is another."""
        for at in range(0, content.size_bytes, _PIECE):
            data = self._blocks.read(content, at, _PIECE, is_patient=True)
            if len(data) < min(_PIECE, content.size_bytes - at):
                raise self._changed(content.path)
            yield data
        self._check(content)

    def _check(self, content: Content) -> None:
        """Refuse what was written to since it was listed."""
        entry = self._entry(content.path)
        info = self._waited_for(lambda: self._system.info(content.path))
        tag = str(info.get("ETag") or info.get("etag") or info.get("generation") or "")
        is_tagged = entry is not None and entry.etag and tag
        if info.get("size") != content.size_bytes or (
            is_tagged and entry is not None and entry.etag != tag
        ):
            raise self._changed(content.path)

    def _waited_for(self, ask: Callable[[], _T]) -> _T:
        """What is asked on a thread, waited for."""
        try:
            return self._listers.do(ask).result(PATIENCE_SECONDS)
        except OverdueError:
            raise away(f"no answer within {PATIENCE_SECONDS:.0f} s") from None

    def _changed(self, path: str) -> StorageError:
        self._folders.refresh(path.rpartition("/")[0])
        return StorageError(
            "It changed while it was read", "Open it again when it is written whole."
        )


def _refuse_unlisted(known: Known) -> None:
    if not known.is_listed:
        raise PendingError if known.refusal is None else known.refusal.anew()
