"""What takes memory of the device outside of torch's allocator: ranges, and their source.

The virtual GPU allocates none of it, and nobody knows it before it is measured on the very
machine. So each is a range whose ends are both possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.format.prediction import Estimate

if TYPE_CHECKING:
    from collector.virtual.devices import Device

_MIB: Final = 1 << 20

_NCCL_CHANNELS: Final = (2, 32)
_NCCL_CONNECTIONS: Final = (2, 5)
"""Of one channel: a ring has two, two trees three more."""
_NCCL_BYTES: Final = 10 * _MIB
"""Of the buffers of one connection."""
_NCCL_SOURCE: Final = (
    "2 to 32 channels with 2 to 5 connections, 10 MiB of buffers each (seen in NCCL's own"
    " log, github.com/NVIDIA/nccl/issues/1685; 1.6 GB in issues/864)"
)


def estimates_of(
    device: Device, outside_bytes: int | None
) -> tuple[list[Estimate], Estimate | None]:
    """What a process holds outside of torch's allocator, and each communicator beside.

    `outside_bytes`: as measured on a real device; it takes the place of all estimates.
    """
    if outside_bytes is not None:
        name = "outside torch, measured"
        return [Estimate(name, outside_bytes, outside_bytes, "--outside")], None
    low, high = (
        channels * connections * _NCCL_BYTES
        for channels, connections in zip(_NCCL_CHANNELS, _NCCL_CONNECTIONS, strict=True)
    )
    context = Estimate(
        "CUDA context and kernels", *device.context_bytes, device.context_source
    )
    return [context], Estimate("NCCL", low, high, _NCCL_SOURCE)
