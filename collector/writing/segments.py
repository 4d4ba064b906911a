"""A rank's file as numbered files: all but the newest are finished and never change.

Stores that cannot append take them as they are, and nothing is uploaded twice. Offsets
are logical, as if all lay end to end in one file (see `collector.format.records`).
"""

from __future__ import annotations

import contextlib
import errno
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from collector.format.names import parse_rank_file_name, rank_file_name
from collector.writing.append import AppendFile, DeletedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

_SHARE: Final = 32
"""In a long run a segment lasts this part of the run's time, ..."""

_MOST_SECONDS: Final = 3600.0
"""... or this long: a week makes some 400 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPlan:
    """When a segment is finished, and who is told."""

    max_bytes: int
    seconds: float
    finished: Callable[[Path], None] = lambda _path: None
    """Called with every finished segment, and at the end with the scalars' file, on the
    writer's thread."""
    withdrawn: Callable[[Iterable[Path]], None] = lambda _paths: None
    """Called with segments that go on under another name, after they were deleted."""


class SegmentedFile:
    """Like an `AppendFile`, over all segments."""

    def __init__(
        self,
        path: Path,
        plan: SegmentPlan,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the first segment; `path`: the name without a number.

        Raises:
            OSError: it cannot be created, or is there already.
        """
        name = parse_rank_file_name(path.name)
        if name is None:
            raise ValueError(f"{path} is no rank's file")
        self._named, self._folder = name, path.parent
        self._plan, self._clock = plan, clock
        self.number = 0
        """Of the segment that grows."""
        self._base = 0
        self._file = AppendFile(self._path_of(0))
        self._head_bytes = 0
        self._started = self._begun = clock()

    @property
    def path(self) -> Path:
        """The segment that grows."""
        return self._file.path

    @property
    def paths(self) -> list[Path]:
        """All segments, the first one first."""
        return [self._path_of(number) for number in range(self.number + 1)]

    @property
    def end(self) -> int:
        """Bytes in all segments: where the next append will start."""
        return self._base + self._file.end

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
        if self._file.end <= self._head_bytes:
            return False
        now = self._clock()
        longest = min((now - self._started) / _SHARE, _MOST_SECONDS)
        is_old = now - self._begun >= max(self._plan.seconds, longest)
        return is_old or self._file.end >= self._plan.max_bytes

    def begin(self, head: bytes) -> None:
        """Finish the newest segment and begin another one with `head`.

        Raises:
            DeletedError: the newest segment was deleted.
            OSError: the other one cannot be written; the newest still grows.
        """
        before = self._file
        if before.is_deleted():
            raise DeletedError(errno.ESTALE, "the file was deleted", str(before.path))
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
        self._plan.finished(before.path)

    def close(self) -> None:
        """Give the descriptor back. Safe to call again."""
        self._file.close()

    def finish(self) -> None:
        """Nothing is written any more: the last segment is finished too."""
        self._file.close()
        self._plan.finished(self._file.path)

    def _path_of(self, number: int) -> Path:
        rank, attempt, _ = self._named
        return self._folder / rank_file_name(rank, attempt, number)
