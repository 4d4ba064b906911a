"""The dictionary that `torch.cuda.memory._snapshot` gives, of the model's devices."""

from __future__ import annotations

import gzip
import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from tests.oom_cases.allocator import Block, Device, Segment

# The events' keys by the release that wrote them first.
COMPILE_CONTEXT, USER_METADATA, POOL_ID = (2, 8), (2, 10), (2, 13)


def snapshot(
    devices: list[Device],
    *,
    version: tuple[int, int],
    annotations: list[dict[str, Any]] | None = None,
    max_entries: int | None = None,
    context: str = "all",
    conf: str = "",
    host: Device | None = None,
) -> dict[str, Any]:
    """Make a snapshot as this release of torch would write it.

    `max_entries` is the ring's size; `context` is what the recording was started with:
    "all", "alloc" (frees have no stack) or "" (no stack at all).
    """
    made: dict[str, Any] = {
        "segments": [
            _segment(segment, device.index, context)
            for device in devices
            for segment in sorted(device.segments, key=lambda s: s.address)
        ],
        "device_traces": [
            [_event(event, version, context) for event in _ring(device, max_entries)]
            for device in devices
        ],
        "allocator_settings": _settings(version, conf),
        "external_annotations": annotations or [],
    }
    if host is not None:
        segments = sorted(host.segments, key=lambda s: s.address)
        events = _ring(host, max_entries)
        made["host_segments"] = [_segment(s, -1, context) for s in segments]
        made["host_traces"] = [[_event(e, version, context) for e in events]]
    return made


def write(made: dict[str, Any], path: Path) -> None:
    """Write as `_dump_snapshot` does; gzipped where the name says so."""
    data = pickle.dumps(made, protocol=4)
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)


def _ring(device: Device, max_entries: int | None) -> list[dict[str, Any]]:
    return device.events if max_entries is None else device.events[-max_entries:]


def _event(
    event: dict[str, Any], version: tuple[int, int], context: str
) -> dict[str, Any]:
    frames = event.get("frames")
    made = {k: v for k, v in event.items() if k not in {"frames", "pool_id"}}
    if version >= COMPILE_CONTEXT:
        made["compile_context"] = "N/A"
    if version >= USER_METADATA:
        made["user_metadata"] = ""
    if version >= POOL_ID:
        made["pool_id"] = event["pool_id"]
    is_free = event["action"].startswith("free")
    if frames is not None and (context == "all" or (context and not is_free)):
        made["frames"] = frames
    return made


def _block(block: Block, context: str) -> dict[str, Any]:
    return {
        "address": block.address,
        "size": block.size,
        "requested_size": block.requested,
        "state": block.state,
        "frames": block.frames if block.frames and context else [],
    }


def _segment(segment: Segment, device: int, context: str) -> dict[str, Any]:
    held = [b for b in segment.blocks if b.state == "active_allocated"]
    active = [b for b in segment.blocks if b.state != "inactive"]
    return {
        "device": device,
        "address": segment.address,
        "total_size": segment.size,
        "allocated_size": sum(b.size for b in held),
        "active_size": sum(b.size for b in active),
        "requested_size": sum(b.requested for b in active),
        "stream": segment.stream,
        "segment_type": "small" if segment.small else "large",
        "segment_pool_id": segment.pool,
        "is_expandable": False,
        "frames": segment.frames if segment.frames and context else [],
        "blocks": [_block(b, context) for b in segment.blocks],
    }


def _settings(version: tuple[int, int], conf: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "PYTORCH_CUDA_ALLOC_CONF": conf,
        "max_split_size": -1,
        "garbage_collection_threshold": 0.0,
        "expandable_segments": False,
        "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False,
    }
    if version >= COMPILE_CONTEXT:
        made["graph_capture_record_stream_reuse"] = False
    made["roundup_power2_divisions"] = {str(1 << power): 0 for power in range(16)}
    return made
