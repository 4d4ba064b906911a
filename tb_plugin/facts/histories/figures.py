"""The figures of a snapshot, device by device: how much, when, who, and what is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.snapshots.tags import is_tag
from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS, OOM
from memboard.tb_plugin.analysis.allocator.live import live_rows, summed
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.findings.text import share_text
from memboard.tb_plugin.analysis.oom.holders import holders
from memboard.tb_plugin.analysis.snapshots.snapshot import ALLOCATED, INACTIVE
from memboard.tb_plugin.api.findings import HeldBy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.tb_plugin.analysis.oom.holders import Holder
    from memboard.tb_plugin.jobs.open_history import OpenDevice, OpenHistory

_MANY: Final = 0.05
"""Share of the peak from which on bytes without a stack are mentioned."""
_MAX_ANNOTATIONS: Final = 20
_MAX_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class AnnotationFigures:
    """A text that the program annotated allocations with, and what they take at the peak."""

    text: str
    bytes: int
    num_blocks: int


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """What a snapshot says of one device, or (`device` -1) of pinned host memory.

    Sizes are bytes, rounded as the allocator does. Levels are those at the end, when the
    snapshot was taken; `peak_*` are the highest of its history, with the event behind
    which they were reached (-1: before the first one).
    """

    device: int
    capacity_bytes: float | None
    num_segments: int
    num_blocks: int
    reserved_bytes: int
    allocated_bytes: int
    active_bytes: int
    inactive_bytes: int
    largest_inactive_block_bytes: int
    requested_bytes_active: int
    num_events: int
    actions: Mapping[str, int]
    """Events by what they are."""
    peak_active_bytes: int
    peak_active_event: int
    peak_active_ms: float | None
    """Since 1970; None: events have no times."""
    peak_active_step: int | None
    peak_allocated_bytes: int
    peak_allocated_event: int
    peak_reserved_bytes: int
    peak_reserved_event: int
    reserved_at_peak_bytes: int
    """At the peak of what is active."""
    distinct_alloc_stacks: int
    oom: tuple[Mapping[str, int], ...]
    """Out-of-memory errors: `size` that was requested, `device_free`."""
    holders: tuple[HeldBy, ...]
    """At the peak of what is active, most bytes first."""
    categories_bytes: Mapping[str, int]
    rounding_bytes: int
    """Of the peak of what is active: what rounding adds to the requests, which have lines and
    categories."""
    annotations: tuple[AnnotationFigures, ...]
    """Likewise, by the program's own annotations, most bytes first, at most 20."""
    not_recorded: tuple[str, ...]


def figures_of(history: OpenHistory) -> tuple[DeviceFigures, ...]:
    """Those of every device with events or segments, by number; none of the host's."""
    devices = history.devices.values()
    return tuple(_figures(history, device) for device in devices if not device.is_host)


def pinned_figures_of(history: OpenHistory) -> DeviceFigures | None:
    """The same of pinned host memory; None where it was not recorded."""
    host = history.pinned_host_memory
    return None if host is None else _figures(history, host)


def _figures(history: OpenHistory, device: OpenDevice) -> DeviceFigures:
    snapshot = device.replay.device
    events, blocks, segments = snapshot.events, snapshot.blocks, snapshot.segments
    inactive = blocks.size[blocks.state == INACTIVE]
    oom = events.of_action(OOM)
    numbers, counts = np.unique(events.action, return_counts=True)
    active_bytes, moment = device.active.peak
    allocated_bytes, allocated_event = device.allocated.peak
    reserved_bytes, reserved_event = device.reserved.peak
    held_by_lines = holders(
        device.lives,
        history.snapshot.stacks,
        moment,
        device.categories.of_life,
        with_pending=True,
        of_bytes=active_bytes,
    )
    names = tuple(group.key for group in device.categories.groups)
    return DeviceFigures(
        device=device.number,
        capacity_bytes=history.capacity_of(device.number),
        num_segments=len(segments),
        num_blocks=len(blocks),
        reserved_bytes=snapshot.reserved_bytes,
        allocated_bytes=snapshot.allocated_bytes,
        active_bytes=snapshot.active_bytes,
        inactive_bytes=int(inactive.sum()),
        largest_inactive_block_bytes=int(inactive.max(initial=0)),
        requested_bytes_active=int(
            blocks.requested_size[blocks.state != INACTIVE].sum()
        ),
        num_events=len(events),
        actions={
            ACTIONS[number] if number >= 0 else "unknown": count
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        },
        peak_active_bytes=active_bytes,
        peak_active_event=moment,
        peak_active_ms=device.time_ms(moment),
        peak_active_step=device.step(moment)[0],
        peak_allocated_bytes=allocated_bytes,
        peak_allocated_event=allocated_event,
        peak_reserved_bytes=reserved_bytes,
        peak_reserved_event=reserved_event,
        reserved_at_peak_bytes=int(device.reserved.at(np.array([moment]))[0]),
        distinct_alloc_stacks=_num_alloc_stacks(history, device),
        oom=tuple(
            {"size": size, "device_free": free}
            for size, free in zip(
                events.size[oom].tolist(), events.device_free[oom].tolist(), strict=True
            )
        ),
        holders=tuple(_site(holder, names) for holder in held_by_lines),
        categories_bytes=_by_category(device, moment),
        rounding_bytes=device.replay.rounding_bytes(moment),
        annotations=_by_annotation(history, device, moment),
        not_recorded=tuple(_not_recorded(history, device, held_by_lines)),
    )


def _num_alloc_stacks(history: OpenHistory, device: OpenDevice) -> int:
    """Different lists of frames: the file may hold one list several times."""
    events, stacks = device.replay.device.events, history.snapshot.stacks
    rows = events.of_action(ACTIONS.index("alloc"))
    stack_numbers = np.unique(events.stack[rows]).tolist()
    return len({stacks.of(stack).tobytes() for stack in stack_numbers})


def _site(holder: Holder, names: tuple[str, ...]) -> HeldBy:
    return HeldBy(
        label=holder.label,
        category="unknown" if holder.category == NOTHING else names[holder.category],
        bytes=holder.num_bytes,
        share=holder.share,
        num_blocks=holder.num_blocks,
        is_pending=holder.is_pending,
    )


def _by_category(device: OpenDevice, moment: int) -> Mapping[str, int]:
    lives, groups = device.lives, device.categories
    rows = live_rows(lives, moment)
    sums = summed(lives, rows, groups.of_life, len(groups.groups)).num_bytes
    order: Any = np.argsort(-sums, kind="stable").tolist()
    return {
        groups.groups[group].key: int(sums[group]) for group in order if sums[group]
    }


def _by_annotation(
    history: OpenHistory, device: OpenDevice, moment: int
) -> tuple[AnnotationFigures, ...]:
    lives, texts = device.lives, history.snapshot.texts
    live = live_rows(lives, moment)
    text = device.replay.annotations.of_life(len(lives))[live]
    is_annotated = text != NOTHING
    rows, place = np.unique(text[is_annotated], return_inverse=True)
    sizes = np.bincount(place.reshape(-1), lives.size[live][is_annotated], len(rows))
    counts = np.bincount(place.reshape(-1), minlength=len(rows))
    figures = [
        AnnotationFigures(texts[row][:_MAX_TEXT], int(size), count)
        for row, size, count in zip(
            rows.tolist(), sizes.tolist(), counts.tolist(), strict=True
        )
        if not is_tag(texts[row])
    ]
    figures.sort(key=lambda figure: -figure.bytes)
    return tuple(figures[:_MAX_ANNOTATIONS])


def _not_recorded(
    history: OpenHistory, device: OpenDevice, holders: list[Holder]
) -> Iterator[str]:
    """What the file lacks, and how to get it."""
    option = "record_pinned_host_memory=True" if device.is_host else ""
    if not device.num_events:
        yield (
            "The history: the peak is the state when the snapshot was taken. Call"
            f" torch.cuda.memory._record_memory_history({option}) before training starts."
        )
    elif device.num_before:
        is_single = device.num_before == 1
        yield (
            f"The beginning: {device.num_before:,} {'block was' if is_single else 'blocks were'}"
            " allocated before the history starts; when is unknown. Start recording"
            " earlier, or keep more with max_entries."
        )
    live = device.replay.device.blocks.state == ALLOCATED
    without = sum(holder.share for holder in holders if not holder.label)
    if without > _MANY and live.any():
        how = (
            "Memory from before recording began has none, nor has that of threads without"
            ' Python, as in backward, unless stacks="all" records C++ frames.'
            if any(holder.label for holder in holders)
            else 'Record them with stacks="python".'
        )
        yield (
            f"Stack traces of {share_text(without)} of the peak: its allocation sites are"
            f" unknown. {how}"
        )
    if device.num_events and not device.has_times:
        yield "Times of events: torch 2.1 and newer record them."
    if device.is_host:
        return
    if device.num_events and device.steps.by == "nothing":
        yield "Steps: MemBoard's recorder marks them in the history."
    if history.capacity_of(device.number) is None:
        yield "The size of the device: torch's snapshots do not hold it."
    if history.snapshot.tensors is None:
        yield "Categories of blocks: they are inferred from stack traces."
