"""Marks of a history as routes answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.snapshots.marks import KINDS
from tb_plugin.api.histories import HistoryMarks
from tb_plugin.contract.wire import f64, i32, u8

if TYPE_CHECKING:
    from tb_plugin.analysis.snapshots.marks import Marks
    from tb_plugin.jobs.open_history import OpenDevice

MAX_MARKS: Final = 2000
"""Of a whole history."""
MAX_TILE_MARKS: Final = 600
"""Of a part of it, which is as wide as a screen or two."""
_MAX_TEXT: Final = 200


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
