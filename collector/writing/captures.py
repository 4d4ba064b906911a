"""Captures on their way to the file: bounded in bytes, encoded on the writer's thread.

A capture may be a hundred thousand times as large as a row, so it has a queue of its
own, and another one for those few and small ones that cannot wait. What does not fit,
cannot be encoded or finds no room on the disk is dropped, counted and named in a note;
rows and other captures go on.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from collector.format.capture import MAX_CAPTURE_BYTES, encode_body, size_of
from collector.writing.append import DeletedError

if TYPE_CHECKING:
    from collector.core.warn_once import Troubles
    from collector.format.records import Capture
    from collector.writing.rank_file import RankFile

_MAX_WAITING: Final = 1024
_MAX_URGENT: Final = 16
_MAX_TRIES: Final = 3
"""A disk that refused a capture so often is taken for full."""

TOO_SLOW: Final = "the disk was too slow or full"
_OVER_BUDGET: Final = "max_file_bytes is reached"
_NOT_ENCODED: Final = "it could not be written"


class Urgent:
    """A capture that somebody waits for."""

    def __init__(self, capture: Capture) -> None:
        self.capture: Final = capture
        self.is_settled: Final = threading.Event()
        """Set once it was written or given up."""
        self.is_on_disk = False


class Captures:
    """`put` is for any thread; the rest is for the writer's."""

    def __init__(
        self, troubles: Troubles, *, max_bytes: int = MAX_CAPTURE_BYTES
    ) -> None:
        """`max_bytes`: of everything that waits, by the account of `size_of`."""
        self.dropped: Counter[str] = Counter()
        """How many were dropped so far, by reason."""
        self._max_bytes = max_bytes
        self._waiting: deque[tuple[Capture, int]] = deque()
        self._largest = 0
        """Of all so far: says quickly that what waits is little."""
        self._urgent: deque[Urgent] = deque()
        self._body: bytes | None = None
        """The first one that waits, encoded."""
        self._num_tries = 0
        self._num_urgent_tries = 0
        self._troubles = troubles
        self._is_over = False

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting) + len(self._urgent)

    @property
    def is_urgent(self) -> bool:
        """Whether one waits that goes before all others."""
        return bool(self._urgent)

    @property
    def num_bytes(self) -> int:
        """Memory that waiting captures hold, about."""
        # A copy at once: the other thread may take one away meanwhile.
        return sum(size for _, size in tuple(self._waiting))

    def holds(self, num_bytes: int) -> bool:
        """Whether what waits is at least so much; takes a microsecond where it is not."""
        if len(self._waiting) * self._largest < num_bytes:
            return False
        return self.num_bytes >= num_bytes

    def put(self, capture: Capture) -> bool:
        """Queue a capture, or count it as dropped; takes microseconds."""
        try:
            # Tables that are yet to be made know their size without being made.
            promised = getattr(capture.tables, "size_bytes", None)
            size = size_of(capture.tables) if promised is None else promised
        except (TypeError, AttributeError) as error:  # a column that is none
            self._refuse(capture, error)
            return False
        if (
            self._is_over
            or len(self._waiting) >= _MAX_WAITING
            or self.holds(self._max_bytes - size + 1)
        ):
            self.dropped[TOO_SLOW] += 1
            return False
        self._largest = max(self._largest, size)
        self._waiting.append((capture, size))
        return True

    def put_urgent(self, capture: Capture) -> Urgent | None:
        """Queue a small capture before all others; None where it was dropped."""
        if self._is_over or len(self._urgent) >= _MAX_URGENT:
            self.dropped[TOO_SLOW] += 1
            return None
        urgent = Urgent(capture)
        self._urgent.append(urgent)
        return urgent

    def write_next(self, file: RankFile, *, closing: bool) -> bool:
        """Write the one that waits longest; False where none does.

        Raises:
            DeletedError: the file was deleted; the capture still waits.
            OSError: the disk refused; it still waits, unless it was refused too often
                or the file is `closing`.
        """
        if self._urgent:
            self._write_urgent(file, closing=closing)
            return True
        if not self._waiting:
            return False
        capture, _ = self._waiting[0]
        try:
            if self._body is None:
                self._body = encode_body(capture)
            if not file.write_capture(capture, self._body):
                self.dropped[_OVER_BUDGET] += 1
        except DeletedError:
            raise
        except OSError:
            self._num_tries += 1
            if self._num_tries < _MAX_TRIES and not closing:
                raise
            self.dropped[TOO_SLOW] += 1
        except Exception as error:  # noqa: BLE001  # or it would fail at every round
            self._refuse(capture, error)
        self._done()
        return True

    def _write_urgent(self, file: RankFile, *, closing: bool) -> None:
        """Write the urgent one that waits longest, to the very disk."""
        first = self._urgent[0]
        capture = first.capture
        try:
            first.is_on_disk = file.write_capture(
                capture, encode_body(capture), urgent=True
            )
        except DeletedError:
            raise
        except OSError:
            self._num_urgent_tries += 1
            if self._num_urgent_tries < _MAX_TRIES and not closing:
                raise
            self.dropped[TOO_SLOW] += 1
        except Exception as error:  # noqa: BLE001  # or it would fail at every round
            self._refuse(capture, error)
        self._num_urgent_tries = 0
        self._urgent.popleft()
        first.is_settled.set()

    def end(self) -> None:
        """Nothing is written any more: forget what waits and take nothing."""
        self._is_over = True
        self._waiting.clear()
        self._urgent.clear()
        self._body = None

    def _done(self) -> None:
        self._waiting.popleft()
        self._body = None
        self._num_tries = 0

    def _refuse(self, capture: Capture, error: BaseException) -> None:
        self.dropped[_NOT_ENCODED] += 1
        self._troubles.tell(
            f"capture {capture.kind}",
            "a capture of %s was lost; the others go on. Please report this.",
            capture.kind,
            error=error,
        )
