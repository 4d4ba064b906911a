"""The dataloader workers: how many there are and what memory they hold.

They are the live child processes of the training process, and theirs. Children that
serve Python or torch itself (multiprocessing's resource tracker, the compile workers)
do not count; those of multiprocessing's fork server do. Resident memory counts a page
that several processes share in each of them: `process_full` does not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.format.columns import WORKERS
from collector.sources.contract import FunctionSource, SourceInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.config import RecordConfig
    from collector.sources.accelerator import Device

INFO: Final = SourceInfo(
    name="workers", cost="0.1 ms and 0.05 ms per worker and sample"
)

MAX_PROCESSES: Final = 1024
"""More are not looked at: a runaway must not slow the recorder down."""

_MAX_DEPTH: Final = 3

_SERVICES: Final = (b"resource_tracker", b"compile_worker")
"""Words in the command line of processes that load no data, nor do their children."""

_SERVER: Final = b"forkserver"
"""In the command line of a process whose children are workers; theirs reads the same."""


def open_source(config: RecordConfig, _device: Device) -> FunctionSource:
    """Open the view of this process's children."""
    own_children = Path(f"/proc/self/task/{os.getpid()}/children")
    family = ProcFamily() if own_children.exists() else PsutilFamily()

    def sample() -> Sequence[int]:
        sizes = family.worker_sizes(os.getpid())
        return len(sizes), sum(sizes), max(sizes, default=0)

    return FunctionSource(
        info=INFO,
        columns=WORKERS,
        interval_seconds=config.workers.interval_seconds,
        sample=sample,
    )


class ProcFamily:
    """Linux: every thread's own list of children, without a walk over all processes."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """`proc` stands in for /proc, for tests."""
        self._proc = proc
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self._commands: dict[tuple[int, bytes], bytes] = {}

    def worker_sizes(self, pid: int) -> list[int]:
        """Resident bytes of each worker below `pid`."""
        sizes: list[int] = []
        seen: dict[tuple[int, bytes], bytes] = {}
        level = [(pid, b"")]
        for _ in range(_MAX_DEPTH):
            below: list[tuple[int, bytes]] = []
            for child, above in self._children(level):
                if len(seen) >= MAX_PROCESSES:
                    break
                try:
                    size, command = self._look(child, seen)
                except (OSError, ValueError, IndexError):
                    continue  # it has ended meanwhile
                if any(word in command for word in _SERVICES):
                    continue
                below.append((child, command))
                serves = _SERVER in command and _SERVER not in above
                # A process that has ended but is not collected yet holds nothing.
                if size and not serves:
                    sizes.append(size)
            level = below
        self._commands = seen
        return sizes

    def _children(
        self, parents: Iterable[tuple[int, bytes]]
    ) -> Iterable[tuple[int, bytes]]:
        for parent, command in parents:
            try:
                threads = list((self._proc / str(parent) / "task").iterdir())
            except OSError:
                continue
            for thread in threads:
                try:
                    text = (thread / "children").read_bytes()
                except OSError:
                    continue
                yield from ((int(child), command) for child in text.split())

    def _look(
        self, pid: int, seen: dict[tuple[int, bytes], bytes]
    ) -> tuple[int, bytes]:
        folder = self._proc / str(pid)
        resident = int((folder / "statm").read_bytes().split()[1])
        # A number is used again; with the start time it names one process for good.
        started = (folder / "stat").read_bytes().rpartition(b")")[2].split()[19]
        key = (pid, started)
        command = self._commands.get(key)
        if command is None:
            command = (folder / "cmdline").read_bytes()
        seen[key] = command
        return resident * self._page_bytes, command


class PsutilFamily:
    """Elsewhere: psutil's walk over all processes."""

    def worker_sizes(self, pid: int) -> list[int]:
        """Resident bytes of each worker below `pid`."""
        import psutil

        sizes = []
        for child in psutil.Process(pid).children(recursive=True)[:MAX_PROCESSES]:
            try:
                command = " ".join(child.cmdline()).encode(errors="replace")
                size = child.memory_info().rss
                serves = _SERVER in command and child.ppid() == pid
            except psutil.Error:
                continue  # it has ended meanwhile, or is not ours to look at
            if size and not serves and not any(word in command for word in _SERVICES):
                sizes.append(size)
        return sizes
