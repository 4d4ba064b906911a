"""The dataloader workers: how many there are and what memory they hold.

They are the processes that torch's DataLoader starts to load batches. Each gives itself a
name that the system shows, so that other children (pools, subprocesses, forks, servers)
are told from them however they were started. Resident memory counts a page that several
processes share in each of them: `process_full` does not.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memboard.collector.core.source import Unavailable
from memboard.collector.format.columns import WORKERS
from memboard.collector.sources.source import Reader, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.sources.device.accelerator import Device

MAX_PROCESSES: Final = 1024
"""More are not looked at: a runaway must not slow the recorder down."""

_MAX_DEPTH: Final = 3
"""Workers may be children of a server that forks them."""

_NAME: Final = "pt_data_worker"
"""Name that torch gives workers, from 2.5 on."""

_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)
"""It has ended meanwhile, or is not ours to look at. All else is no answer at all, and
not the answer that there are no workers."""


def _open(_config: RecordConfig, _device: Device) -> Reader:
    """Open the view of this process's children."""
    if sys.platform != "linux":
        raise Unavailable(
            "dataloader workers cannot be distinguished from other child processes on"
            " this system",
            "Record on Linux.",
        )
    own_children = Path(f"/proc/self/task/{os.getpid()}/children")
    family = ProcFamily() if own_children.exists() else PsutilFamily()

    def sample() -> Sequence[int]:
        sizes = family.worker_sizes(os.getpid())
        return len(sizes), sum(sizes), max(sizes, default=0)

    return Reader(sample)


WORKERS_SOURCE: Final = Source(
    name="workers",
    cost="0.1 ms and 0.05 ms per child process and sample",
    columns=lambda _: WORKERS,
    open=_open,
    setting="process",
    times=2,
)


class ProcFamily:
    """Every thread's own list of children, without a walk over all processes."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """`proc` stands in for /proc, for tests."""
        self._proc = proc
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")

    def worker_sizes(self, pid: int) -> list[int]:
        """Resident bytes of each worker below `pid`."""
        sizes: list[int] = []
        num_seen = 0
        level = [pid]
        for _ in range(_MAX_DEPTH):
            below: list[int] = []
            for child in self._children(level):
                if num_seen >= MAX_PROCESSES:
                    break
                num_seen += 1
                try:
                    is_worker = self._name(child) == _NAME
                    size = self._resident_bytes(child) if is_worker else 0
                except (*_GONE, ValueError, IndexError):
                    continue  # it has ended meanwhile
                if not is_worker:
                    below.append(child)
                elif size:  # one that has ended but is not collected yet holds nothing
                    sizes.append(size)
            level = below
        return sizes

    def _children(self, parents: Iterable[int]) -> Iterable[int]:
        for parent in parents:
            try:
                threads = list((self._proc / str(parent) / "task").iterdir())
            except _GONE:
                continue
            for thread in threads:
                try:
                    text = (thread / "children").read_bytes()
                except _GONE:
                    continue
                yield from map(int, text.split())

    def _name(self, pid: int) -> str:
        name = (self._proc / str(pid) / "comm").read_bytes()
        return name.decode(errors="replace").strip()

    def _resident_bytes(self, pid: int) -> int:
        pages = int((self._proc / str(pid) / "statm").read_bytes().split()[1])
        return pages * self._page_bytes


class PsutilFamily:
    """Where the kernel lists no children: psutil's walk over all processes."""

    def worker_sizes(self, pid: int) -> list[int]:
        """Resident bytes of each worker below `pid`."""
        import psutil

        process_by_pid: dict[int, tuple[str, int, int]] = {}
        for child in psutil.Process(pid).children(recursive=True)[:MAX_PROCESSES]:
            try:
                name, parent = child.name(), child.ppid()
                size = child.memory_info().rss if name == _NAME else 0
            except psutil.Error:
                continue  # it has ended meanwhile, or is not ours to look at
            process_by_pid[child.pid] = (name, parent, size)
        return [
            size
            for _, parent, size in process_by_pid.values()
            if size
            and process_by_pid.get(parent, ("",))[0] != _NAME  # what a worker forks
        ]
