"""Captures on their way to the file: bounded in bytes, encoded on the writer's thread.

A capture may be a hundred thousand times as large as a row, so it has a queue of its
own, and another one for those few and small ones that cannot wait. What does not fit,
cannot be encoded or finds no room on the disk is dropped, counted and named in a note;
rows and other captures go on.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from functools import partial
from typing import TYPE_CHECKING, Final

from memboard.collector.core.guard import Block
from memboard.collector.format.capture import MAX_CAPTURE_BYTES, encode_body, size_of
from memboard.collector.format.records import OVER_BUDGET
from memboard.collector.writing.append import DeletedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.format.records import Capture
    from memboard.collector.writing.rank_file import RankFile

_MAX_WAITING: Final = 1024
_MANY_BYTES: Final = 1 << 24
"""So much waiting wakes the writer, which is what empties it."""
_MAX_URGENT: Final = 16
_CRASHES: Final = frozenset({"oom", "exception", "signal"})
"""Contexts of a history that explains how a program ended."""
_MAX_TRIES: Final = 3
"""A disk that refused a capture so often is taken for full."""

TOO_SLOW: Final = "the disk was too slow or full"
_NOT_ENCODED: Final = "it could not be written"


class QueuedCapture:
    def __init__(self, capture: Capture, size: int) -> None:
        self.capture: Final = capture
        self.size: Final = size
        self.body: bytes | None = None
        self.num_tries = 0
        self.is_on_disk = False


class UrgentCapture(QueuedCapture):
    """One that a thread waits for."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture, 0)
        self.is_settled: Final = threading.Event()
        """Set once it was written or dropped."""


class CaptureQueue:
    """`put` is for any thread; the rest is for the writer's."""

    def __init__(
        self,
        warn_once: WarnOnce,
        wake: Callable[[], None],
        *,
        max_bytes: int = MAX_CAPTURE_BYTES,
    ) -> None:
        """`max_bytes`: of everything that waits, by the account of `size_of`.

        `wake`: called when much waits.
        """
        self.dropped: Counter[str] = Counter()
        """How many were dropped so far, by reason."""
        self._max_bytes = max_bytes
        self._waiting: deque[QueuedCapture] = deque()
        self._crashes: deque[QueuedCapture] = deque()
        self._urgent: deque[UrgentCapture] = deque()
        self._largest = 0
        """Of all so far: says quickly that what waits is little."""
        self._warn_once = warn_once
        self._wake = wake
        self._is_over = False

    def __len__(self) -> int:
        return len(self._waiting) + len(self._crashes) + len(self._urgent)

    def goes_first(self, *, has_ended: bool) -> bool:
        """Whether one waits that goes before rows.

        That is an urgent one; of a program that has ended, also the history of its crash.
        """
        return bool(self._urgent or (has_ended and self._crashes))

    @property
    def num_bytes(self) -> int:
        """Of all that waits but what is urgent, which is small."""
        # Copies at once: the other thread may take one away meanwhile.
        waiting = (*tuple(self._crashes), *tuple(self._waiting))
        return sum(queued.size for queued in waiting)

    def put(self, capture: Capture) -> bool:
        """Queue a capture, or count it as dropped; takes microseconds."""
        try:
            # Tables that are yet to be made know their size without being made.
            promised = getattr(capture.tables, "size_bytes", None)
            size = size_of(capture.tables) if promised is None else promised
        except (TypeError, AttributeError) as error:  # a column that is none
            self._refuse(capture, error)
            return False
        num_waiting = len(self._waiting) + len(self._crashes)
        most = num_waiting * self._largest + size  # what waits with it is no more
        if (
            self._is_over
            or num_waiting >= _MAX_WAITING
            or (most > self._max_bytes and self.num_bytes + size > self._max_bytes)
        ):
            self.dropped[TOO_SLOW] += 1
            return False
        self._largest = max(self._largest, size)
        is_crash = capture.context in _CRASHES
        queue = self._crashes if is_crash else self._waiting
        queue.append(QueuedCapture(capture, size))
        if most >= _MANY_BYTES and self.num_bytes >= _MANY_BYTES:
            self._wake()
        return True

    def put_urgent(self, capture: Capture) -> UrgentCapture | None:
        """Queue a small capture before all others; None where it was dropped."""
        if self._is_over or len(self._urgent) >= _MAX_URGENT:
            self.dropped[TOO_SLOW] += 1
            return None
        urgent = UrgentCapture(capture)
        self._urgent.append(urgent)
        return urgent

    def write_next(self, file: RankFile, *, closing: bool) -> bool:
        """Write an urgent one, one of a crash, or the one that waits longest.

        False where none does.

        Raises:
            DeletedError: the file was deleted; the capture still waits.
            OSError: the disk refused; it still waits, unless it was refused too often
                or the file is `closing`.
        """
        queue: deque[UrgentCapture] | deque[QueuedCapture]
        queue = self._urgent or self._crashes or self._waiting
        if not queue:
            return False
        first = queue[0]
        # What is refused is dropped: else it would be at every round.
        with Block(partial(self._refuse, first.capture), passes=(OSError,)):
            self._write(first, file, closing=closing)
        queue.popleft()
        if isinstance(first, UrgentCapture):
            first.is_settled.set()
        return True

    def _write(self, first: QueuedCapture, file: RankFile, *, closing: bool) -> None:
        try:
            if first.body is None:
                first.body = encode_body(first.capture)
            is_urgent = isinstance(first, UrgentCapture)
            first.is_on_disk = file.write_capture(
                first.capture, first.body, urgent=is_urgent
            )
            if not first.is_on_disk:
                self.dropped[OVER_BUDGET] += 1
        except DeletedError:
            raise
        except OSError:
            first.num_tries += 1
            if first.num_tries < _MAX_TRIES and not closing:
                raise
            self.dropped[TOO_SLOW] += 1

    def end(self) -> None:
        """Nothing is written any more: drop what waits and take nothing."""
        self._is_over = True
        self._waiting.clear()
        self._crashes.clear()
        self._urgent.clear()

    def _refuse(self, capture: Capture, error: BaseException) -> None:
        self.dropped[_NOT_ENCODED] += 1
        self._warn_once(
            f"capture {capture.kind}",
            "a capture of %s was lost; the others go on. Please report this.",
            capture.kind,
            error=error,
        )
