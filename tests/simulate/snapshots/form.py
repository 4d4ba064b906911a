"""Keys of a snapshot by torch's version, and its parts but for the events.

torch 2.1 has segments and events without times; 2.2 brought `time_us`, then came
`allocator_settings`, with 2.5 `external_annotations`, with 2.8 `compile_context`, with
2.10 `user_metadata`; 2.13 documents `pool_id`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tests.simulate.allocator.blocks import NO_SITE
from tests.simulate.allocator.settings import UNLIMITED
from tests.simulate.allocator.stats import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.simulate.allocator.allocator import CachingAllocator
    from tests.simulate.allocator.blocks import Block, Segment
    from tests.simulate.allocator.settings import AllocatorSettings
    from tests.simulate.history.history import History

    FramesOf: TypeAlias = Callable[[int, int], Any]
    """The list of frames of a capture at a site, or what stands for it."""

TorchVersion: TypeAlias = Literal["2.1", "2.6", "2.11", "2.13"]
Context: TypeAlias = Literal["all", "alloc", "state"]
"""Which entries have frames: as given to `_record_memory_history(context=...)`."""

_SIDE_STREAM: Final = 0x55D0_C0DE_1000
"""torch shows the pointer of a stream; the default one's is 0."""
_STREAM_STRIDE: Final = 0x250


@dataclass(frozen=True, slots=True)
class Form:
    """Key set of one torch version."""

    torch: TorchVersion = "2.13"
    context: Context = "all"

    @property
    def has_times(self) -> bool:
        """`time_us`, `allocator_settings` and `external_annotations`."""
        return self.torch != "2.1"

    @property
    def has_metadata(self) -> bool:
        """`compile_context` and `user_metadata`."""
        return self.torch in ("2.11", "2.13")

    @property
    def has_pool_ids(self) -> bool:
        """`pool_id` of events."""
        return self.torch == "2.13"

    def has_frames(self, action: str) -> bool:
        """Whether entries of this action were recorded with their stack."""
        if action == "snapshot" or self.context == "state":
            return False
        return self.context == "all" or not action.startswith("free")


def stream_pointer(stream: int) -> int:
    """The number torch shows for a stream of the model's."""
    return stream and _SIDE_STREAM + stream * _STREAM_STRIDE


def segments_of(
    allocator: CachingAllocator, device: int, frames_of: FramesOf
) -> Iterator[dict[str, Any]]:
    """The `segments` of one device, by address."""
    for address in sorted(allocator.segments):
        segment = allocator.segments[address]
        for run in segment.mapped_runs():
            yield _segment(segment, run, device, frames_of)


def settings_of(settings: AllocatorSettings, torch: TorchVersion) -> dict[str, Any]:
    """`allocator_settings`, in torch's order."""
    unlimited = settings.max_split_bytes == UNLIMITED
    found: dict[str, Any] = {
        "PYTORCH_CUDA_ALLOC_CONF": settings.text,
        "max_split_size": -1 if unlimited else settings.max_split_bytes,
        "garbage_collection_threshold": float(settings.garbage_collection_threshold),
        "expandable_segments": settings.expandable_segments,
        "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False,
    }
    if torch != "2.6":
        found["graph_capture_record_stream_reuse"] = False
    found["roundup_power2_divisions"] = {
        str(1 << place): steps
        for place, steps in enumerate(settings.roundup_power2_divisions)
    }
    return found


def annotations_of(histories: Mapping[int, History]) -> list[dict[str, Any]]:
    """`external_annotations` of several devices, in the order of time."""
    rows: list[dict[str, Any]] = [
        {
            "stage": entry.stage,
            "name": entry.name,
            "device": device,
            "time_us": entry.time_us,
        }
        for device, history in histories.items()
        for entry in history.annotations
    ]
    rows.sort(key=lambda row: row["time_us"])
    return rows


def _segment(
    segment: Segment, run: list[Block], device: int, frames_of: FramesOf
) -> dict[str, Any]:
    active = [block for block in run if not block.is_free]
    site = segment.site if run[0] is segment.first else NO_SITE
    return {
        "device": device,
        "address": run[0].address,
        "total_size": sum(block.size_bytes for block in run),
        "allocated_size": sum(block.size_bytes for block in run if block.allocated),
        "active_size": sum(block.size_bytes for block in active),
        "requested_size": sum(block.requested_bytes for block in active),
        "stream": stream_pointer(segment.stream),
        "segment_type": "small" if segment.pool == SMALL else "large",
        "segment_pool_id": segment.arena.pool_id,
        "is_expandable": segment.page_bytes > 0,
        "frames": frames_of(segment.capture, site),
        "blocks": [_block(block, frames_of) for block in run],
    }


def _block(block: Block, frames_of: FramesOf) -> dict[str, Any]:
    if block.is_free:
        state, frames = "inactive", frames_of(0, NO_SITE)
    else:
        state = "active_allocated" if block.allocated else "active_pending_free"
        frames = frames_of(block.capture, block.site)
    return {
        "address": block.address,
        "size": block.size_bytes,
        "requested_size": block.requested_bytes,
        "state": state,
        "frames": frames,
    }
