"""A snapshot in memory: what torch's `_snapshot()` would return for the model.

Objects are shared as torch shares them: a frame is one dict wherever it occurs, one
call of the allocator's has one list of frames (its segment_alloc and its alloc, the
block that it made while that lives, both halves of a free), and all rows without frames
share one empty list.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tests.simulate.allocator.blocks import NO_SITE
from tests.simulate.allocator.stats import ACTIVE
from tests.simulate.history.history import ACTIONS, OOM
from tests.simulate.snapshots.form import (
    Form,
    annotations_of,
    segments_of,
    settings_of,
    stream_pointer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.simulate.allocator.allocator import CachingAllocator
    from tests.simulate.history.history import History
    from tests.simulate.history.sites import Frame, Sites


def snapshot(
    allocators: Sequence[CachingAllocator], sites: Sites, form: Form | None = None
) -> dict[str, Any]:
    """What `torch.cuda.memory._snapshot()` returns: one allocator per device.

    As torch does, it then notes in each history that a snapshot was taken.
    """
    form = form or Form()
    frames = _FrameLists(sites)
    found: dict[str, Any] = {"segments": []}
    for device, allocator in enumerate(allocators):
        found["segments"] += segments_of(
            allocator, device, partial(frames.of_live, device)
        )
    found["device_traces"] = [
        list(_events(device, allocator.history, sites, form, frames))
        if allocator.history is not None
        else []
        for device, allocator in enumerate(allocators)
    ]
    if form.has_times:
        found["allocator_settings"] = settings_of(allocators[0].settings, form.torch)
        found["external_annotations"] = annotations_of(histories_of(allocators))
    note_snapshot(allocators)
    return found


def histories_of(allocators: Sequence[CachingAllocator]) -> Mapping[int, History]:
    """By device; of those that have one."""
    return {
        device: allocator.history
        for device, allocator in enumerate(allocators)
        if allocator.history is not None
    }


def note_snapshot(allocators: Sequence[CachingAllocator]) -> None:
    """Record that a snapshot was taken, for the next one to show."""
    for allocator in allocators:
        if allocator.history is not None:
            allocator.history.record_snapshot(allocator.stats.get(ACTIVE))


def _events(
    device: int, history: History, sites: Sites, form: Form, frames: _FrameLists
) -> Iterator[dict[str, Any]]:
    with_frames = [form.has_frames(action) for action in ACTIONS]
    for row in history.rows():
        event = event_of(row, history, sites, form)
        number = row[6]
        if number != NO_SITE and with_frames[row[0]]:
            event["frames"] = frames.of(device, row[5], number)
        yield event


def event_of(
    row: Sequence[int], history: History, sites: Sites, form: Form
) -> dict[str, Any]:
    """One event without its frames; `row` as `History.rows` gives it."""
    action, address, size, stream, time_us, _, number, pool = row
    event: dict[str, Any] = {
        "action": ACTIONS[action],
        "device_free" if action == OOM else "addr": address,
        "size": size,
        "stream": stream_pointer(stream),
    }
    if form.has_times:
        event["time_us"] = time_us
    if form.has_metadata:
        site = sites[number]
        # A text and a pair of its own for each event, as torch makes them.
        event["compile_context"] = site.compile_context.encode().decode()
        event["user_metadata"] = site.user_metadata
    if form.has_pool_ids:
        event["pool_id"] = (*history.pool_ids[pool],)
    return event


class _FrameLists:
    """Lists of frame dicts, shared by capture."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._dicts: dict[Frame, dict[str, Any]] = {}
        self._of_site: dict[int, list[dict[str, Any]]] = {}
        self._live: dict[tuple[int, int], list[dict[str, Any]]] = {}
        self._nothing: list[dict[str, Any]] = []
        self._last = ((0, 0), self._nothing)

    def of_live(self, device: int, capture: int, site: int) -> list[dict[str, Any]]:
        """Of a block or segment, whose capture may occur among the events."""
        if site == NO_SITE:
            return self._nothing
        key = (device, capture)
        if key not in self._live:
            self._live[key] = self._new(site)
        return self._live[key]

    def of(self, device: int, capture: int, site: int) -> list[dict[str, Any]]:
        """Of an event; those of one capture follow each other."""
        key = (device, capture)
        if key == self._last[0]:
            return self._last[1]
        frames = self._live.get(key)
        if frames is None:
            frames = self._new(site)
        self._last = (key, frames)
        return frames

    def _new(self, site: int) -> list[dict[str, Any]]:
        known = self._of_site.get(site)
        if known is None:
            known = [self._dict(frame) for frame in self._sites[site].frames]
            self._of_site[site] = known
        return known.copy()

    def _dict(self, frame: Frame) -> dict[str, Any]:
        found = self._dicts.get(frame)
        if found is None:
            found = self._dicts[frame] = {
                "name": frame.name,
                "filename": frame.filename,
                "line": frame.line,
            }
        return found
