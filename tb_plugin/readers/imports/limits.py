"""How much memory and time the reading of one file may take.

A small file that needs much is hostile or hides a fault of ours, so the limits grow with
the file, up to a cap that no real one needs.
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from tb_plugin.readers.imports.kinds import MIB, SNAPSHOT

if TYPE_CHECKING:
    from tb_plugin.readers.imports.kinds import Kind

__all__ = ["GZIP", "MIB", "Limits", "apply", "ensure_room"]

GZIP: Final = b"\x1f\x8b"
"""The first bytes of what is deflated."""

_MOST_CPU_S: Final = 1800.0

_NICE: Final = 5
"""A page that waits for this is not to wait long, but others come first."""
_MOST_OUTPUT: Final = 16 << 30
_MOST_FILES: Final = 64


class Limits(NamedTuple):
    """Of one worker process."""

    memory_bytes: int
    """Address space beyond what the interpreter and its modules take."""
    cpu_s: int
    wall_s: float

    @classmethod
    def of(cls, num_bytes: int, *, deflated: bool, kind: Kind = SNAPSHOT) -> Limits:
        """The limits for a file of so many bytes."""
        content = num_bytes * (kind.gzip_ratio if deflated else 1)
        cpu_s = min(_MOST_CPU_S, kind.cpu_s + kind.cpu_s_per_byte * content)
        memory = kind.memory_bytes + int(kind.memory_per_byte * content)
        memory = min(kind.most_memory_bytes, memory)
        # Others may want the processors too: the wall clock only catches what hangs.
        return cls(memory, round(cpu_s), 4 * cpu_s + 30)


def apply(limits: Limits) -> None:
    """Limit this process; where the system cannot, the wall clock remains."""
    import os

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
