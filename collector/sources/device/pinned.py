"""Host memory held by torch's pinned allocator, which feeds asynchronous copies.

It cannot be swapped and is not given back, so a growing one starves the host. torch
rounds each block up to a power of two; these are the rounded sizes. Its peak counter
is the user's and never reset here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.format.columns import PINNED
from collector.sources.contract import FunctionSource, SourceInfo, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.config import RecordConfig
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(name="pinned", cost="0.02 ms per sample")

_NOTHING: Final = (None,) * len(PINNED)


def open_source(config: RecordConfig, device: Device) -> FunctionSource:
    """Open the statistics of CUDA's pinned allocator.

    Raises:
        Unavailable: no CUDA device, or a torch that does not count.
    """
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

    def sample() -> Sequence[int | None]:
        return picked(stats()) if device.in_use() else _NOTHING

    return FunctionSource(
        info=INFO,
        columns=PINNED,
        interval_seconds=config.pinned,
        sample=sample,
    )


def picked(stats: Mapping[str, Any]) -> Sequence[int | None]:
    """Bytes handed out, their peak, and bytes held, from torch's nested statistics.

    Newer torch calls what is handed out active and what is held allocated; in 2.8
    they were called allocated and reserved.
    """
    if "active_bytes" in stats:
        used, held = stats["active_bytes"], stats.get("allocated_bytes", {})
    else:
        used, held = stats.get("allocated_bytes", {}), stats.get("reserved_bytes", {})
    return used.get("current"), used.get("peak"), held.get("current")
