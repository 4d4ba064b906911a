"""The training process as the system sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.format.columns import PROCESS
from collector.sources.contract import FunctionSource, SourceInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.config import RecordConfig
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(name="process", cost="0.1 ms per sample")


def open_source(config: RecordConfig, _device: Device) -> FunctionSource:
    """Open this process's own figures.

    A share of the processors is in percent of one: 400 where four are busy.
    """
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

    return FunctionSource(
        info=INFO,
        columns=PROCESS,
        interval_seconds=config.process,
        sample=sample,
    )
