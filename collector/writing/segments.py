"""A rank's file as numbered files: all but the newest are finished and never change.

Stores that cannot append take them as they are, and nothing is uploaded twice. Offsets
are logical, as if all lay end to end in one file (see `memboard.collector.format.records`).
"""

from __future__ import annotations

import contextlib
import errno
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.collector.writing.append import AppendFile, DeletedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SHARE: Final = 32
"""In a long run a segment lasts this part of the run's time, ..."""

_MOST_SECONDS: Final = 3600.0
"""... or this long: a week makes some 300 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPlan:
    """When a segment is finished, and who is told."""

    max_bytes: int
    seconds: float
    finished: Callable[[Path], None] = lambda _path: None
    """Called with every finished segment, and at the end with the scalars' file, on the
    writer's thread."""


class SegmentedFile:
    """Like an `AppendFile`, over all segments."""

    def __init__(
        self,
        path: Path,
        plan: SegmentPlan | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the first segment; `path`: the name without a number.

        Without a plan it keeps that name, and none is ever due.

        Raises:
            OSError: it cannot be created, or is there already.
        """
        self._named = path
        self._plan, self._clock = plan, clock
        self.number = 0
        """Of the segment that grows."""
        self._base = 0
        self._file = AppendFile(path if plan is None else self._path_of(0))
        self._head_bytes = 0
        self._started = self._begun = clock()

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def end(self) -> int:
        """Bytes in all segments: where the next append will start."""
        return self._base + self._file.end

    @property
    def num_written(self) -> int:
        """Bytes written so far; rises while an append is under way. Any thread."""
        return self._base + self._file.num_written

    def append(self, data: bytes) -> int:
        """Append all of `data` to the newest segment; the logical offset of its start.

        Raises:
            OSError: as `AppendFile.append`.
        """
        start = self._base + self._file.append(data)
        # What comes first is the head, and no reason to begin another segment.
        self._head_bytes = self._head_bytes or len(data)
        return start

    def sync(self) -> None:
        """Have what was appended on the disk itself."""
        self._file.sync()

    def is_due(self) -> bool:
        """Whether the newest segment is to be finished."""
        if self._plan is None or self._file.end <= self._head_bytes:
            return False
        now = self._clock()
        longest = min((now - self._started) / _SHARE, _MOST_SECONDS)
        is_old = now - self._begun >= max(self._plan.seconds, longest)
        return is_old or self._file.end >= self._plan.max_bytes

    def begin(self, head: bytes, named: Path | None = None) -> None:
        """Finish the newest segment and begin another one with `head`.

        Args:
            head: its first bytes.
            named: where the rank turned out to be another, the name from then on.

        Raises:
            DeletedError: the newest segment was deleted.
            OSError: the other one cannot be written; the newest still grows.
        """
        before = self._file
        if before.is_deleted():
            raise DeletedError(errno.ESTALE, "the file was deleted", str(before.path))
        self._named = named or self._named
        file = AppendFile(self._path_of(self.number + 1))
        try:
            file.append(head)
        except OSError:
            file.close()
            with contextlib.suppress(OSError):
                file.path.unlink()
            raise
        before.close()
        self._base += before.end
        self._file, self._head_bytes = file, len(head)
        self.number += 1
        self._begun = self._clock()
        self._finished(before.path)

    def close(self) -> None:
        """Give the descriptor back. Safe to call again."""
        self._file.close()

    def finish(self) -> None:
        """Nothing is written any more: the last segment is finished too."""
        self._file.close()
        self._finished(self._file.path)

    def _finished(self, path: Path) -> None:
        if self._plan is not None:
            self._plan.finished(path)

    def _path_of(self, number: int) -> Path:
        return self._named.with_suffix(f".{number:04d}.events")
