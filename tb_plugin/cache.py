"""A bounded store of what was decoded: the least recently used goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable

ENTRY_OVERHEAD_BYTES = 400
"""Key, dictionary slot and array object of one entry, roughly."""


class Cache:
    """Values by key, at most `max_bytes` of them. Safe to use from many threads.

    Keys begin with the identity of the file they were decoded from, so a file that
    changed in another way than by growing is simply never found again.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any:
        # The value, or None
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, num_bytes: int) -> None:
        """Keep a value that holds `num_bytes`; one larger than everything is not."""
        cost = num_bytes + ENTRY_OVERHEAD_BYTES
        with self._lock:
            previous = self._entries.pop(key, None)
            if previous is not None:
                self.num_bytes -= previous[1]
            if cost > self.max_bytes:
                return
            self._entries[key] = (value, cost)
            self.num_bytes += cost
            while self.num_bytes > self.max_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self.num_bytes -= freed

    def __len__(self) -> int:
        return len(self._entries)
