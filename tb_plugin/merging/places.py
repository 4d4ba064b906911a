"""Processes and threads of one rank: numbers that no other rank has, and their names.

Viewers take a process's number for one process and a thread's for one thread of the whole
trace, while sources number them anew on each host, and devices from 0. So every process
and thread gets the next free number, and keeps its own in its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from tb_plugin.merging.events import Event, raw

if TYPE_CHECKING:
    from collections.abc import Iterator

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
class _Process:
    number: int
    key: str
    name: str = ""
    sort: int = _LAST
    labels: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Thread:
    process: int
    number: int
    key: str
    name: str = ""
    sort: int | None = None


class Places:
    """Of one rank."""

    def __init__(self, label: str, order: int, numbers: Numbers) -> None:
        """`label` begins every process's name; `order` is the rank's place."""
        self.label = label
        self._order = order
        self._numbers = numbers
        self._processes: dict[str, _Process] = {}
        self._threads: dict[tuple[str, str], _Thread] = {}
        self._known: dict[tuple[Any, Any], tuple[int, int]] = {}
        self._told_processes: dict[str, _Process] = {}
        """What metadata says of processes, with events or without."""
        self._told_threads: dict[tuple[str, str], tuple[str, int | None]] = {}

    @property
    def known(self) -> dict[tuple[Any, Any], tuple[int, int]]:
        """Numbers of places met before."""
        return self._known

    def of(self, pid: Any, tid: Any) -> tuple[int, int]:
        """The numbers of a process and thread as a source writes them."""
        place = self._known.get((pid, tid))
        if place is None:
            process = self._process(pid)
            place = process.number, self._thread(process, tid).number
            if len(self._known) < 2 * MAX_THREADS:
                self._known[pid, tid] = place
        return place

    def tell_process(
        self, pid: Any, *, name: str = "", label: str = "", sort: int | None = None
    ) -> None:
        """Keep what a source says of a process."""
        if len(self._told_processes) >= MAX_THREADS:
            return
        told = self._told_processes.setdefault(_text(pid), _Process(0, ""))
        told.name = name or told.name
        if label and label not in told.labels:
            told.labels.append(label)
        if sort is not None:
            told.sort = sort

    def tell_thread(
        self, pid: Any, tid: Any, *, name: str = "", sort: int | None = None
    ) -> None:
        """Keep what a source says of a thread."""
        key = _text(pid), _text(tid)
        if len(self._told_threads) < MAX_THREADS or key in self._told_threads:
            known = self._told_threads.get(key, ("", None))
            self._told_threads[key] = (
                name or known[0],
                known[1] if sort is None else sort,
            )

    def names(self) -> Iterator[Event]:
        """Names and order of all places that events lie in."""
        for key, process in self._processes.items():
            told = self._told_processes.get(key)
            if told is not None:
                process.name, process.labels = told.name, told.labels
                process.sort = told.sort
        ordered = sorted(self._processes.values(), key=lambda one: (one.sort, one.key))
        for index, process in enumerate(ordered):
            sort = self._order * _SORT_STEP + min(index, _SORT_STEP - 1)
            yield _meta("process_name", process.number, 0, name=self._name(process))
            yield _meta("process_sort_index", process.number, 0, sort_index=sort)
            if process.labels:
                labels = ",".join(process.labels)
                yield _meta("process_labels", process.number, 0, labels=labels)
        for place, thread in self._threads.items():
            name, wanted = self._told_threads.get(place, ("", None))
            name = name or f"thread {thread.key}"
            yield _meta("thread_name", thread.process, thread.number, name=name)
            if wanted is not None:
                yield _meta(
                    "thread_sort_index",
                    thread.process,
                    thread.number,
                    sort_index=wanted,
                )

    def _process(self, pid: Any) -> _Process:
        key = _text(pid)
        if key not in self._processes and len(self._processes) >= MAX_THREADS:
            key = ""
        if key not in self._processes:
            self._processes[key] = _Process(next(self._numbers.process), key)
        return self._processes[key]

    def _thread(self, process: _Process, tid: Any) -> _Thread:
        key = process.key, _text(tid)
        if key not in self._threads and len(self._threads) >= MAX_THREADS:
            key = process.key, ""
        if key not in self._threads:
            number = next(self._numbers.thread)
            self._threads[key] = _Thread(process.number, number, key[1])
        return self._threads[key]

    def _name(self, process: _Process) -> str:
        if f"{process.name} ".startswith(
            f"{self.label} "
        ):  # a source that says the rank itself
            return process.name
        plain = process.name or "process"
        return f"{self.label} {plain} {process.key}".rstrip()


def _meta(kind: str, pid: int, tid: int, **args: Any) -> Event:
    return Event(ph="M", name=raw(kind), pid=pid, tid=tid, args=raw(args))


def _text(key: Any) -> str:
    return "" if key is None else str(key)
