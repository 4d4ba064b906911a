"""The events of a stopped profiler as columns: read once, in small portions.

torch's own summary makes an object of each event, which takes 60 us each while training
waits for the interpreter. Here it is 3 us each, with pauses in which training goes on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.sizes import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from memboard.collector.format.records import IntArray

MAX_EVENTS: Final = 4_000_000
"""Of a trace that is summed up; a longer one is saved all the same."""

_PORTION: Final = 1000
"""Events read in one go: 3 ms, less than the interpreter gives a thread."""

_PAUSE_SECONDS: Final = 0.003

MEMORY: Final = "[memory]"
"""The name of allocations and releases."""

ASYNC: Final = -1

_LARGEST: Final = 2**63 - 1
"""A thread beyond it is one that torch does not know."""

CPU: Final = 0
"""torch's number of the device type."""

KERNEL_CATEGORIES: Final = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))
"""Categories of what runs on a device; what the program names itself is there as well."""


LAUNCHING_CATEGORIES: Final = frozenset(("cpu_op", "user_annotation"))
"""Categories of what launches; a driver's calls have numbers of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """One row per event, in torch's order."""

    names: list[str]
    categories: list[str]
    """Each once; "" where this torch does not tell."""
    name: IntArray  # Row of `names`
    category: IntArray
    thread: IntArray
    """torch's number; `ASYNC` of what ends on another thread than it begins on, or
    ran on one that torch does not know."""
    start_ns: IntArray  # Wall clock
    duration_ns: IntArray
    device_type: IntArray
    device_index: IntArray
    num_bytes: IntArray
    """Signed, of allocations and releases."""
    flops: IntArray
    correlation: IntArray
    linked: IntArray
    """Of what runs on a device: the correlation of the operator that launched it."""

    def __len__(self) -> int:
        return len(self.name)

    def of_categories(self, names: Collection[str]) -> Any:
        """A mask of the events of these categories; of all where torch tells none."""
        if not any(self.categories):
            return np.ones(len(self), bool)
        rows = [row for row, name in enumerate(self.categories) if name in names]
        return np.isin(self.category, rows)

    def launchers(self, linked: IntArray) -> tuple[IntArray, Any]:
        """Who launched what has these links: rows of operators, and a mask of the known.

        Rows stand for the known ones alone.
        """
        can = (self.linked == 0) & (self.correlation > 0) & (self.device_type == CPU)
        rows = np.flatnonzero(can & self.of_categories(LAUNCHING_CATEGORIES))
        if not len(rows):
            return rows, np.zeros(len(linked), bool)
        rows = rows[np.argsort(self.correlation[rows], kind="stable")]
        at = np.searchsorted(self.correlation[rows], linked)
        found = rows[np.minimum(at, len(rows) - 1)]
        known = (linked > 0) & (self.correlation[found] == linked)
        return found[known], known

    def named(self, name: str) -> Any:
        """A mask of the events of that name."""
        wanted = self.names.index(name) if name in self.names else -1
        return self.name == wanted


class _Texts:
    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    def row(self, text: str) -> int:
        return self.rows.setdefault(text, len(self.rows))


def read_events(results: Any, pause: Callable[[float], None] = time.sleep) -> Events:
    """The columns of `torch.autograd.profiler.profile.kineto_results`.

    Raises:
        ValueError: there are more than `MAX_EVENTS`.
    """
    found = results.events()
    if len(found) > MAX_EVENTS:
        raise ValueError(f"{counted(len(found), 'event')} are more than {MAX_EVENTS:,}")
    names, categories = _Texts(), _Texts()
    read = _reader(found[0]) if found else None
    table = np.zeros((11, len(found)), dtype=np.int64)
    # From the end, so that what was read is let go and memory does not double.
    while found and read is not None:
        portion = found[-_PORTION:]
        del found[-_PORTION:]
        rows = [read(event, names, categories) for event in portion]
        table[:, len(found) : len(found) + len(rows)] = np.array(rows, np.int64).T
        pause(_PAUSE_SECONDS)
    columns = iter(table)
    events = Events(
        names=list(names.rows),
        categories=list(categories.rows),
        name=next(columns),
        category=next(columns),
        thread=next(columns),
        start_ns=next(columns),
        duration_ns=next(columns),
        device_type=next(columns),
        device_index=next(columns),
        num_bytes=next(columns),
        flops=next(columns),
        correlation=next(columns),
        linked=next(columns),
    )
    # A driver counts threads in its own way: its calls are the launching operator's.
    calls = np.flatnonzero((events.device_type == CPU) & (events.linked > 0))
    launchers, known = events.launchers(events.linked[calls])
    events.thread[calls[known]] = events.thread[launchers]
    return events


def _reader(event: Any) -> Callable[[Any, _Texts, _Texts], tuple[int, ...]]:
    """How this torch's events are read: before 2.3 it gave microseconds."""
    if hasattr(event, "start_ns"):
        times, factor = ("start_ns", "duration_ns"), 1
    else:
        times, factor = ("start_us", "duration_us"), 1000
    start, duration = times
    tells_category = hasattr(event, "activity_type")

    def read(event: Any, names: _Texts, categories: _Texts) -> tuple[int, ...]:
        thread = event.start_thread_id()
        if event.is_async() or thread > _LARGEST:
            thread = ASYNC
        return (
            names.row(_name(event)),
            categories.row(event.activity_type() if tells_category else ""),
            thread,
            getattr(event, start)() * factor,
            getattr(event, duration)() * factor,
            _number(event.device_type()),
            event.device_index(),
            event.nbytes(),
            event.flops(),
            event.correlation_id(),
            event.linked_correlation_id(),
        )

    return read


def _name(event: Any) -> str:
    """Its name: torch hands some on byte by byte, and not all are text."""
    try:
        name: str = event.name()
    except UnicodeDecodeError as error:
        return bytes(error.object).decode("utf-8", "replace")
    return name


def _number(device_type: Any) -> int:
    """The number of a member of torch's enumeration."""
    return int(getattr(device_type, "value", device_type))
