"""Processes and threads of one rank: numbers that no other rank has, and their names.

Viewers take a process's number for one process and a thread's for one thread of the whole
trace, while sources number them anew on each host, and devices from 0. So every process
and thread gets the next free number, and keeps its own in its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.formats.traces.columns.events import EventByKey

MAX_THREADS: Final = 1 << 16
"""Of one rank; a source that invents more has the rest on one thread."""

_SORT_STEP: Final = 1000
_LAST: Final = 1 << 40


class Numbers:
    """Process and thread numbers not used yet; 0 means something to viewers."""

    def __init__(self) -> None:
        self.process = count(1)
        self.thread = count(1)


@dataclass(slots=True)
class _TrackMetadata:
    """What a source says of a process or thread, with events or without."""

    name: str = ""
    sort: int | None = None
    labels: list[str] = field(default_factory=list)


class Places:
    def __init__(self, label: str, order: int, numbers: Numbers) -> None:
        """`label` begins every process's name; `order` is the rank's place."""
        self.label = label
        self.known: dict[tuple[Any, Any], tuple[int, int]] = {}
        """Numbers of places met before."""
        self._order = order
        self._numbers = numbers
        self._processes: dict[str, int] = {}
        self._threads: dict[tuple[str, str], int] = {}
        self._said: dict[tuple[str, ...], _TrackMetadata] = {}

    def of(self, pid: Any, tid: Any) -> tuple[int, int]:
        """The numbers of a process and thread as a source writes them."""
        place = self.known.get((pid, tid))
        if place is None:
            process, number = self._numbered(self._processes, _text(pid), "", "process")
            thread = (process, _text(tid))
            place = (
                number,
                self._numbered(self._threads, thread, (process, ""), "thread")[1],
            )
            if len(self.known) < 2 * MAX_THREADS:
                self.known[pid, tid] = place
        return place

    def tell_process(
        self, pid: Any, *, name: str = "", label: str = "", sort: int | None = None
    ) -> None:
        """Keep what a source says of a process."""
        metadata = self._tell((_text(pid),), name, sort)
        if label and label not in metadata.labels:
            metadata.labels.append(label)

    def tell_thread(
        self, pid: Any, tid: Any, *, name: str = "", sort: int | None = None
    ) -> None:
        """Keep what a source says of a thread."""
        self._tell((_text(pid), _text(tid)), name, sort)

    def names(self) -> Iterator[EventByKey]:
        """Names and order of all places that events lie in."""
        nothing = _TrackMetadata()
        processes = [
            (self._said.get((key,), nothing), key, pid)
            for key, pid in self._processes.items()
        ]
        processes.sort(
            key=lambda process: (
                _LAST if process[0].sort is None else process[0].sort,
                process[1],
            )
        )
        for index, (metadata, key, pid) in enumerate(processes):
            process_name = metadata.name
            if not f"{process_name} ".startswith(f"{self.label} "):
                process_name = (
                    f"{self.label} {process_name or 'process'} {key}".rstrip()
                )
            sort = self._order * _SORT_STEP + min(index, _SORT_STEP - 1)
            yield _meta("process_name", pid, 0, name=process_name)
            yield _meta("process_sort_index", pid, 0, sort_index=sort)
            if metadata.labels:
                yield _meta("process_labels", pid, 0, labels=",".join(metadata.labels))
        for (process, key), tid in self._threads.items():
            metadata = self._said.get((process, key), nothing)
            pid = self._processes[process]
            yield _meta("thread_name", pid, tid, name=metadata.name or f"thread {key}")
            if metadata.sort is not None:
                yield _meta("thread_sort_index", pid, tid, sort_index=metadata.sort)

    def _numbered(
        self, numbers: dict[Any, int], key: Any, rest: Any, kind: str
    ) -> tuple[Any, int]:
        """A process or thread and its number; beyond the most, what stands for the rest."""
        if key not in numbers and len(numbers) >= MAX_THREADS:
            key = rest
        if key not in numbers:
            numbers[key] = next(getattr(self._numbers, kind))
        return key, numbers[key]

    def _tell(
        self, key: tuple[str, ...], name: str, sort: int | None
    ) -> _TrackMetadata:
        if key not in self._said and len(self._said) >= 2 * MAX_THREADS:
            return _TrackMetadata()
        metadata = self._said.setdefault(key, _TrackMetadata())
        metadata.name = name or metadata.name
        metadata.sort = metadata.sort if sort is None else sort
        return metadata


def _meta(kind: str, pid: int, tid: int, **args: Any) -> EventByKey:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def _text(key: Any) -> str:
    return "" if key is None else str(key)
