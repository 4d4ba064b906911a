"""Pinned host memory as torch 2.14 records it: `host_segments` and `host_traces`.

A segment is one block, rounded up to a power of two; a free one serves the next request of
its size. Unlike `device_traces`, `host_traces` is one list of events.
"""

from __future__ import annotations

from typing import Any

HOST_BASE = 0x7F00_0000_0000


class PinnedMemory:
    """torch's allocator of pinned memory, and what it has recorded."""

    def __init__(self, time_us: int = 1_000) -> None:
        self.events: list[dict[str, Any]] = []
        self.time_us = time_us
        self.peak_bytes = 0
        """Of active blocks."""
        self._blocks: dict[int, dict[str, Any]] = {}

    def pin(self, num_bytes: int, frames: list[dict[str, Any]]) -> int:
        """Pin so much; its address."""
        size = 1 << (num_bytes - 1).bit_length()
        free = (
            address
            for address, block in self._blocks.items()
            if block["state"] == "inactive" and block["size"] == size
        )
        address = next(free, None)
        if address is None:
            address = HOST_BASE + sum(map(_size, self._blocks.values()))
            self._note("segment_alloc", address, size, frames)
        self._note("alloc", address, size, frames)
        self._blocks[address] = {
            "address": address,
            "size": size,
            "requested_size": size,
            "state": "active_allocated",
            "frames": frames,
        }
        self.peak_bytes = max(self.peak_bytes, self.active_bytes)
        return address

    def free(self, address: int, *, waits: bool = False) -> None:
        """Free it; `waits`: a copy still reads it."""
        block = self._blocks[address]
        self._note("free_requested", address, block["size"], [])
        block["state"] = "active_pending_free"
        if not waits:
            self._note("free_completed", address, block["size"], [])
            block.update(state="inactive", frames=[])

    @property
    def active_bytes(self) -> int:
        """Of blocks in use, or that wait."""
        blocks = self._blocks.values()
        return sum(block["size"] for block in blocks if block["state"] != "inactive")

    @property
    def reserved_bytes(self) -> int:
        """All that is pinned."""
        return sum(map(_size, self._blocks.values()))

    def keys(self) -> dict[str, Any]:
        """What it adds to a snapshot."""
        segments = [
            {
                "device": -1,
                "address": block["address"],
                "total_size": block["size"],
                "allocated_size": block["size"],
                "active_size": block["size"],
                "requested_size": block["size"],
                "stream": 0,
                "segment_type": "small",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": block["frames"],
                "blocks": [block],
            }
            for block in self._blocks.values()
        ]
        return {"host_segments": segments, "host_traces": self.events}

    def _note(
        self, action: str, address: int, size: int, frames: list[dict[str, Any]]
    ) -> None:
        self.time_us += 1
        event = {"action": action, "addr": address, "size": size, "stream": 0}
        event |= {"time_us": self.time_us, "frames": frames, "pool_id": (0, 0)}
        self.events.append(event | {"compile_context": "", "user_metadata": ""})


def _size(block: dict[str, Any]) -> int:
    return int(block["size"])
