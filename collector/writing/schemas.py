"""The file's tables: each has a schema, queued before its first row."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING, Final

from collector.format.records import Schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.core.warn_once import WarnOnce
    from collector.format.columns import Column

_MAX_TABLES: Final = 512
"""A program may invent names of functions without end; each table costs memory."""


class Schemas:
    """Of one recording. Safe from any thread."""

    def __init__(self, put: Callable[[Schema], None], warn_once: WarnOnce) -> None:
        """`put` queues a schema."""
        self._put = put
        self._warn_once = warn_once
        self._lock = threading.RLock()
        self._ids = count()
        self._of_kinds: dict[tuple[str, str], list[tuple[tuple[Column, ...], int]]] = {}
        """By table and phase, what kinds write there: columns and their schema."""
        self._num_of_kinds = 0

    def add(
        self,
        table: str,
        phase: str,
        columns: tuple[Column, ...],
        interval_seconds: float | None = None,
        *,
        rolled_up: bool = True,
    ) -> int:
        """Another table, by the number that its rows go under."""
        with self._lock:
            schema = Schema(
                schema_id=next(self._ids),
                table=table,
                phase=phase,
                columns=columns,
                interval_seconds=interval_seconds,
                rolled_up=rolled_up,
            )
            self._put(schema)
        return schema.schema_id

    def of_kind(
        self, table: str, phase: str, columns: tuple[Column, ...], *, rolled_up: bool
    ) -> int | None:
        """The number of a kind's table, new or not; None where there are too many."""
        with self._lock:
            known = self._of_kinds.get((table, phase), [])
            for held, schema_id in known:
                if held is columns or held == columns:
                    return schema_id
            if self._num_of_kinds >= _MAX_TABLES:
                self._warn_once(
                    "tables",
                    "more than %d tables of functions: %s and further ones are not"
                    " recorded. Give functions and spans names without a number that"
                    " grows.",
                    _MAX_TABLES,
                    table,
                )
                return None
            schema_id = self.add(table, phase, columns, rolled_up=rolled_up)
            self._num_of_kinds += 1
            self._of_kinds[table, phase] = [*known, (columns, schema_id)]
        return schema_id
