"""Bytes of a store's files: read in blocks, of which those used last are kept in memory.

A file is opened by a few small reads near both of its ends, and each request to a store
takes its time: a block holds them all, and a small file comes whole. Who waits, waits for
bounded time; a store that is away is not asked again at once.
"""

from __future__ import annotations

import errno
import threading
import time
from collections import OrderedDict
from concurrent.futures import TimeoutError as OverdueError
from typing import TYPE_CHECKING, Final, NamedTuple

from tb_plugin.storage.contract import PendingError, StorageError
from tb_plugin.storage.fetching import Workers
from tb_plugin.storage.refusals import away

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from tb_plugin.storage.contract import Status

BLOCK: Final = 1 << 16
_SMALL: Final = 4 * BLOCK
"""A file up to this size comes whole."""
_LARGE: Final = 1 << 22
"""What is longer is not kept."""
MAX_BYTES: Final = 32 << 20
_NUM_READERS: Final = 16
_MAX_COMING: Final = 256
"""Pieces that were asked for and that nobody waits for."""
WAIT_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 60.0
_BYTES_PER_SECOND: Final = 1 << 20
"""Who reads much waits longer."""
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


class Refused(NamedTuple):
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
        """Raised when something came that somebody peeked at."""
        self._fetch = fetch
        self._clock = clock
        self._workers = Workers("memboard-reading", _NUM_READERS)
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Content, int], bytes] = OrderedDict()
        self._num_kept = 0
        self._coming: dict[tuple[Content, int, int], Future[bytes]] = {}
        self._refused: dict[Content, Refused] = {}
        self._away: Refused | None = None
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
        if end - start > _LARGE:
            return self._waited_for(content, start, end, is_patient=is_patient)
        found = self._at_hand(content, start, end)
        if found is None:
            first, last = _blocks_of(content, start, end)
            data = self._waited_for(content, first, last, is_patient=is_patient)
            found = data[start - first : end - first]
        return found

    def peek(self, content: Content, start: int, length: int) -> bytes:
        """The same without waiting.

        Raises:
            PendingError: they are on their way.
            StorageError: they were refused a moment ago.
        """
        end = min(start + length, content.size_bytes)
        if start >= end:
            return b""
        found = self._at_hand(content, start, end)
        if found is None:
            self.ahead(content, start, end)
            raise PendingError
        return found

    def ahead(self, content: Content, start: int, end: int) -> None:
        """Have bytes fetched that somebody will want; as far as there is room for it.

        What is at hand is not fetched again.

        Raises:
            StorageError: they were refused a moment ago.
        """
        end = min(end, content.size_bytes)
        if start >= end or self._at_hand(content, start, end) is not None:
            return
        first, last = _blocks_of(content, start, end)
        with self._lock:
            is_full = len(self._coming) >= _MAX_COMING
        if not is_full and first < last:
            self._begin(content, first, last)

    @property
    def is_coming(self) -> bool:
        """Whether something was asked for that is not there yet."""
        with self._lock:
            return bool(self._coming)

    def refusals(self) -> list[Refused]:
        """What could not be read a moment ago; the store first, where that is away."""
        now = self._clock() - _LAST_PAUSE_S  # by then it was wanted again, or never is
        with self._lock:
            found = [one for one in self._refused.values() if now < one.until]
            if self._away is not None and now < self._away.until:
                found.insert(0, self._away)
        return found

    def _at_hand(self, content: Content, start: int, end: int) -> bytes | None:
        first, last = start // BLOCK, (end - 1) // BLOCK
        with self._lock:
            keys = [(content, number) for number in range(first, last + 1)]
            if any(key not in self._kept for key in keys):
                return None
            for key in keys:
                self._kept.move_to_end(key)
            data = b"".join(self._kept[key] for key in keys)
        return data[start - first * BLOCK : end - first * BLOCK]

    def _waited_for(
        self, content: Content, start: int, end: int, *, is_patient: bool
    ) -> bytes:
        num_before = self._num_fetched
        future = self._begin(content, start, end, is_urgent=True)
        seconds = PATIENCE_SECONDS if is_patient else WAIT_SECONDS
        seconds += (end - start) / _BYTES_PER_SECOND
        try:
            return future.result(seconds)
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

    def _begin(
        self, content: Content, start: int, end: int, *, is_urgent: bool = False
    ) -> Future[bytes]:
        key = (content, start, end)
        now = self._clock()
        with self._lock:
            for refused in (self._away, self._refused.get(content)):
                if refused is not None and now < refused.until:
                    raise refused.error.anew()
            future = self._coming.get(key)
            if future is None:
                future = self._workers.do(
                    lambda: self._fetched(key), is_urgent=is_urgent
                )
                self._coming[key] = future
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
            self._keep(key, data)  # before it counts as come
            return data
        finally:
            with self._lock:
                self._coming.pop(key, None)
                self.version += 1

    def _keep(self, key: tuple[Content, int, int], data: bytes) -> None:
        content, start, end = key
        with self._lock:
            self._num_fetched += 1
            self._away = None
            self._refused.pop(content, None)
            is_whole = len(data) == end - start
            if not is_whole or len(data) > _LARGE or start % BLOCK:
                return  # it shrank, or is too much to be kept
            for at in range(0, len(data), BLOCK):
                number = (content, (start + at) // BLOCK)
                piece = data[at : at + BLOCK]
                is_end = start + at + len(piece) == content.size_bytes
                if number in self._kept or (len(piece) < BLOCK and not is_end):
                    continue
                self._kept[number] = piece
                self._num_kept += len(piece)
            while self._num_kept > MAX_BYTES:
                self._num_kept -= len(self._kept.popitem(last=False)[1])

    def _note(self, content: Content, error: StorageError) -> None:
        """Remember a refusal for a while; a store that is away, for all files."""
        if error.errno == errno.ENOENT:
            return  # it is gone, which the next listing tells
        is_away = error.errno == errno.EHOSTUNREACH
        with self._lock:
            before = self._away if is_away else self._refused.get(content)
            pause = _FIRST_PAUSE_S
            if before is not None:
                pause = min(2 * before.pause, _LAST_PAUSE_S)
            until = self._clock() + pause
            refused = Refused(content.path, error, until, pause)
            if is_away:
                self._away = refused
            else:
                while len(self._refused) >= _MAX_REFUSED:
                    del self._refused[next(iter(self._refused))]
                self._refused[content] = refused


def _blocks_of(content: Content, start: int, end: int) -> tuple[int, int]:
    """Where the blocks begin and end that hold some bytes; of a small file all of it."""
    if content.size_bytes <= _SMALL:
        return 0, content.size_bytes
    return start // BLOCK * BLOCK, min(-(-end // BLOCK) * BLOCK, content.size_bytes)
