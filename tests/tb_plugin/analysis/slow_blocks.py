"""The blocks of a dumped history, walked event by event."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
LIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")


def rounded(size: int) -> int:
    return -(-size // 512) * 512


@dataclass
class SlowBlock:
    address: int
    size: int
    born: int  # event; -1: before the first
    freed: int | None = None
    gone: int | None = None
    has_rest: bool = False


class SlowBlocks:
    """Of one device: from what the end shows back to before the first event, and on.

    A block that the end shows is as large as there, others are as requested, rounded, and
    in a large segment reach to what lives behind them, if that is at most 1 MiB away.
    """

    def __init__(self, dump: dict[str, Any], place: int = 0) -> None:
        self.trace = dump["device_traces"][place] if dump["device_traces"] else []
        settings = dump.get("allocator_settings") or {}
        self._limit = settings.get("max_split_size", -1)
        own = [one for one in dump["segments"] if one["device"] == place]
        self.recorded: dict[int, tuple[int, str]] = {}
        for segment in own:
            address = segment["address"]
            for block in segment["blocks"]:
                if block["state"] in LIVE:
                    start = block.get("address", address)
                    self.recorded[start] = (block["size"], block["state"])
                address += block["size"]
        self._segments = {
            one["address"]: one["total_size"]
            for one in own
            if not one.get("is_expandable")
        }
        self._live = {address: self._before(address) for address in self.recorded}
        self._walk_back()
        self.blocks = list(self._live.values())
        self._starts = sorted(self._live)
        for block in self.blocks:
            self._stretch(block)
        for number, event in enumerate(self.trace):
            self._step(number, event)
        for address, block in self._live.items():
            if address in self.recorded:
                block.size, state = self.recorded[address]
                if state != LIVE[0] and block.freed is None:
                    block.freed = -1

    def _before(self, address: int, size: int = 0) -> SlowBlock:
        return SlowBlock(address, size or self.recorded[address][0], -1)

    def _walk_back(self) -> None:
        """To what lived and was reserved before the first event."""
        for event in reversed(self.trace):
            address, size = event.get("addr", 0), event["size"]
            match event["action"]:
                case "alloc":
                    self._live.pop(address, None)
                case "free_completed":
                    self._live[address] = self._before(address, rounded(size))
                case "segment_alloc":
                    self._segments.pop(address, None)
                case "segment_free":
                    self._segments[address] = size

    def _step(self, number: int, event: dict[str, Any]) -> None:
        address, size = event.get("addr", 0), event["size"]
        match event["action"]:
            case "alloc":
                block = SlowBlock(address, rounded(size), number)
                self.blocks.append(block)
                self._live[address] = block
                insort(self._starts, address)
                self._stretch(block)
                in_front = bisect_left(self._starts, address) - 1
                if in_front >= 0:
                    before = self._live[self._starts[in_front]]
                    if before.born < 0:  # only now it shows how far it reaches
                        self._stretch(before)
            case "free_requested":
                if address in self._live:
                    self._live[address].freed = number
            case "free_completed":
                if address in self._live:
                    self._live.pop(address).gone = number
                    del self._starts[bisect_left(self._starts, address)]
            case "segment_alloc":
                self._segments[address] = size
            case "segment_free":
                self._segments.pop(address, None)

    def _stretch(self, block: SlowBlock) -> None:
        segment = [
            start + size
            for start, size in self._segments.items()
            if start <= block.address < start + size and size > 2 * MIB
        ]
        if block.has_rest or block.size <= MIB or not segment:
            return
        behind = bisect_right(self._starts, block.address)
        until = min([*self._starts[behind : behind + 1], *segment])
        rest = until - block.address - block.size
        is_never_split = 0 < self._limit <= block.size
        if 0 < rest <= MIB or (is_never_split and rest > 0):
            block.size += rest
            block.has_rest = True

    def levels(self, *, active: bool) -> list[int]:
        """Bytes before the first event, and after each."""
        writes_request = any(e["action"] == "free_requested" for e in self.trace)
        change = [0] * (len(self.trace) + 1)
        for block in self.blocks:
            end = block.gone if active or not writes_request else block.freed
            if not active and writes_request and end is None and block.gone is not None:
                end = -1  # requested before the first event
            change[block.born + 1] += block.size
            if end is not None:
                change[end + 1] -= block.size
        for number in range(1, len(change)):
            change[number] += change[number - 1]
        return change
