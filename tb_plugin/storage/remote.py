"""One store, or a folder of it.

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

from memboard.collector.format.sizes import agreeing, counted
from memboard.tb_plugin.storage.connection import Connection
from memboard.tb_plugin.storage.content.blocks import PATIENCE_SECONDS, Blocks, Content
from memboard.tb_plugin.storage.content.copies import changed, nameless_copy
from memboard.tb_plugin.storage.content.indexed import FolderIndexes
from memboard.tb_plugin.storage.contract import FixedStatus, PendingError, StorageError
from memboard.tb_plugin.storage.entries import tag_of
from memboard.tb_plugin.storage.folders import Folders
from memboard.tb_plugin.storage.refusals import away
from memboard.tb_plugin.storage.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from memboard.tb_plugin.storage.contract import Status
    from memboard.tb_plugin.storage.entries import RemoteEntry
    from memboard.tb_plugin.storage.folders import FolderListing
    from memboard.tb_plugin.storage.urls import Url

_NUM_LISTERS: Final = 4
_BUFFER: Final = 1 << 20
_SLOW_S: Final = 10.0
_SETTLING_S: Final = 5.0
"""A new folder that takes longer to be listed is told of."""
_T = TypeVar("_T")


class RemoteFile(io.RawIOBase):
    """A file that was listed, read piece by piece."""

    def __init__(
        self, read: Callable[[Content, int, int], bytes], path: str, status: Status
    ) -> None:
        """`read` gives bytes of a content: from where, and how many at most."""
        super().__init__()
        self._read = read
        self._status = status
        self._content = Content.of(path, status)
        self._at = 0

    def status(self) -> Status:
        return self._status

    def pread(self, length: int, offset: int) -> bytes:
        """At most `length` bytes from `offset`; fewer at the end."""
        return self._read(self._content, offset, length)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Where the next read begins."""
        size = self._content.size_bytes
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read as much as there is room for, and as there is."""
        data = self.pread(len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class Remote:
    """The files below one URL. Safe for threads."""

    def __init__(self, url: Url) -> None:
        """Asks for nothing yet; fsspec is imported by the thread that first does."""
        self.url = url
        self.root = url.root
        self.is_patient = False
        """Whether whoever asks waits for what is not known yet."""
        self.watch: Callable[[Content, int, int], None] | None = None
        """Called with every read of files: where from, and how many bytes at most."""
        self._listers = Workers("memboard-listing", _NUM_LISTERS)
        self._connection = Connection(url)
        self._folders = Folders(url.root, self._connection.ls, self._listers.do)
        self._blocks = Blocks(self._fetched)
        self._indexed = FolderIndexes(self._listed, self._fetched)
        self._has_settled = False

    # The same as `Local` does.

    def scandir(self, path: str) -> AbstractContextManager[Iterator[RemoteEntry]]:
        """What a folder holds, as far as that is known."""
        listing = self._there(path)
        return contextlib.nullcontext(iter(list(listing.entries.values())))

    def stat(self, path: str) -> Status:
        """Of what a path leads to."""
        entry = None if path == self.root else self._entry(path)
        if entry is not None and not entry.is_dir():
            return entry.status
        return FixedStatus(stat.S_IFDIR, 0, self._there(path).changed_ns, 1, 0)

    def lstat(self, path: str) -> Status:
        """Of what lies at a path."""
        if path == self.root:
            return self.stat(path)
        entry = self._entry(path)
        if entry is None:
            raise FileNotFoundError(path)
        return entry.status

    def realpath(self, path: str) -> str:
        """The path without `..`; empty where it leads out."""
        below = posixpath.normpath(path[len(self.root) :].lstrip("/") or ".")
        if below == ".." or below.startswith("../"):
            return ""
        return self.root if below == "." else f"{self.root}/{below}"

    def isdir(self, path: str) -> bool:
        """Whether there is a folder."""
        return self._known(path).is_listed

    def peek(self, path: str, start: int, length: int) -> bytes:
        """Some bytes of a plain file, of anything else none; `start` < 0: from its end.

        Raises:
            PendingError: they are being fetched; ask again.
        """
        status = self.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            return b""
        start = start if start >= 0 else max(0, status.st_size + start)
        content = Content.of(path, status)
        if self.is_patient:
            return self._blocks.read(content, start, length, is_patient=True)
        return self._blocks.peek(content, start, length)

    def ranges(self, path: str) -> RemoteFile:
        """Open a plain file for pieces of it."""
        status = self.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(
                "This is not a regular file", "Put the file itself here."
            )
        return RemoteFile(self.read, path, status)

    def open(self, path: str) -> tuple[IO[bytes], Status]:
        """Open a plain file to be read and sought in."""
        file = self.ranges(path)
        return io.BufferedReader(file, _BUFFER), file.status()

    def descriptor(self, path: str, status: Status, *, follow: bool) -> IO[Any]:
        """A file with a descriptor that another process can read, at its start.

        It is a copy of what a listing said (`status`), if the file still is that; it has
        no name, and goes when it is closed.
        """
        del follow
        content = Content.of(path, status)
        try:
            with contextlib.ExitStack() as unless_same:
                file = unless_same.enter_context(
                    nameless_copy(
                        content.size_bytes,
                        lambda start, end: self._blocks.read(
                            content, start, end - start, is_patient=True
                        ),
                    )
                )
                self._refuse_changed(content)
                unless_same.pop_all()
        except StorageError:
            self._folders.refresh(path.rpartition("/")[0])
            raise
        return file

    def is_another(self, file: IO[Any], status: Status) -> bool:
        """Whether a copy is not what was listed."""
        return os.fstat(file.fileno()).st_size != status.st_size

    def ahead(self, paths: Iterable[str]) -> None:
        """Have both ends of files fetched that will be read next; does not wait."""
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
        """Whether a request is under way: neither answered nor refused."""
        return self._folders.coming()[0] > 0 or self._blocks.is_coming

    @property
    def has_settled(self) -> bool:
        """Whether all requested folders were listed at some time."""
        if not self._has_settled and self._num_listed:
            self._has_settled = self._folders.coming()[0] == 0
        return self._has_settled

    def refusal(self) -> tuple[str, StorageError] | None:
        """What the store would not give when it was last asked: where, and why."""
        for listing in self._folders.refusals():
            if listing.refusal is not None:
                return listing.path, listing.refusal
        for refused in self._blocks.refusals():
            return refused.path, refused.error
        return None

    def progress(self) -> str:
        """What is being listed, in words; empty where all is known."""
        num_coming, since = self._folders.coming()
        seconds = 0.0 if since is None else time.monotonic() - since
        if since is None or (self.has_settled and seconds < _SETTLING_S):
            return ""
        num = self._num_listed
        sentence = (
            f"Listing… {counted(num, 'folder')} {agreeing(num, 'is', 'are')} known"
        )
        sentence += (
            f", {num_coming:,} {agreeing(num_coming, 'is', 'are')} being listed."
        )
        if seconds > _SLOW_S:
            sentence += f" The store has not answered for {seconds:.0f} s."
        return sentence

    @property
    def num_refused_names(self) -> int:
        """Keys that no file could have as its name."""
        return sum(listing.num_refused for listing in self._folders.every())

    def kind(self) -> str:
        """Whether the URL is a `file` or a `folder`. Waits.

        Raises:
            StorageError: neither, or the store says nothing.
        """
        return "file" if self._waited_for(self._connection.is_file) else "folder"

    def read(self, content: Content, start: int, length: int) -> bytes:
        """Bytes of a file that was listed; waits."""
        if self.watch is not None:
            self.watch(content, start, length)
        patient = self.is_patient
        data = self._indexed.read(content, start, length, is_patient=patient)
        if data is None:
            data = self._blocks.read(content, start, length, is_patient=patient)
        return data

    def write(self, path: str, data: bytes) -> None:
        """Put a file there; commands do, TensorBoard never. Waits.

        Raises:
            StorageError: the store refused.
        """
        self._listers.do(lambda: self._connection.write(path, data)).result()
        self._folders.refresh(path.rpartition("/")[0])

    # How it is asked, on threads of its own.

    @property
    def _num_listed(self) -> int:
        return sum(listing.is_listed for listing in self._folders.every())

    def _known(self, path: str) -> FolderListing:
        if not self.is_patient:
            return self._folders.look(path)
        listing = self._folders.wait(path, PATIENCE_SECONDS)
        if listing.is_coming:
            raise away(f"no answer within {PATIENCE_SECONDS:.0f} s")
        return listing

    def _there(self, path: str) -> FolderListing:
        """A folder that was listed."""
        listing = self._known(path)
        if listing.is_gone:
            raise FileNotFoundError(path)
        if not listing.is_listed:
            raise PendingError if listing.refusal is None else listing.refusal.anew()
        return listing

    def _listed(self, path: str) -> RemoteEntry | None:
        """What a listing of its folder says, if there was one; never waits."""
        folder, _, entry_name = path.rpartition("/")
        return self._folders.look(folder).entries.get(entry_name)

    def _entry(self, path: str) -> RemoteEntry | None:
        folder, _, entry_name = path.rpartition("/")
        if len(folder) < len(self.root):
            return None
        return self._known(folder).entries.get(entry_name)

    def _fetched(self, path: str, start: int, end: int) -> bytes:
        """On a thread: bytes of a file."""
        try:
            return self._connection.read(path, start, end)
        except StorageError as error:
            if error.errno == errno.ENOENT:
                self._folders.refresh(path.rpartition("/")[0])
            raise

    def _refuse_changed(self, content: Content) -> None:
        """Refuse what was written to since it was listed."""
        entry = self._entry(content.path)
        info = self._waited_for(lambda: self._connection.info(content.path))
        tags = {tag_of(info), "" if entry is None else entry.etag}
        if info.get("size") != content.size_bytes or len(tags - {""}) > 1:
            raise changed()

    def _waited_for(self, ask: Callable[[], _T]) -> _T:
        """What is asked on a thread, waited for."""
        try:
            return self._listers.do(ask).result(PATIENCE_SECONDS)
        except OverdueError:
            raise away(f"no answer within {PATIENCE_SECONDS:.0f} s") from None
