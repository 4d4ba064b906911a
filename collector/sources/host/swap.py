"""The host's swap space and how much of it is in use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.format.columns import SWAP
from collector.sources.contract import FunctionSource, SourceInfo, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.config import RecordConfig
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(name="swap", cost="0.05 ms per sample")

_MEMINFO: Final = Path("/proc/meminfo")


def open_source(config: RecordConfig, _device: Device) -> FunctionSource:
    """Open the host's swap figures.

    Raises:
        Unavailable: the host has no swap.
    """
    total, _ = _sample()
    if not total:
        raise Unavailable("this host has no swap")
    return FunctionSource(
        info=INFO,
        columns=SWAP,
        interval_seconds=config.swap,
        sample=_sample,
    )


def _sample() -> Sequence[int]:
    if _MEMINFO.exists():
        # psutil would warn where it finds no paging rates, which are not wanted here.
        return parsed(_MEMINFO.read_text(encoding="ascii"))
    import psutil

    swap = psutil.swap_memory()
    return swap.total, swap.used


def parsed(meminfo: str) -> tuple[int, int]:
    """Total and used swap bytes from the text of /proc/meminfo."""
    kib = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in meminfo.splitlines())
        if name in {"SwapTotal", "SwapFree"}
    }
    total = kib.get("SwapTotal", 0)
    return total * 1024, (total - kib.get("SwapFree", 0)) * 1024
