"""An open history in words and numbers: its devices, levels, marks and moments."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.sizes import agreeing, counted, part_of
from memboard.tb_plugin.analysis.allocator.stacking import columns, with_start
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.analysis.snapshots.marks import KINDS
from memboard.tb_plugin.api.base import f64, i32, u8
from memboard.tb_plugin.api.memory.blocks import AllocationMoment
from memboard.tb_plugin.api.memory.histories import (
    HistoryCurve,
    HistoryDevice,
    HistoryFacts,
    HistoryMarks,
    HistoryNote,
    HistoryPeak,
    HistorySetting,
)
from memboard.tb_plugin.contract.table import Column, rows_of, titled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.analysis.allocator.lifetimes import Levels
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.snapshots.marks import Marks
    from memboard.tb_plugin.api.memory.histories import HistoryLevel
    from memboard.tb_plugin.jobs.open_history import OpenDevice, OpenHistory


MAX_CURVE: Final = 2000

_MUCH: Final = 0.02
"""Of the active peak, from which on its rounding is mentioned."""

_MAX_TEXT: Final = 200

_MAX_SETTINGS: Final = 200

_MAX_UNREAD: Final = 12

MAX_MARKS: Final = 2000

MAX_TILE_MARKS: Final = 600
"""Of a part of it, which is as wide as a screen or two."""

_HOLDERS: Final = (
    Column(
        "bytes",
        "Live",
        unit="bytes",
        help="Bytes that are live at this moment, as requested",
        bar="row",
        share_of="of what is live",
    ),
    Column(
        "blocks",
        "Blocks",
        help="Live blocks; counted once the pointer rests",
        absent="Counted once the pointer rests",
    ),
    Column(
        "allocated_at",
        "Allocated at",
        unit="stack",
        help="The line of your own code in the stack; click to light its blocks",
        bar="row",
    ),
)
_FRAMES: Final = (
    Column(
        "total",
        "Total",
        unit="bytes",
        help="Of all stacks that contain the frame",
        bar="frame",
    ),
    Column("self", "Self", unit="bytes", help="Of stacks that end in it", bar="frame"),
    Column("frame", "Frame; click for its callers and callees", unit="text"),
)
_HOLDER_TABLE: Final = titled(
    rows_of(_HOLDERS, (), usual="bytes"), "Top holders", empty="Nothing is live here."
)
_FRAME_TABLE: Final = titled(
    rows_of(_FRAMES, (), usual="total"), "Frames", empty="No frame is found."
)


def facts_of(history: OpenHistory) -> HistoryFacts:
    """What an open history says."""
    return HistoryFacts(
        devices=tuple(_device(history, device) for device in history.devices.values()),
        default_device=history.default_device,
        streams=history.stream_labels,
        pools=history.pool_labels,
        settings=settings_of(history),
        num_stacks=len(history.snapshot.stacks),
        holder_table=_HOLDER_TABLE,
        frame_table=_FRAME_TABLE,
    )


def settings_of(history: OpenHistory) -> tuple[HistorySetting, ...]:
    """Those of the allocator, as the file has them."""
    settings = islice(history.snapshot.settings.items(), _MAX_SETTINGS)
    return tuple(
        HistorySetting(str(setting)[:_MAX_TEXT], str(value)[:_MAX_TEXT])
        for setting, value in settings
    )


def _notes(
    history: OpenHistory, device: OpenDevice, before_bytes: float, num_marks: int
) -> Iterator[HistoryNote]:
    """What is missing of a history, or odd about it: nothing is drawn without saying so."""
    num_lost, (peak_bytes, peak_moment) = device.lives.num_lost, device.active.peak
    rounding_bytes = device.replay.rounding_bytes(peak_moment)
    if num_lost:
        yield HistoryNote(
            f"{counted(num_lost, 'free')} of memory that was free already: events in between"
            " are missing.",
            warns=True,
        )
    for warning in history.warnings:
        yield HistoryNote(warning, warns=True)
    if device.num_before:
        yield HistoryNote(
            f"{size_text(before_bytes)} in {counted(device.num_before, 'block')} is from"
            " before the first event: when it was allocated is not known, and where only"
            " for what is still live at the end. The ring of events was full, or recording"
            " began later; max_entries keeps more.",
            warns=False,
        )
    if rounding_bytes > _MUCH * max(peak_bytes, 1):
        yield HistoryNote(
            f"At the peak the blocks drawn add up to {size_text(rounding_bytes)} less than"
            " torch counts: they are drawn as requested, and the allocator rounds up.",
            warns=False,
        )
    if len(device.marks) > num_marks:
        yield HistoryNote(
            f"{part_of(num_marks, len(device.marks), 'mark')}"
            f" {agreeing(num_marks, 'is', 'are')} shown: errors, and everywhere"
            " the longest spans. Zoom in for the others.",
            warns=False,
        )
    if unread := history.snapshot.unread:
        text = f"Not read, as nothing here knows these keys: {unread_text(unread)}."
        yield HistoryNote(text, warns=False)
    if device.is_host:
        return
    if history.snapshot.tensors is None:
        yield HistoryNote(
            "Categories are inferred from stack traces: the recording does not say which"
            " tensor is at which address.",
            warns=False,
        )


def unread_text(keys: Sequence[str]) -> str:
    """The keys of a file that nothing reads: the first of them, and how many more."""
    more = len(keys) - _MAX_UNREAD
    names = ", ".join(key[:_MAX_TEXT] for key in keys[:_MAX_UNREAD])
    return f"{names} and {more} more" if more > 0 else names


def _device(history: OpenHistory, device: OpenDevice) -> HistoryDevice:
    snapshot, lives = device.replay.device, device.lives
    before_bytes = float(lives.size[: device.num_before].sum())
    marks = marks_of_device(device)
    return HistoryDevice(
        device=device.number,
        title=device.title,
        num_events=device.num_events,
        num_allocations=len(lives),
        has_times=device.has_times,
        first_ms=device.time_ms(0),
        last_ms=device.time_ms(device.num_events - 1),
        capacity_bytes=history.capacity_of(device.number),
        active_bytes=float(snapshot.active_bytes),
        allocated_bytes=float(snapshot.allocated_bytes),
        reserved_bytes=float(snapshot.reserved_bytes),
        num_before=device.num_before,
        before_bytes=before_bytes,
        num_lost=lives.num_lost,
        rounding_bytes=float(device.replay.rounding_bytes(device.peak_moment)),
        notes=tuple(_notes(history, device, before_bytes, len(marks.kind))),
        peaks=(
            _peak("active", device.active),
            _peak("allocated", device.allocated),
            _peak("reserved", device.reserved),
        ),
        marks=marks,
        curve=_curve(device),
    )


def _peak(level: HistoryLevel, levels: Levels) -> HistoryPeak:
    num_bytes, moment = levels.peak
    return HistoryPeak(level=level, bytes=float(num_bytes), moment=moment)


def _curve(device: OpenDevice) -> HistoryCurve:
    after = device.active.after
    curve = with_start(columns(after, 0, len(after), MAX_CURVE), device.active)
    if not device.num_events:
        events = curve.start * 0
        time_ms = np.full(1, np.nan)
    else:
        events = curve.start
        time_us = device.replay.device.events.time_us
        time_ms = (
            np.full(len(events), np.nan) if time_us is None else time_us[events] / 1e3
        )
    return HistoryCurve(
        event=i32(events),
        peak=i32(curve.at),
        active=f64(device.active.at(curve.at)),
        allocated=f64(_highest(device.allocated, events)),
        reserved=f64(_highest(device.reserved, events)),
        time_ms=f64(time_ms),
    )


def _highest(levels: Levels, starts: Ints) -> Ints:
    """The highest bytes from each start to the next; `starts` begin with 0."""
    if not len(levels.after):
        return np.full(len(starts), levels.first)
    return np.maximum.reduceat(levels.after, starts)


def marks_of_device(device: OpenDevice) -> HistoryMarks:
    """All, or those that stand for all."""
    marks = device.marks
    return _shown(device, marks.within(0, device.num_events, MAX_MARKS))


def marks_of_window(device: OpenDevice, start: int, stop: int) -> HistoryMarks | None:
    """Those of a window of events; None where those of the device are all there are."""
    marks = device.marks
    if len(marks) <= MAX_MARKS:
        return None
    return _shown(device, marks.within(start, stop, MAX_TILE_MARKS))


def _shown(device: OpenDevice, marks: Marks) -> HistoryMarks:
    used, label = np.unique(marks.label, return_inverse=True)
    return HistoryMarks(
        kind=u8(marks.kind),
        kinds=KINDS,
        moment=i32(marks.moment),
        end=i32(marks.end),
        label=i32(label),
        labels=tuple(marks.labels[row][:_MAX_TEXT] for row in used.tolist()),
        bytes=f64(marks.num_bytes),
        device_free=f64(marks.device_free),
        step=f64(marks.step),
        num_marks=len(device.marks),
    )


def moment_of(device: OpenDevice, asked: int | None, otherwise: int) -> int:
    """The moment of the query; one behind the end is the end."""
    moment = otherwise if asked is None else asked
    return max(-1, min(moment, device.num_events - 1))


def moment_words(device: OpenDevice, moment: int) -> AllocationMoment:
    """Where an event lies, as people speak of it."""
    step, phase = device.step(moment)
    return AllocationMoment(
        moment=moment, time_ms=device.time_ms(moment), step=step, phase=phase
    )
