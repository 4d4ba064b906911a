"""Bytes and operations per second of all the host's disks together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.format.columns import DISK
from collector.sources.contract import FunctionSource, SourceInfo, Unavailable
from collector.sources.host.rates import Rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.config import RecordConfig
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(name="disk", cost="0.1 ms per sample")


def open_source(config: RecordConfig, _device: Device) -> FunctionSource:
    """Open the host's disk counters.

    Raises:
        Unavailable: the system shows no disk (some containers).
    """
    _counters()
    return FunctionSource(
        info=INFO,
        columns=DISK,
        interval_seconds=config.disk,
        sample=Rates(_counters),
    )


def _counters() -> Sequence[int]:
    import psutil

    # psutil's own guard against wrapping keeps state that the user's calls share.
    now = psutil.disk_io_counters(perdisk=False, nowrap=False)
    if now is None:
        raise Unavailable(
            "the system shows no disk counters here",
            "In a container, let /proc/diskstats be seen.",
        )
    return now.read_bytes, now.write_bytes, now.read_count + now.write_count
