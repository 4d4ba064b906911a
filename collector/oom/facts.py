"""Facts about memory at the moment it has run out, each looked up by itself.

A fact that cannot be had is None; none of these raises, and none allocates on the device.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.collector.core import guard
from memboard.collector.core.source import TORCH_ERRORS
from memboard.collector.format.oom import (
    HOST,
    LAST_STEP,
    MAX_FRAMES,
    MAX_HOLDERS,
    MEMORY,
)
from memboard.collector.process.exit_code import main_frame
from memboard.collector.writing import header

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType, TracebackType

    from memboard.collector.format.oom import Frame
    from memboard.collector.history.tensors import Tensors
    from memboard.collector.oom.torch_side import TorchSide
    from memboard.collector.sources.device.accelerator import Device

_STATISTICS: Final = {
    "allocated_bytes": ("allocated_bytes", "current"),
    "allocated_peak_bytes": ("allocated_bytes", "peak"),
    "active_bytes": ("active_bytes", "current"),
    "active_peak_bytes": ("active_bytes", "peak"),
    "reserved_bytes": ("reserved_bytes", "current"),
    "reserved_peak_bytes": ("reserved_bytes", "peak"),
    "inactive_split_bytes": ("inactive_split_bytes", "current"),
    "requested_live_bytes": ("requested_bytes", "current"),
    "num_allocations": ("allocation", "allocated"),
}
"""By our key: torch's statistic, of all pools, and which figure of it."""

_SETTINGS_VARIABLES: Final = (
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
)

_OURS: Final = (str(Path(__file__).parent), guard.__file__)
_MAX_TEXT: Final = 500
_MAX_BLOCKS: Final = 500_000
"""Live blocks that are looked at: half a second's work."""


def memory_of(device: Device, index: int | None) -> dict[str, int | None] | None:
    """Counters of a device by the keys of `MEMORY`; None: it is not in use."""
    with suppress(*TORCH_ERRORS):
        if device.backend is None or index is None or not device.in_use():
            return None
        stats = device.backend.stats(index)
        figures: dict[str, int | None] = dict.fromkeys(MEMORY)
        for key, (statistic, figure) in _STATISTICS.items():
            figures[key] = _whole(stats.get(statistic, {}).get("all", {}).get(figure))
        for key in ("num_alloc_retries", "num_ooms"):
            figures[key] = _whole(stats.get(key))
        return figures
    return None


def memory_info(device: Device, index: int | None) -> tuple[int | None, int | None]:
    """Free and total bytes of a device, whoever uses it."""
    with suppress(*TORCH_ERRORS):
        if device.backend is not None and index is not None and device.in_use():
            free_and_total = device.backend.memory_info(index)
            if free_and_total is not None:
                return free_and_total
    return None, None


def host_memory() -> dict[str, int | None]:
    """The process's and the host's memory by the keys of `HOST`."""
    figures: dict[str, int | None] = dict.fromkeys(HOST)
    limit, total = header.host_memory()
    figures["memory_limit_bytes"], figures["memory_total_bytes"] = limit, total
    with suppress(OSError):
        import psutil

        figures["rss_bytes"] = int(psutil.Process().memory_info().rss)
        figures["memory_available_bytes"] = int(psutil.virtual_memory().available)
    return figures


def last_step(values: Mapping[str, Any] | None) -> dict[str, int | None] | None:
    """What of a step's row the report repeats; None before the first."""
    if values is None:
        return None
    return {name: _whole(values.get(name)) for name in LAST_STEP}


def allocator_facts(side: TorchSide | None) -> dict[str, Any]:
    """The allocator's settings, which one it is, and what of both torch says itself."""
    texts = (os.environ.get(variable, "") for variable in _SETTINGS_VARIABLES)
    settings, backend = next(filter(None, texts), ""), None
    if side is not None and side.in_use():
        with suppress(*TORCH_ERRORS):
            backend = None if side.backend is None else str(side.backend())
        with suppress(*TORCH_ERRORS):
            settings = (str(side.settings()) if side.settings else "") or settings
    return {"settings": settings, "backend": backend, **_parsed(settings)}


def _parsed(text: str) -> dict[str, Any]:
    """What of the settings a reader asks for most; None where they do not say."""
    entries = dict(
        part.split(":", 1) for part in text.replace(" ", "").split(",") if ":" in part
    )
    expandable = entries.get("expandable_segments")
    settings: dict[str, Any] = {
        "expandable_segments": None
        if expandable is None
        else expandable.lower() == "true",
        "max_split_size_bytes": None,
        "garbage_collection_threshold": None,
    }
    with suppress(ValueError, KeyError):
        settings["max_split_size_bytes"] = int(entries["max_split_size_mb"]) << 20
    with suppress(ValueError, KeyError):
        threshold = float(entries["garbage_collection_threshold"])
        settings["garbage_collection_threshold"] = threshold
    return settings


# Stacks, innermost frame first.


def calling_frames() -> list[Frame]:
    """This thread's, without our own at its inner end."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # the public way is slower
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return _frames(frame)


def main_frames() -> list[Frame] | None:
    """The main thread's, where this is another one."""
    if threading.current_thread() is threading.main_thread():
        return None
    return _frames(main_frame())


def traceback_frames(traceback: TracebackType | None) -> list[Frame]:
    """Where an exception was raised, and through what it came."""
    frames: list[Frame] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(_frame(code, traceback.tb_lineno))
        traceback = traceback.tb_next
    return frames[::-1][:MAX_FRAMES]


def _frames(frame: FrameType | None) -> list[Frame]:
    frames: list[Frame] = []
    while frame is not None and len(frames) < MAX_FRAMES:
        frames.append(_frame(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return frames


def _frame(code: Any, line: int | None) -> Frame:
    function = getattr(code, "co_qualname", code.co_name)  # Python 3.11 and newer
    return str(function)[:_MAX_TEXT], str(code.co_filename)[:_MAX_TEXT], line or 0


# Who holds the memory.


class Holders(NamedTuple):
    """Live blocks of one device by the stack that allocated them."""

    live_bytes: int
    """Of all blocks looked at, rounded as the allocator does."""
    num_blocks: int
    rows: list[tuple[int, int, list[Frame], int]]
    """Bytes, blocks, frames and category of the largest, most bytes first."""
    is_whole: bool
    """Whether all live blocks were looked at."""


def holders_of(
    segments: list[dict[str, Any]], device: int | None, tensors: Tensors | None
) -> Holders:
    """Live blocks by stack; `device` None: of all devices."""
    categories = (
        {} if tensors is None else dict(zip(tensors.address, tensors.category))  # noqa: B905
    )
    by_stack: dict[tuple[int, ...], list[Any]] = {}
    live_bytes = num_blocks = 0
    for segment in segments:
        if device is not None and segment.get("device") != device:
            continue
        for block in segment.get("blocks", ()):
            if block.get("state") == "inactive":
                continue
            if num_blocks >= _MAX_BLOCKS:
                return Holders(
                    live_bytes, num_blocks, _largest(by_stack), is_whole=False
                )
            frames = block.get("frames") or ()
            # Frames are shared between the stacks of one snapshot, so identity will do.
            key = tuple(map(id, frames))
            category = categories.get(block.get("address"), -1)
            entry = by_stack.get(key)
            if entry is None:
                entry = by_stack[key] = [0, 0, frames, category]
            size = block.get("size", 0)
            entry[0] += size
            entry[1] += 1
            if entry[3] != category:
                entry[3] = -1
            live_bytes += size
            num_blocks += 1
    return Holders(live_bytes, num_blocks, _largest(by_stack), is_whole=True)


def _largest(
    by_stack: Mapping[tuple[int, ...], list[Any]],
) -> list[tuple[int, int, list[Frame], int]]:
    most = sorted(by_stack.values(), key=lambda entry: -entry[0])[:MAX_HOLDERS]
    return [
        (size, blocks, [_plain_frame(frame) for frame in frames], category)
        for size, blocks, frames, category in most
    ]


def _plain_frame(frame: Any) -> Frame:
    function, filename = str(frame.get("name", "")), str(frame.get("filename", ""))
    return function[:_MAX_TEXT], filename[:_MAX_TEXT], _whole(frame.get("line")) or 0


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and value == value else None  # noqa: PLR0124
