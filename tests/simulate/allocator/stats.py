"""Byte counters of an allocator: current and peak, in total and by pool."""

from __future__ import annotations

from typing import Final

from memboard.collector.format.columns import DEVICE_STATS

ALLOCATED: Final = 0
ACTIVE: Final = 1
RESERVED: Final = 2
INACTIVE_SPLIT: Final = 3
REQUESTED: Final = 4

TOTAL: Final = 0
SMALL: Final = 1
LARGE: Final = 2

_NUM_STATS: Final = len(DEVICE_STATS)


class ByteStats:
    """The five byte statistics of torch's allocator, three times: total and by pool.

    Values lie flat, pool by pool: `pool * 5 + stat`.
    """

    __slots__ = ("current", "peak")

    def __init__(self) -> None:
        self.current = [0] * (_NUM_STATS * 3)
        self.peak = [0] * (_NUM_STATS * 3)

    def add(self, pool: int, stat: int, amount_bytes: int) -> None:
        """Change one statistic of `pool` and of the total; peaks follow."""
        current, peak = self.current, self.peak
        value = current[stat] + amount_bytes
        current[stat] = value
        peak[stat] = max(peak[stat], value)
        index = pool * _NUM_STATS + stat
        value = current[index] + amount_bytes
        current[index] = value
        peak[index] = max(peak[index], value)

    def take(
        self, pool: int, size_bytes: int, requested_bytes: int, split_change: int
    ) -> None:
        """A block of `pool` becomes live; inactive_split changes by `split_change`.

        The same as four calls of `add`, in a fifth of the time: every simulated
        allocation passes here.
        """
        current, peak = self.current, self.peak
        for base in (0, pool * _NUM_STATS):
            value = current[base] + size_bytes
            current[base] = value
            peak[base] = max(peak[base], value)
            value = current[base + ACTIVE] + size_bytes
            current[base + ACTIVE] = value
            peak[base + ACTIVE] = max(peak[base + ACTIVE], value)
            value = current[base + REQUESTED] + requested_bytes
            current[base + REQUESTED] = value
            peak[base + REQUESTED] = max(peak[base + REQUESTED], value)
            if split_change:
                value = current[base + INACTIVE_SPLIT] + split_change
                current[base + INACTIVE_SPLIT] = value
                peak[base + INACTIVE_SPLIT] = max(peak[base + INACTIVE_SPLIT], value)

    def give(
        self,
        pool: int,
        allocated_bytes: int,
        active_bytes: int,
        requested_bytes: int,
        split_change: int,
    ) -> None:
        """Bytes of `pool` are live, active or requested no more."""
        current, peak = self.current, self.peak
        for base in (0, pool * _NUM_STATS):
            current[base] -= allocated_bytes
            current[base + ACTIVE] -= active_bytes
            current[base + REQUESTED] -= requested_bytes
            if split_change:
                value = current[base + INACTIVE_SPLIT] + split_change
                current[base + INACTIVE_SPLIT] = value
                peak[base + INACTIVE_SPLIT] = max(peak[base + INACTIVE_SPLIT], value)

    def get(self, stat: int, pool: int = TOTAL) -> int:
        """Current bytes."""
        return self.current[pool * _NUM_STATS + stat]

    def get_peak(self, stat: int, pool: int = TOTAL) -> int:
        """Highest bytes so far."""
        return self.peak[pool * _NUM_STATS + stat]
