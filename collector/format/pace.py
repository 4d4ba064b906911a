"""Pace of digests in a file that grows.

A digest repeats the rollup, so it must be small beside what it follows; and whoever
opens a live file reads frame by frame what follows the last digest, so that must stay
small too. Both are measured in bytes, hence hold at any pace of training: all digests
together stay below about a seventh of the file, and what is behind the last one is at
most the greater of six digests (a MiB or so) and an eighth of the file.
"""

from __future__ import annotations

from typing import Final

SHARE: Final = 6
"""What precedes a digest is at least so many times its size."""

_GROWTH: Final = 8
"""In long files digests come when this part of the file is new, ..."""

_MOST_BYTES: Final = 1 << 25
"""... or this much."""

_FIRST_BYTES: Final = 1 << 16
"""No digest comes before; a reader is through that in a few milliseconds."""

_FIRST_ROWS: Final = 1024
_ROWS_GROWTH: Final = 1.25


class DigestPace:
    """Of one file; a digest that turns out too big waits for more rows."""

    def __init__(self) -> None:
        self._covered_bytes = 0
        """Where in the file the last digest ended."""
        self._due_bytes = _FIRST_BYTES
        """How much behind that makes the next one worth encoding."""
        self._unlisted_rows = 0
        self._unlisted_due: float = _FIRST_ROWS
        self._is_soon = False

    def flush_soon(self) -> None:
        """Make the next digest due now, whatever its size."""
        self._is_soon = True

    def roll_up(self, num_rows: int) -> None:
        """So many rows are known to the rollup alone: no chunk has them."""
        self._unlisted_rows += num_rows

    def is_due(self, end: int) -> bool:
        """Whether to encode a digest now; `end`: the size of the file."""
        return (
            self._is_soon
            or end - self._covered_bytes >= self._due_bytes
            or self._unlisted_rows >= self._unlisted_due
        )

    def admits(self, num_bytes: int, end: int) -> bool:
        """Whether a digest of so many bytes is to be written; asked when one is due."""
        long = min(end // _GROWTH, _MOST_BYTES)
        self._due_bytes = max(_FIRST_BYTES, SHARE * num_bytes, long)
        return (
            self._is_soon
            or end - self._covered_bytes >= SHARE * num_bytes
            or self._unlisted_rows >= self._unlisted_due
        )

    def written(self, end: int) -> None:
        """The digest that was admitted ends at `end`."""
        self._is_soon = False
        self._covered_bytes = end
        self._unlisted_due = max(_FIRST_ROWS, self._unlisted_rows * _ROWS_GROWTH)
