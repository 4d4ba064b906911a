"""Memory that is the process's alone (USS), and its fair share of what it shares (PSS).

Shared pages make the sum of all workers' resident memory too high; these do not. The
system walks the page tables for them: milliseconds, hence the slow pace.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.format.columns import PROCESS_FULL
from collector.sources.contract import FunctionSource, SourceInfo, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.config import RecordConfig
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(name="process_full", cost="7 ms per sample")

_ROLLUP: Final = Path("/proc/self/smaps_rollup")


def open_source(config: RecordConfig, _device: Device) -> FunctionSource:
    """Open the process's page table totals.

    Raises:
        Unavailable: the system does not tell.
    """
    sample = _from_rollup if _ROLLUP.exists() else _from_psutil
    sample()
    return FunctionSource(
        info=INFO,
        columns=PROCESS_FULL,
        interval_seconds=config.process_full,
        sample=sample,
    )


def _from_rollup() -> Sequence[int | None]:
    try:
        return parsed(_ROLLUP.read_text(encoding="ascii"))
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
        raise Unavailable("this system does not tell a process's unique memory")
    return uss, getattr(full, "pss", None)


def _closed() -> Unavailable:
    return Unavailable(
        "the system does not let the process read its own page tables",
        "In a container, allow reading /proc/self/smaps_rollup.",
    )


def parsed(rollup: str) -> tuple[int, int]:
    """USS and PSS bytes from the text of /proc/self/smaps_rollup."""
    kib = {"Private_Clean": 0, "Private_Dirty": 0, "Private_Hugetlb": 0, "Pss": 0}
    for line in rollup.splitlines():
        name, _, rest = line.partition(":")
        if name in kib:
            kib[name] += int(rest.split()[0])
    pss = kib.pop("Pss")
    return sum(kib.values()) * 1024, pss * 1024
