"""Tables that are made when they are first asked for: on the writer's thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.format.records import CaptureTable


class LaterTables(Mapping[str, "CaptureTable"]):
    """A capture's tables; training does not wait for them to be made."""

    def __init__(
        self, make: Callable[[], Mapping[str, CaptureTable]], size_bytes: int
    ) -> None:
        """`make` is called once, on any thread. `size_bytes`: of the tables, about."""
        self.size_bytes = size_bytes
        self._make: Callable[[], Mapping[str, CaptureTable]] | None = make
        self._tables: Mapping[str, CaptureTable] = {}
        self._lock = threading.Lock()

    def _made(self) -> Mapping[str, CaptureTable]:
        with self._lock:
            if self._make is not None:
                self._tables = self._make()
                self._make = None  # with all that it holds
            return self._tables

    def __getitem__(self, name: str) -> CaptureTable:
        return self._made()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())
