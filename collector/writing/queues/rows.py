"""Rows, notes and schemas from the training thread to the writer's: bounded, counted."""

from __future__ import annotations

import time
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Final

from memboard.collector.clock.process_clock import now_ns
from memboard.collector.format.records import Note, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from memboard.collector.writing.tables import Row

_STUCK_SECONDS: Final = 5.0
_NOTES_ROOM: Final = 2
"""Times the rows that fit: notes still fit where rows do not, but not without end."""
_NOTES_PER_FLUSH: Final = 256
"""Notes a user's code may cause between two flushes; more are dropped and counted."""


class RowQueue:
    """`put_*` are for any thread and take about a microsecond."""

    def __init__(
        self, max_rows: int, wake: Callable[[], None], full: Callable[[], None]
    ) -> None:
        """What is called.

        Args:
            max_rows: that fit.
            wake: called when the queue is half full.
            full: called once where rows are still dropped after `_STUCK_SECONDS`: by then
                whoever empties the queue has said so, or hangs.
        """
        self.items: deque[tuple[int, Row] | Note | Schema] = deque()
        self.num_user_notes = 0
        """Notes that a user's code caused since the last flush."""
        self.num_notes_dropped = 0
        self.rows_dropped: dict[int, int] = {}
        """By the number of their schema."""
        self.lost: dict[tuple[str, str], int] = {}
        """What others have dropped so far, by table and reason."""
        self._max_rows = max_rows
        self._wake_at = max(1, max_rows // 2)
        self._wake = wake
        self._full = full
        self._full_at = inf

    @property
    def num_dropped(self) -> int:
        """All that was dropped so far, whatever the reason."""
        rows = sum(self.rows_dropped.values())
        return rows + self.num_notes_dropped + sum(self.lost.values())

    def put_row(self, schema_id: int, row: Row) -> None:
        """Queue a row, or count it as dropped where the queue is full."""
        waiting = len(self.items)
        if waiting < self._max_rows:
            self.items.append((schema_id, row))
        else:
            self._drop(schema_id)
        if waiting == self._wake_at:
            self._wake()

    def _drop(self, schema_id: int) -> None:
        now = time.monotonic()
        if not self.rows_dropped:
            self._full_at = now + _STUCK_SECONDS
        elif now > self._full_at:
            self._full_at = inf
            self._full()
        self.rows_dropped[schema_id] = self.rows_dropped.get(schema_id, 0) + 1

    def put_schema(self, schema: Schema) -> None:
        """Queue a table's schema, before its first row."""
        self.items.append(schema)

    def put_note(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        step: int | None = None,
        user: bool = False,
    ) -> None:
        """Queue a note, or count it as dropped.

        Of those that a `user`'s loop may cause fewer fit between two flushes.
        """
        self.num_user_notes += user
        if (user and self.num_user_notes > _NOTES_PER_FLUSH) or len(
            self.items
        ) >= _NOTES_ROOM * self._max_rows:
            self.num_notes_dropped += 1
            return
        self.items.append(Note(kind=kind, time_ns=now_ns(), step=step, data=data))
