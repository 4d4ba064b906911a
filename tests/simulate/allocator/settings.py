"""Sizes of torch's caching allocator, and the settings that change them.

The numbers and the meaning of each setting are those torch documents for
`PYTORCH_CUDA_ALLOC_CONF` ("Memory management" in its CUDA semantics notes) and states in
its headers `c10/core/AllocatorConfig.h` and `c10/core/CachingDeviceAllocator.h`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any, Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

MIN_BLOCK_BYTES: Final = 512
SMALL_REQUEST_BYTES: Final = MIB
"""Largest block that the small pool serves."""
SMALL_SEGMENT_BYTES: Final = 2 * MIB
"""A segment, or a page of an expandable one, of the small pool."""
LARGE_SEGMENT_BYTES: Final = 20 * MIB
"""The same of the large pool, for blocks below `OWN_SEGMENT_BYTES`."""
OWN_SEGMENT_BYTES: Final = 10 * MIB
"""Blocks from here on get a segment of their own size ..."""
SEGMENT_GRAIN_BYTES: Final = 2 * MIB
"""... rounded up to this."""

UNLIMITED: Final = sys.maxsize
"""`max_split_bytes` where every block may be split."""

_NUM_INTERVALS: Final = 16
"""Of `roundup_power2_divisions`: 1 MiB, 2 MiB ... 32 GiB, and what lies above."""
_FIRST_INTERVAL_LOG2: Final = 20

_ENTRY: Final = re.compile(r"\s*([a-z0-9_]+)\s*:\s*(\[[^\]]*\]|[^,\[\]\s]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorSettings:
    """How the allocator was configured; the defaults are torch's."""

    text: str = ""
    """As it stood in `PYTORCH_CUDA_ALLOC_CONF`."""
    max_split_bytes: int = UNLIMITED
    """Blocks of this size and more are neither split nor lent to smaller requests."""
    max_non_split_rounding_bytes: int = 20 * MIB
    """A free block of `max_split_bytes` or more may exceed its request by less than this."""
    garbage_collection_threshold: float = 0.0
    """Share of the allowed memory above which old cached segments are given back; only
    where a memory fraction is set. 0: never."""
    roundup_power2_divisions: tuple[int, ...] = (0,) * _NUM_INTERVALS
    """Steps between two powers of two that sizes are rounded up to, by power of two from
    1 MiB on; 0 and 1: multiples of 512 bytes instead."""
    expandable_segments: bool = False

    def round_size(self, num_bytes: int) -> int:
        """Bytes a block has for a request of `num_bytes`."""
        interval = num_bytes.bit_length() - 1 - _FIRST_INTERVAL_LOG2
        index = min(max(interval, 0), _NUM_INTERVALS - 1)
        divisions = self.roundup_power2_divisions[index]
        if divisions > 1 and num_bytes > MIN_BLOCK_BYTES * divisions:
            # Not made a multiple of 512 again: above 512 x divisions each step is one.
            step = (1 << num_bytes.bit_length() - 1) // divisions
            return -(-num_bytes // step) * step
        return round_size(num_bytes)


DEFAULT_SETTINGS: Final = AllocatorSettings()


def parse_settings(text: str) -> AllocatorSettings:
    """Settings from the text of `PYTORCH_CUDA_ALLOC_CONF`.

    Of torch's settings those that change where blocks lie; others are kept as text only.
    """
    found: dict[str, Any] = {}
    for key, value in _ENTRY.findall(text):
        if key == "max_split_size_mb":
            found["max_split_bytes"] = int(value) * MIB
        elif key == "max_non_split_rounding_mb":
            found["max_non_split_rounding_bytes"] = int(value) * MIB
        elif key == "garbage_collection_threshold":
            found[key] = float(value)
        elif key == "roundup_power2_divisions":
            found[key] = _divisions(value)
        elif key == "expandable_segments":
            found[key] = value == "True"
    return AllocatorSettings(text=text, **found)


def round_size(num_bytes: int) -> int:
    """Bytes a block has for a request by default: a multiple of 512."""
    return max(MIN_BLOCK_BYTES, -(-num_bytes // MIN_BLOCK_BYTES) * MIN_BLOCK_BYTES)


def segment_size(size_bytes: int) -> int:
    """Bytes of the segment that is opened for a block of `size_bytes`."""
    if size_bytes <= SMALL_REQUEST_BYTES:
        return SMALL_SEGMENT_BYTES
    if size_bytes < OWN_SEGMENT_BYTES:
        return LARGE_SEGMENT_BYTES
    return -(-size_bytes // SEGMENT_GRAIN_BYTES) * SEGMENT_GRAIN_BYTES


def _divisions(value: str) -> tuple[int, ...]:
    """Divisions by interval, from one number or from `[256:1,512:2,>:4]`.

    The first key's value also holds for everything smaller, that of `>` for everything
    above the last key; a power of two that is not named keeps 0.
    """
    if not value.startswith("["):
        return (int(value),) * _NUM_INTERVALS
    divisions = [0] * _NUM_INTERVALS
    last = -1
    for place, pair in enumerate(value.strip("[]").split(",")):
        key, _, number = (part.strip() for part in pair.partition(":"))
        steps = int(number)
        if key == ">":
            divisions[last + 1 :] = [steps] * (_NUM_INTERVALS - last - 1)
            continue
        last = min(int(key).bit_length() - 1, _NUM_INTERVALS - 1)
        if place == 0:
            divisions[:last] = [steps] * last
        divisions[last] = steps
    return tuple(divisions)
