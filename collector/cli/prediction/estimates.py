"""What takes memory of the device outside of torch's allocator: ranges, and their source.

The virtual GPU allocates none of it, and nobody knows it before it is measured on the very
machine. So each is a range whose ends are both possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.running.plan import Outcome
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


class Estimate(NamedTuple):
    """Of one item on one device; bytes."""

    name: str
    low: int
    high: int
    source: str


def estimates_of(
    device: Device, outcome: Outcome, outside_bytes: int | None
) -> tuple[Estimate, ...]:
    """What a process holds outside of torch's allocator.

    `outside_bytes`: as measured on a real device; it takes the place of all estimates.
    """
    if outside_bytes is not None:
        return (Estimate("measured", outside_bytes, outside_bytes, "--outside"),)
    return tuple(_estimates(device, outcome))


def _estimates(device: Device, outcome: Outcome) -> Iterator[Estimate]:
    low, high = device.context_bytes
    yield Estimate("CUDA context and kernels", low, high, device.context_source)
    if number := outcome.num_communicators:
        each = [
            channels * connections * _NCCL_BYTES
            for channels, connections in zip(
                _NCCL_CHANNELS, _NCCL_CONNECTIONS, strict=True
            )
        ]
        name = f"NCCL, {number} communicator{'s' * (number != 1)}"
        yield Estimate(name, number * each[0], number * each[1], _NCCL_SOURCE)
