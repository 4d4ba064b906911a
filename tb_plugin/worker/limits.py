"""Kinds of files that a worker reads, and how much memory and time one may take.

A small file that needs much is hostile or hides a fault of ours, so the limits grow with
the file, up to a share of the machine's memory. The clock on the wall counts for nothing: a
busy machine must not make a whole file one that is refused.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
import time
from contextlib import suppress
from typing import Final, NamedTuple

from memboard.collector.process.control_group import machine_bytes

MIB: Final = 1 << 20
GZIP: Final = b"\x1f\x8b"
"""The first bytes of what is deflated."""

GIB: Final = 1 << 30
_SHARE: Final = 0.2
"""Of the machine's memory: three files are read at a time, beside other programs."""
_UNKNOWN_SHARE: Final = 3 << 30
_MOST_CPU_S: Final = 1800.0
_SILENT_S: Final = 120.0
"""A disk that is away may take so long to answer; the busiest machine gives a process
some time within it."""

_MAX_RATIO: Final = 200
"""Highest ratio of deflation of files of these kinds."""

_NICE: Final = 5
"""A page that waits for this is not to wait long, but others come first."""
_MOST_OUTPUT: Final = 16 << 30
_MOST_FILES: Final = 64


class Kind(NamedTuple):
    """How files of one kind are read."""

    name: str
    module: str
    """Its `imported(file, report)` gives the tables and what is written with them."""
    version: int
    """To be raised when the same file would give other tables than before."""
    memory_bytes: int
    """Of any file, on any machine; the next adds to it for a file's size."""
    memory_per_byte: float
    gzip_ratio: int
    """Of what inflates, at least so many bytes are expected for each."""
    cpu_s: float
    cpu_s_per_byte: float
    """Three times what the slowest way of reading needs."""
    remedy: str
    """What to do where a limit was met, beside a machine with more memory."""
    sample: bytes = b""
    """A small file that the fork server reads, so that what is imported and made at
    first use is there in every worker."""

    @property
    def cached_as(self) -> str:
        """The name and the version of its tables in the cache."""
        return f"{self.name} {self.version}"


SNAPSHOT: Final = Kind(
    name="snapshot",
    module="memboard.tb_plugin.formats.snapshots.snapshot_file",
    version=2,
    memory_bytes=384 * MIB,
    memory_per_byte=32.0,
    gzip_ratio=8,
    cpu_s=10.0,
    cpu_s_per_byte=4.0 / MIB,
    remedy="Record fewer entries next time:"
    " torch.cuda.memory._record_memory_history(max_entries=...). If the file is small,"
    " please report this with its size.",
)
TRACE: Final = Kind(
    name="trace",
    module="memboard.tb_plugin.formats.traces.trace_file",
    version=10,
    memory_bytes=512 * MIB,
    memory_per_byte=2.0,
    gzip_ratio=40,
    cpu_s=10.0,
    cpu_s_per_byte=1.0 / MIB,
    remedy="Profile fewer steps next time, or without stacks and shapes. If the file is"
    " small, please report this with its size.",
    sample=b"""{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.5, "dur": 4,
 "args": {"External id": 1, "Input Dims": [[1]]}},
{"ph": "X", "cat": "cuda_runtime", "name": "b", "pid": 1, "tid": 1, "ts": 2, "dur": 1,
 "args": {"correlation": 1}},
{"ph": "X", "cat": "kernel", "name": "c", "pid": 0, "tid": 7, "ts": 3, "dur": 1,
 "args": {"correlation": 1, "device": 0, "stream": 7, "Collective name": "send"}},
{"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 2},
{"ph": "f", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 3},
{"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2, "args": {"Bytes": 1}},
{"ph": "M", "name": "process_name", "pid": 1, "tid": 1, "ts": 1, "args": {"name": "d"}}
]}""",
)
KINDS: Final = (SNAPSHOT, TRACE)


class Limits(NamedTuple):
    memory_bytes: int
    """Address space beyond what the interpreter and its modules take."""
    cpu_s: int
    silent_s: float
    """How long it may neither say anything nor use the processor."""

    @classmethod
    def of(cls, num_bytes: int, kind: Kind) -> Limits:
        """The limits for a file of so many bytes, once it is inflated."""
        cpu_s = min(_MOST_CPU_S, kind.cpu_s + kind.cpu_s_per_byte * num_bytes)
        memory = memory_of(num_bytes, kind)
        # Where nobody can tell what time a process took, only the clock is left.
        silent_s = _SILENT_S if sys.platform == "linux" else 4 * cpu_s + _SILENT_S
        return cls(memory, round(cpu_s), silent_s)


def memory_of(num_bytes: int, kind: Kind) -> int:
    """What a file of so many bytes may take: at most a share of the machine's memory."""
    wanted = kind.memory_bytes + int(kind.memory_per_byte * num_bytes)
    whole = machine_bytes()
    share = _UNKNOWN_SHARE if whole is None else int(whole * _SHARE)
    return min(wanted, max(share, kind.memory_bytes))


def memory_remedy(kind: Kind) -> str:
    """What to do where a file needs more than it may take."""
    whole = machine_bytes()
    of_machine = ""
    if whole is not None:
        of_machine = (
            f", of whose memory ({whole / GIB:,.1f} GiB) one file may take a fifth"
        )
    return (
        f"Open it on a machine with more memory than this one{of_machine}; in a container"
        f" raise its limit. {kind.remedy}"
    )


def content_bytes(num_bytes: int, head: bytes, end: bytes, kind: Kind) -> int:
    """How much is expected in a file, by its first bytes and its last ones.

    What is deflated says at its end how much it inflates to; that may be a lie, and is
    believed within bounds.
    """
    if head[: len(GZIP)] != GZIP:
        return num_bytes
    stated = int.from_bytes(end[-4:], "little")
    return max(kind.gzip_ratio * num_bytes, min(stated, _MAX_RATIO * num_bytes))


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


def give_way() -> None:
    """Let other processes of the machine go before this one."""
    with suppress(AttributeError, OSError):
        os.nice(_NICE)


def apply(limits: Limits) -> None:
    """Limit what this process takes from now on, as far as the system can.

    A process that reads one file after another is limited anew for each.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, num in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _MOST_OUTPUT),
        (resource.RLIMIT_NOFILE, _MOST_FILES),
        (resource.RLIMIT_CPU, math.ceil(time.process_time()) + limits.cpu_s),
        (resource.RLIMIT_AS, _address_space() + limits.memory_bytes),
    ):
        _, most = resource.getrlimit(kind)
        soft = num if most == resource.RLIM_INFINITY else min(num, most)
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (soft, most))


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
