"""Bytes of a store's files: read in blocks, of which those used last are kept in memory.

A file is opened by a few small reads near both of its ends, and each request to a store
takes its time: a block holds them all, and a small file comes whole. Who waits, waits for
bounded time; a store that is away is not asked again at once. (fsspec's block caches are
of one open file each, and know no reader that does not wait.)
"""

from __future__ import annotations

import errno
import threading
import time
from concurrent.futures import TimeoutError as OverdueError
from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.storage.contract import PendingError, StorageError
from memboard.tb_plugin.storage.refusals import away
from memboard.tb_plugin.storage.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from memboard.tb_plugin.storage.contract import Status

BLOCK: Final = 1 << 16
_SMALL: Final = 4 * BLOCK
"""A file up to this size comes whole."""
_LARGE: Final = 1 << 22
"""Longest block that is cached."""
MAX_BYTES: Final = 32 << 20
"""Of one store, so that a large file that is read through displaces nothing else."""
_NUM_READERS: Final = 16
_MAX_COMING: Final = 256
"""Pieces that were requested and that nobody waits for."""
WAIT_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 60.0
_BYTES_PER_SECOND: Final = 1 << 20
"""Pace of reading: who reads much waits longer."""
_FIRST_PAUSE_S: Final = 2.0
_LAST_PAUSE_S: Final = 60.0
_MAX_REFUSED: Final = 10_000


class Content(NamedTuple):
    """A file as it was listed."""

    path: str
    size_bytes: int
    mtime_ns: int

    @classmethod
    def of(cls, path: str, status: Status) -> Content:
        """The content that a status tells of."""
        return cls(path, status.st_size, status.st_mtime_ns)


class StoreRefusal(NamedTuple):
    """What a store would not give."""

    path: str
    error: StorageError
    until: float
    pause: float


class Blocks:
    """Reads files of one store. Safe for threads."""

    def __init__(
        self,
        fetch: Callable[[str, int, int], bytes],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`fetch` gives the bytes of a path from one offset to another.

        It raises a `StorageError`, and is called on threads of our own.
        """
        self.version = 0
        """Raised when something came, or was refused."""
        self._fetch = fetch
        self._clock = clock
        self._workers = Workers("memboard-reading", _NUM_READERS)
        self._lock = threading.Lock()
        self._kept = Cache(max_bytes=MAX_BYTES)
        self._coming: dict[tuple[Content, int, int], Future[bytes]] = {}
        self._refused: dict[Content | None, StoreRefusal] = {}
        """By file; None: the whole store is away."""
        self._num_fetched = 0

    def read(
        self, content: Content, start: int, length: int, *, is_patient: bool = False
    ) -> bytes:
        """At most `length` bytes from `start`; waits for them.

        Raises:
            StorageError: they did not come.
        """
        end = min(start + length, content.size_bytes)
        if start >= end:
            return b""
        data = self._at_hand(content, start, end)
        if data is not None:
            return data
        first, last = start, end
        if end - start <= _LARGE:
            first, last = _blocks_of(content, start, end)
        seconds = PATIENCE_SECONDS if is_patient else WAIT_SECONDS
        seconds += (last - first) / _BYTES_PER_SECOND
        num_before = self._num_fetched
        future = self._begin(content, first, last, is_urgent=True)
        try:
            return future.result(seconds)[start - first : end - first]
        except OverdueError:
            if self._num_fetched != num_before:  # it answers others
                raise StorageError(
                    f"The store did not send it within {seconds:.0f} s",
                    "It is tried again.",
                    errno.ETIMEDOUT,
                ) from None
            error = away(f"no answer within {seconds:.0f} s")
            self._note(content, error)
            raise error from None

    def peek(self, content: Content, start: int, length: int) -> bytes:
        """The same without waiting.

        Raises:
            PendingError: they are on their way.
            StorageError: they were refused a moment ago.
        """
        end = min(start + length, content.size_bytes)
        data = b"" if start >= end else self._at_hand(content, start, end)
        if data is None:
            self.ahead(content, start, end)
            raise PendingError
        return data

    def ahead(self, content: Content, start: int, end: int) -> None:
        """Have bytes fetched that somebody will want; as far as there is room for it.

        What is at hand is not fetched again.

        Raises:
            StorageError: they were refused a moment ago.
        """
        end = min(end, content.size_bytes)
        if start >= end or self._at_hand(content, start, end) is not None:
            return
        if len(self._coming) < _MAX_COMING:
            self._begin(content, *_blocks_of(content, start, end))

    @property
    def is_coming(self) -> bool:
        """Whether something was requested that is not there yet."""
        return bool(self._coming)

    def refusals(self) -> list[StoreRefusal]:
        """What could not be read a moment ago; the store first, where that is away."""
        since = (
            self._clock() - _LAST_PAUSE_S
        )  # by then it was wanted again, or never is
        with self._lock:
            refused = sorted(
                self._refused.items(), key=lambda item: item[0] is not None
            )
        return [refusal for _, refusal in refused if since < refusal.until]

    def _at_hand(self, content: Content, start: int, end: int) -> bytes | None:
        first = start // BLOCK
        pieces = []
        for number in range(first, (end - 1) // BLOCK + 1):
            piece = self._kept.get((content, number))
            if piece is None:
                return None
            pieces.append(piece)
        return b"".join(pieces)[start - first * BLOCK : end - first * BLOCK]

    def _begin(
        self, content: Content, start: int, end: int, *, is_urgent: bool = False
    ) -> Future[bytes]:
        key = (content, start, end)
        now = self._clock()
        with self._lock:
            for refused in (self._refused.get(None), self._refused.get(content)):
                if refused is not None and now < refused.until:
                    raise refused.error.anew()
            future = self._coming.get(key)
            if future is None:
                future = self._coming[key] = self._workers.do(
                    lambda: self._fetched(key), is_urgent=is_urgent
                )
        return future

    def _fetched(self, key: tuple[Content, int, int]) -> bytes:
        """On a thread of ours."""
        content, start, end = key
        try:
            data = self._fetch(content.path, start, end)
        except StorageError as error:
            self._note(content, error)
            raise
        else:
            self._keep(content, start, end, data)  # before it counts as come
            return data
        finally:
            with self._lock:
                self._coming.pop(key, None)
                self.version += 1

    def _keep(self, content: Content, start: int, end: int, data: bytes) -> None:
        with self._lock:
            self._num_fetched += 1
            self._refused.pop(None, None)
            self._refused.pop(content, None)
        is_whole = len(data) == end - start
        if not is_whole or len(data) > _LARGE or start % BLOCK:
            return  # it shrank, or is too much to be kept
        for offset in range(0, len(data), BLOCK):
            piece = data[offset : offset + BLOCK]
            is_end = start + offset + len(piece) == content.size_bytes
            if len(piece) == BLOCK or is_end:
                key = (content, (start + offset) // BLOCK)
                self._kept.put(key, piece, len(piece))

    def _note(self, content: Content, error: StorageError) -> None:
        """Remember a refusal for a while; a store that is away, for all files."""
        if error.errno == errno.ENOENT:
            return  # it is gone, which the next listing tells
        key = None if error.errno == errno.EHOSTUNREACH else content
        with self._lock:
            before = self._refused.pop(key, None)
            pause = _FIRST_PAUSE_S
            if before is not None:
                pause = min(2 * before.pause, _LAST_PAUSE_S)
            while len(self._refused) >= _MAX_REFUSED:
                del self._refused[next(iter(self._refused))]
            until = self._clock() + pause
            self._refused[key] = StoreRefusal(content.path, error, until, pause)


def _blocks_of(content: Content, start: int, end: int) -> tuple[int, int]:
    """Where the blocks begin and end that hold some bytes; of a small file all of it."""
    if content.size_bytes <= _SMALL:
        return 0, content.size_bytes
    return start // BLOCK * BLOCK, min(-(-end // BLOCK) * BLOCK, content.size_bytes)
