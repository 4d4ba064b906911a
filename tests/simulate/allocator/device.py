"""The device below the allocator: how much memory there is, and at which addresses."""

from __future__ import annotations

from typing import Final

from tests.simulate.allocator.settings import SEGMENT_GRAIN_BYTES

_BASE_ADDRESS: Final = 0x7F00_0000_0000


class DeviceMemory:
    """Memory of one device as one process sees it.

    `non_torch_bytes` may be set at any time: CUDA contexts, communication buffers and
    other processes take memory that no allocator statistic shows.
    """

    __slots__ = (
        "_next_address",
        "_vacant",
        "allowed_bytes",
        "non_torch_bytes",
        "num_device_alloc",
        "num_device_free",
        "reserved_bytes",
        "total_bytes",
    )

    def __init__(
        self,
        total_bytes: int,
        *,
        non_torch_bytes: int = 0,
        memory_fraction: float | None = None,
    ) -> None:
        """`memory_fraction`: as given to `set_per_process_memory_fraction`; None: not."""
        self.total_bytes = total_bytes
        self.non_torch_bytes = non_torch_bytes
        self.allowed_bytes = (
            None if memory_fraction is None else int(memory_fraction * total_bytes)
        )
        """What the process may reserve; None: no limit of its own."""
        self.reserved_bytes = 0
        self.num_device_alloc = 0
        self.num_device_free = 0
        self._next_address = _BASE_ADDRESS
        self._vacant: dict[int, list[int]] = {}

    @property
    def free_bytes(self) -> int:
        """What `mem_get_info` calls free; never negative."""
        return max(0, self.total_bytes - self.non_torch_bytes - self.reserved_bytes)

    def allows(self, num_bytes: int) -> bool:
        """Whether the process may reserve so much more, free or not."""
        allowed = self.allowed_bytes
        return allowed is None or self.reserved_bytes + num_bytes <= allowed

    def allocate(self, num_bytes: int) -> int | None:
        """Reserve memory; its address, or None where the device has not enough.

        An address given back serves the next request of its size, as drivers do.
        """
        if num_bytes > self.free_bytes:
            return None
        self.reserved_bytes += num_bytes
        self.num_device_alloc += 1
        vacant = self._vacant.get(num_bytes)
        return vacant.pop() if vacant else self.reserve_addresses(num_bytes)

    def free(self, address: int, num_bytes: int) -> None:
        """Give back what `allocate` gave."""
        self.reserved_bytes -= num_bytes
        self.num_device_free += 1
        self._vacant.setdefault(num_bytes, []).append(address)

    def reserve_addresses(self, num_bytes: int) -> int:
        """Addresses that nothing else has; no memory."""
        address = self._next_address
        self._next_address += -(-num_bytes // SEGMENT_GRAIN_BYTES) * SEGMENT_GRAIN_BYTES
        return address

    def map(self, num_bytes: int) -> bool:
        """Put memory behind reserved addresses; False where there is not enough."""
        if num_bytes > self.free_bytes:
            return False
        self.reserved_bytes += num_bytes
        self.num_device_alloc += 1
        return True

    def unmap(self, num_bytes: int) -> None:
        """Take it away again."""
        self.reserved_bytes -= num_bytes
        self.num_device_free += 1
