"""The training process as the system sees it, and its memory page by page.

Shared pages make the sum of all workers' resident memory too high; memory that is the
process's alone (USS), and its fair share of what it shares (PSS), do not. The system walks
the page tables for those: milliseconds, hence the slow pace.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from memboard.collector.core.source import Unavailable
from memboard.collector.format.columns import PROCESS, PROCESS_FULL
from memboard.collector.sources.source import Reader, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.sources.device.accelerator import Device

_ROLLUP: Final = Path("/proc/self/smaps_rollup")


def _open_process(_config: RecordConfig, _device: Device) -> Reader:
    """A share of the processors is in percent of one: 400 where four are busy."""
    import psutil

    process = psutil.Process()
    process.cpu_percent()  # the next call counts from here

    def sample() -> Sequence[int | float | None]:
        with process.oneshot():
            memory = process.memory_info()
            return (
                memory.rss,
                memory.vms,
                getattr(memory, "shared", None),  # macOS does not tell
                process.num_threads(),
                process.num_fds() if hasattr(process, "num_fds") else None,
                process.cpu_percent(),
            )

    return Reader(sample)


def _open_full(_config: RecordConfig, _device: Device) -> Reader:
    sample = _from_rollup if _ROLLUP.exists() else _from_psutil
    sample()
    return Reader(sample)


def _from_rollup() -> Sequence[int | None]:
    try:
        return uss_and_pss(_ROLLUP.read_text(encoding="ascii"))
    except PermissionError:
        raise _closed() from None


def _from_psutil() -> Sequence[int | None]:
    import psutil

    try:
        full = psutil.Process().memory_full_info()
    except (psutil.AccessDenied, NotImplementedError):
        raise _closed() from None
    uss = getattr(full, "uss", None)
    if uss is None:
        raise Unavailable("this system does not report a process's unique memory")
    return uss, getattr(full, "pss", None)


def _closed() -> Unavailable:
    return Unavailable(
        "the system does not let the process read its own page tables",
        "In a container, allow reading /proc/self/smaps_rollup.",
    )


def uss_and_pss(rollup: str) -> tuple[int, int]:
    """Bytes from the text of /proc/self/smaps_rollup."""
    kib = {"Private_Clean": 0, "Private_Dirty": 0, "Private_Hugetlb": 0, "Pss": 0}
    for line in rollup.splitlines():
        key, _, rest = line.partition(":")
        if key in kib:
            kib[key] += int(rest.split()[0])
    pss = kib.pop("Pss")
    return sum(kib.values()) * 1024, pss * 1024


SOURCES: Final = (
    Source(
        name="process",
        cost="0.1 ms per sample",
        columns=lambda _: PROCESS,
        open=_open_process,
        setting="process",
    ),
    Source(
        name="process_full",
        cost="7 ms per sample",
        columns=lambda _: PROCESS_FULL,
        open=_open_full,
        setting="process",
        times=60,
    ),
)
