"""Resident memory of the process, cheap enough for every step.

On Linux it is one `pread` of a kept descriptor on /proc/self/statm: 1.5-3 us, where
psutil takes 12-24 us. One reading stands for all that is recorded where a collected step
ends and the next one begins (`StepBoundary`). A descriptor opened before a fork would go
on reporting the parent, so a forked child opens its own.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from typing import TYPE_CHECKING, Final

from memboard.collector.format.columns import RSS
from memboard.collector.process.fork import watch
from memboard.collector.sources.source import Reader, Source, nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.sources.device.accelerator import Device

_STATM: Final = "/proc/self/statm"

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def _open(_config: RecordConfig, _device: Device) -> Reader:
    """Open the statm descriptor, or psutil's view where there is no /proc."""
    sizes = open_sizes()
    return Reader(sizes.sample, sizes.close)


RSS_SOURCE: Final = Source(
    name="rss",
    cost="2 us per step (20 us without /proc)",
    columns=lambda _: RSS,
    open=_open,
    setting="",
)


def open_sizes() -> StatmSource | PsutilSource:
    """What reads the process's sizes whenever it is asked; to be closed."""
    return StatmSource() if os.path.exists(_STATM) else PsutilSource()  # noqa: PTH110


def resident_bytes(reading: bytes | int) -> int | None:
    """What a reading says of resident memory; None where it says nothing."""
    if isinstance(reading, int):
        return reading
    try:
        return int(reading.split(b" ", 2)[1]) * PAGE_BYTES
    except (ValueError, IndexError):
        return None  # the descriptor had been closed, and was another file's


class StepBoundary(threading.local):
    """Where a collected step has ended and the next step begins, on this thread.

    It is one moment of some 200 us, in which nothing but recording happens.
    """

    sizes: tuple[int, int] | None = None
    """Resident and virtual bytes there; None: outside of one, or not readable."""

    def begin(self, source: StatmSource | PsutilSource) -> None:
        """The step has ended: read the sizes. Whoever begins it sets them to None again."""
        try:
            self.sizes = source.sizes()
        except OSError:
            self.sizes = None


BOUNDARY: Final = StepBoundary()


class StatmSource:
    """Linux: the first two numbers of /proc/self/statm, in pages."""

    def __init__(self) -> None:
        """Where it cannot be opened now, a reading tries again, and raises."""
        self._descriptor = -1
        self._identity = (-1, -1)
        self._is_closed = False
        with contextlib.suppress(OSError):
            self._open()
        watch(self)

    def sample(self) -> Sequence[int | float | None]:
        """The process's resident bytes, at the boundary of steps where there is one."""
        sizes = BOUNDARY.sizes
        if sizes is not None:
            return (sizes[0],)
        try:
            # As `sizes` has it; written out, as every step asks.
            pages = os.pread(self._descriptor, 64, 0).split(b" ", 2)[1]
            return (int(pages) * PAGE_BYTES,)
        except (OSError, ValueError, IndexError):
            return (self.sizes()[0],)

    def sizes(self) -> tuple[int, int]:
        """The process's resident and virtual bytes."""
        try:
            virtual, resident, _ = self.read().split(b" ", 2)
            return int(resident) * PAGE_BYTES, int(virtual) * PAGE_BYTES
        except (OSError, ValueError):
            if self._is_closed:
                raise
            # Or the program closed all descriptors; the number may be a file of its own.
            self._open()
            virtual, resident, _ = self.read().split(b" ", 2)
            return int(resident) * PAGE_BYTES, int(virtual) * PAGE_BYTES

    def read(self) -> bytes:
        """A reading to be looked at later; see `resident_bytes`."""
        return os.pread(self._descriptor, 64, 0)

    def reader(self) -> Callable[[], bytes]:
        """What `read` does, without a call of Python's; good while it can be read."""
        return functools.partial(os.pread, self._descriptor, 64, 0)

    def close(self) -> None:
        """Close the descriptor; twice is harmless."""
        self._is_closed = True
        self.after_fork()

    def after_fork(self) -> None:
        """Let go of the descriptor, in a forked child of the parent's."""
        descriptor, self._descriptor = self._descriptor, -1
        with contextlib.suppress(OSError):
            if _identity(descriptor) == self._identity:
                os.close(descriptor)

    def _open(self) -> None:
        self._descriptor = os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)
        self._identity = _identity(self._descriptor)


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


class PsutilSource:
    """Elsewhere: psutil, whose Process object too would report a fork's parent."""

    def __init__(self) -> None:
        self._pid = -1

    def sample(self) -> Sequence[int | float | None]:
        """The process's resident bytes, at the boundary of steps where there is one."""
        return ((BOUNDARY.sizes or self.sizes())[0],)

    def read(self) -> int:
        """A reading to be looked at later; see `resident_bytes`."""
        return self.sizes()[0]

    def reader(self) -> Callable[[], int]:
        # What `read` does
        return self.read

    def sizes(self) -> tuple[int, int]:
        """The process's resident and virtual bytes."""
        if self._pid != os.getpid():
            import psutil

            self._pid = os.getpid()
            self._process = psutil.Process()
        memory = self._process.memory_info()
        return memory.rss, memory.vms

    close = staticmethod(nothing)
