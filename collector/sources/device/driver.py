"""Memory of the whole device, and of the host that torch has pinned for it.

Free memory is the driver's own account, whoever uses it: it holds what torch's allocator
does not know, the context, libraries, other processes. Pinned memory feeds asynchronous
copies; it cannot be swapped and is not given back, so a growing one starves the host.
torch rounds each pinned block up to a power of two; these are the rounded sizes. Its peak
counter is the user's and never reset here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.source import Unavailable
from memboard.collector.format.columns import DEVICE_FREE, PINNED
from memboard.collector.sources.source import Reader, Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.sources.device.accelerator import Device


def _open_free(_config: RecordConfig, device: Device) -> Reader:
    if device.absent is not None:
        raise device.absent

    def sample() -> Sequence[int | None]:
        if device.backend is None or device.index is None or not device.in_use():
            return None, None, None
        free_and_total = device.backend.memory_info(device.index)
        if free_and_total is None:
            return None, None, None
        free, total = free_and_total
        return free, total, total - free

    return Reader(sample)


def _open_pinned(_config: RecordConfig, device: Device) -> Reader:
    if device.absent is not None:
        raise device.absent
    if device.type != "cuda":
        raise Unavailable(
            f"torch counts pinned memory for CUDA only, not {device.type}"
        )
    import torch

    stats = getattr(torch._C, "_cuda_hostMemoryStats", None)  # noqa: SLF001
    if stats is None:
        raise Unavailable(
            f"torch {torch.__version__} does not count pinned memory",
            "Use torch 2.8 or newer.",
        )
    unknown = (None,) * len(PINNED)
    return Reader(lambda: pinned_of(stats()) if device.in_use() else unknown)


def pinned_of(stats: Mapping[str, Any]) -> Sequence[int | None]:
    """Bytes handed out, their peak, and bytes held, from torch's nested statistics.

    Newer torch calls what is handed out active and what is held allocated; in 2.8
    they were called allocated and reserved.
    """
    if "active_bytes" in stats:
        used, reserved = stats["active_bytes"], stats.get("allocated_bytes", {})
    else:
        used, reserved = (
            stats.get("allocated_bytes", {}),
            stats.get("reserved_bytes", {}),
        )
    return used.get("current"), used.get("peak"), reserved.get("current")


FREE: Final = Source(
    name="device_free",
    cost="0.1 ms per sample",
    columns=lambda _: DEVICE_FREE,
    open=_open_free,
    setting="gpu",
)

PINNED_SOURCE: Final = Source(
    name="pinned",
    cost="0.02 ms per sample",
    columns=lambda _: PINNED,
    open=_open_pinned,
    setting="gpu",
)
