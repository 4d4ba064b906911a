"""Rows, notes and schemas from the training thread to the writer's: bounded, counted."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from collector.clock.process_clock import now_ns
from collector.format.records import Note, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from collector.writing.tables import Row

_NOTES_ROOM: Final = 2
"""Times the rows that fit: notes still fit where rows do not, but not without end."""
_NOTES_PER_FLUSH: Final = 256
"""Notes a user's code may cause between two flushes; more are dropped and counted."""


class RowQueue:
    """`put_*` are for any thread and take about a microsecond."""

    def __init__(self, max_rows: int, wake: Callable[[], None]) -> None:
        """`wake`: called when the queue is half full."""
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
            self.rows_dropped[schema_id] = self.rows_dropped.get(schema_id, 0) + 1
        if waiting == self._wake_at:
            self._wake()

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
