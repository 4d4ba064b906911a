"""Free and used memory of the whole device, whoever uses it.

What torch's allocator does not know: the context, libraries, other processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.format.columns import DEVICE_FREE
from collector.sources.contract import FunctionSource, SourceInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.config import RecordConfig
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(name="device_free", cost="0.1 ms per sample")


def open_source(config: RecordConfig, device: Device) -> FunctionSource:
    """Open the driver's own account of the device.

    Raises:
        Unavailable: there is no accelerator.
    """
    if device.absent is not None:
        raise device.absent

    def sample() -> Sequence[int | None]:
        if device.backend is None or device.index is None or not device.in_use():
            return None, None, None
        known = device.backend.memory_info(device.index)
        if known is None:
            return None, None, None
        free, total = known
        return free, total, total - free

    return FunctionSource(
        info=INFO,
        columns=DEVICE_FREE,
        interval_seconds=config.device_free,
        sample=sample,
    )
