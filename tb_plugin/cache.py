"""One cache in memory for all that readers have decoded, with one bound for the process.

Every reader has a `Cache` of its own, and all of them count towards one `CacheMemory`: the
least recently used value goes first, whichever reader it is of. Tables whose size does not
depend on what files contain (facts of a file, names that were parsed) are no caches of
this kind.
"""

from __future__ import annotations

import math
import mmap
import sys
import threading
import weakref
from collections import OrderedDict, deque
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.process.control_group import machine_bytes

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    import numpy.typing as npt

SHARE: Final = 1 / 8
"""Of the machine's memory, or of what a control group lets the process have."""
MAX_BYTES: Final = 2 << 30
"""However much memory there is."""
_UNKNOWN_BYTES: Final = 1 << 30
"""Where nobody says how much there is."""
ENTRY_OVERHEAD_BYTES: Final = 400
"""Key, dictionary slots and array object of one entry, roughly."""
_WITHOUT_PARTS: Final = (int, float, bool, str, bytes, type)


def bound_bytes() -> int:
    """Bytes that all caches of a process may hold together."""
    whole = machine_bytes()
    return _UNKNOWN_BYTES if whole is None else min(MAX_BYTES, int(whole * SHARE))


class _Entry:
    __slots__ = ("cost", "key", "shelf", "value")

    def __init__(self, shelf: _Shelf, key: Hashable, value: Any, cost: int) -> None:
        self.shelf, self.key, self.value, self.cost = shelf, key, value, cost


class _Shelf:
    """The entries of one cache, those used last at the end."""

    def __init__(self, max_bytes: float) -> None:
        self.entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self.num_shown = 0
        self.num_bytes = 0
        self.max_bytes = max_bytes


class CacheMemory:
    """The values of many caches, at most `max_bytes` together. Safe for threads."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self._order: OrderedDict[_Entry, None] = OrderedDict()
        """Of all caches, the least recently used first."""
        self._lock = threading.Lock()
        self._abandoned: deque[_Shelf] = deque()
        """Of caches that are gone. A garbage collection may add some at any moment, also
        while the lock is held: so they are emptied with the next `put`."""

    def abandon(self, shelf: _Shelf) -> None:
        self._abandoned.append(shelf)

    def get(self, shelf: _Shelf, key: Hashable) -> Any:
        with self._lock:
            entry = shelf.entries.get(key)
            if entry is None:
                return None
            shelf.entries.move_to_end(key)
            self._order.move_to_end(entry)
            return entry.value

    def put(self, shelf: _Shelf, key: Hashable, value: Any, num_bytes: int) -> None:
        cost = num_bytes + ENTRY_OVERHEAD_BYTES
        removed: list[_Entry] = []  # they die when the lock is free again
        with self._lock:
            while self._abandoned:
                gone = self._abandoned.popleft()
                removed += [
                    self._remove(entry) for entry in list(gone.entries.values())
                ]
            before = shelf.entries.get(key)
            if before is not None:
                removed.append(self._remove(before))
            if cost > min(self.max_bytes, shelf.max_bytes) and not shelf.num_shown:
                return
            entry = shelf.entries[key] = _Entry(shelf, key, value, cost)
            self._order[entry] = None
            self.num_bytes += cost
            shelf.num_bytes += cost
            removed += self._make_room(shelf)

    def resize(self, shelf: _Shelf, key: Hashable, num_bytes: int) -> None:
        cost = num_bytes + ENTRY_OVERHEAD_BYTES
        removed: list[_Entry] = []
        with self._lock:
            entry = shelf.entries.get(key)
            if entry is not None:
                self.num_bytes += cost - entry.cost
                shelf.num_bytes += cost - entry.cost
                entry.cost = cost
                removed += self._make_room(shelf)

    def remove(self, shelf: _Shelf, key: Hashable) -> None:
        with self._lock:
            entry = shelf.entries.get(key)
            removed = None if entry is None else self._remove(entry)
        del removed  # it dies when the lock is free again

    def keys(self, shelf: _Shelf) -> list[Hashable]:
        with self._lock:
            return list(shelf.entries)

    def _make_room(self, shelf: _Shelf) -> list[_Entry]:
        removed = []
        while shelf.num_bytes > shelf.max_bytes:
            removed.append(self._remove(next(iter(shelf.entries.values()))))
        while self.num_bytes > self.max_bytes:
            # What is being shown is passed over: there are few of these.
            oldest = next((entry for entry in self._order if _may_go(entry)), None)
            if oldest is None:
                break
            removed.append(self._remove(oldest))
        return removed

    def _remove(self, entry: _Entry) -> _Entry:
        del entry.shelf.entries[entry.key]
        del self._order[entry]
        self.num_bytes -= entry.cost
        entry.shelf.num_bytes -= entry.cost
        return entry


def _may_go(entry: _Entry) -> bool:
    return len(entry.shelf.entries) > entry.shelf.num_shown


PROCESS: Final = CacheMemory(bound_bytes())
"""What all readers of this process share."""


class Cache:
    """Values by key of one reader, as long as there is room in the memory it shares.

    Keys begin with the identity of the file they were decoded from, so a file that
    changed in another way than by growing is simply never found again.
    """

    def __init__(
        self, memory: CacheMemory | None = None, max_bytes: float = math.inf
    ) -> None:
        """`memory`: else that of the process.

        `max_bytes`: of what is read through once, so that it displaces nothing else.
        """
        self._memory = memory = PROCESS if memory is None else memory
        self._shelf = _Shelf(max_bytes)
        weakref.finalize(self, memory.abandon, self._shelf).atexit = False

    def get(self, key: Hashable) -> Any:
        """The value, or None; counts as its use."""
        return self._memory.get(self._shelf, key)

    def peek(self, key: Hashable) -> Any:
        """The same, which does not count as use."""
        entry = self._shelf.entries.get(key)
        return None if entry is None else entry.value

    def put(self, key: Hashable, value: Any, num_bytes: int) -> None:
        """Cache a value of `num_bytes`; one larger than the bound only if it is shown."""
        self._memory.put(self._shelf, key, value, num_bytes)

    def resize(self, key: Hashable, num_bytes: int) -> None:
        """Say how large a value has become."""
        self._memory.resize(self._shelf, key, num_bytes)

    def remove(self, key: Hashable) -> None:
        self._memory.remove(self._shelf, key)

    def show(self, num: int) -> None:
        """The `num` values used last are being shown: they stay, whatever they take."""
        self._shelf.num_shown = num

    def __iter__(self) -> Iterator[Hashable]:
        """The keys, those used last at the end."""
        return iter(self._memory.keys(self._shelf))

    def __len__(self) -> int:
        return len(self._shelf.entries)


def held_bytes(value: Any) -> int:
    """Bytes of all arrays and texts that an object leads to, each counted once.

    What is mapped from a file does not count.
    """
    total = 0
    left: list[Any] = [value]
    counted: dict[int, Any] = {}
    """By id; they are retained, so that no id is used twice meanwhile."""
    while left:
        item = left.pop()
        if item is None or isinstance(item, _WITHOUT_PARTS):
            continue
        if isinstance(item, np.ndarray):
            item = _owner(item)
            if item is None:
                continue
        if id(item) in counted:
            continue
        counted[id(item)] = item
        if isinstance(item, np.ndarray):
            total += int(item.nbytes)
        elif isinstance(item, (tuple, list)) and item and isinstance(item[0], str):
            total += sum(map(sys.getsizeof, item))
        else:
            left += _parts(item)
    return total


def _parts(value: Any) -> Iterable[Any]:
    """What an object leads to, as far as it is ours, or a container."""
    if isinstance(value, Cache):
        return ()  # it counts by itself
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, dict):
        return list(value.values())
    kind: Any = type(value)
    names = _field_names(kind)
    if names is None and not kind.__module__.startswith("memboard."):
        return ()
    # Beside fields a dataclass may have properties that were made and kept.
    parts = list(getattr(value, "__dict__", {}).values())
    return parts or [getattr(value, name) for name in names or ()]


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """Of a dataclass; None: it is none."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def _owner(array: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """The array whose memory it shows; None where that is a file's."""
    if array.size and not any(array.strides):
        return None  # one number, however often it is seen
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    base = owner.base.obj if isinstance(owner.base, memoryview) else owner.base
    return None if isinstance(base, mmap.mmap) else owner
