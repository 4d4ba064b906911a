"""How much memory and processor time the reading of one file may take.

A small file that needs much is hostile or hides a fault of ours, so the limits grow with
the file, up to a cap that no real one needs. The clock on the wall counts for nothing: a
busy machine must not make a whole file one that is refused.
"""

from __future__ import annotations

import mmap
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from tb_plugin.jobs.worker.kinds import MIB, SNAPSHOT

if TYPE_CHECKING:
    from tb_plugin.jobs.worker.kinds import Kind

__all__ = [
    "GZIP",
    "MIB",
    "Limits",
    "apply",
    "content_bytes",
    "cpu_seconds_of",
    "ensure_room",
]

GZIP: Final = b"\x1f\x8b"
"""The first bytes of what is deflated."""

_MOST_CPU_S: Final = 1800.0
_SILENT_S: Final = 120.0
"""A disk that is away may take so long to answer; the busiest machine gives a process
some time within it."""

_MAX_RATIO: Final = 200
"""What deflates more is no file of these kinds."""

_NICE: Final = 5
"""A page that waits for this is not to wait long, but others come first."""
_MOST_OUTPUT: Final = 16 << 30
_MOST_FILES: Final = 64


class Limits(NamedTuple):
    """Of one worker process."""

    memory_bytes: int
    """Address space beyond what the interpreter and its modules take."""
    cpu_s: int
    silent_s: float
    """How long it may neither say anything nor use the processor."""

    @classmethod
    def of(cls, num_bytes: int, kind: Kind = SNAPSHOT) -> Limits:
        """The limits for a file of so many bytes, once it is inflated."""
        cpu_s = min(_MOST_CPU_S, kind.cpu_s + kind.cpu_s_per_byte * num_bytes)
        memory = kind.memory_bytes + int(kind.memory_per_byte * num_bytes)
        memory = min(kind.most_memory_bytes, memory)
        # Where nobody can tell what time a process took, only the clock is left.
        silent_s = _SILENT_S if sys.platform == "linux" else 4 * cpu_s + _SILENT_S
        return cls(memory, round(cpu_s), silent_s)


def content_bytes(num_bytes: int, head: bytes, end: bytes, kind: Kind) -> int:
    """How much is expected in a file, by its first bytes and its last ones.

    What is deflated says at its end how much it inflates to; that may be a lie, and is
    believed within bounds.
    """
    if head[: len(GZIP)] != GZIP:
        return num_bytes
    said = int.from_bytes(end[-4:], "little")
    return max(kind.gzip_ratio * num_bytes, min(said, _MAX_RATIO * num_bytes))


def cpu_seconds_of(pid: int) -> float | None:
    """Processor time that a process took so far; None where nobody can tell."""
    if sys.platform != "linux":
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            # The name before the last bracket may hold anything.
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


def apply(limits: Limits) -> None:
    """Limit this process, as far as the system can."""
    with suppress(AttributeError, OSError):
        os.nice(_NICE)
    try:
        import resource
    except ImportError:  # Windows
        return
    in_use = _address_space()
    for kind, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, _MOST_OUTPUT, _MOST_OUTPUT),
        (resource.RLIMIT_NOFILE, _MOST_FILES, _MOST_FILES),
        (resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1),
        (
            resource.RLIMIT_AS,
            in_use + limits.memory_bytes,
            in_use + limits.memory_bytes,
        ),
    ):
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)  # noqa: PLW2901
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (soft, hard))


def ensure_room(num_bytes: int) -> None:
    """Meet the limit here, before code that crashes where it gets no memory.

    msgspec writes texts without a look at whether there was room for them.

    Raises:
        MemoryError: so much is not to be had.
    """
    try:
        mmap.mmap(-1, num_bytes).close()
    except OSError as error:
        raise MemoryError from error


def _address_space() -> int:
    """Bytes that this process has mapped."""
    if sys.platform != "linux":
        return 1 << 30
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[0]) * 4096
