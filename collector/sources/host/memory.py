"""The host's memory, and what the control group lets this job use of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.format.columns import MEMORY
from collector.sources.contract import FunctionSource, SourceInfo
from collector.sources.host.control_group import find_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.config import RecordConfig
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(name="memory", cost="0.1 ms per sample")


def open_source(config: RecordConfig, _device: Device) -> FunctionSource:
    """Open the host's memory figures; the limit is None where there is none."""
    import psutil

    group = find_group()

    def sample() -> Sequence[int | None]:
        host = psutil.virtual_memory()
        return (
            host.total,
            host.used,
            host.available,
            getattr(host, "cached", None),
            None if group is None else group.limit_bytes(),
            None if group is None else group.used_bytes(),
        )

    return FunctionSource(
        info=INFO,
        columns=MEMORY,
        interval_seconds=config.memory,
        sample=sample,
    )
