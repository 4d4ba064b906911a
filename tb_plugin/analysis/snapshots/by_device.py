"""One device's part of a snapshot's rows; memory that stands in it twice is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import place_of
from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot, SnapshotError

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import (
        BlockTable,
        Events,
        Segments,
    )


def of_device(
    number: int,
    events: Events,
    trace: Ints,
    segments: Segments,
    device: Ints,
    blocks: BlockTable,
) -> DeviceSnapshot:
    """One device's part of all rows, in order of address.

    Args:
        number: of the device.
        events: of all devices.
        trace: by event, its device.
        segments: of all devices.
        device: by segment, its device.
        blocks: of all devices.

    Raises:
        SnapshotError: segments, or blocks, overlap: every figure would count memory twice.
    """
    rows = _span(trace, number)
    kept = np.flatnonzero(device == number)
    kept = kept[np.argsort(segments.address[kept].view(np.uint64), kind="stable")]
    segment = place_of(kept, len(segments))[blocks.segment]
    own = np.flatnonzero(segment >= 0)
    address = blocks.address[own].astype(np.int64).view(np.uint64)
    own = own[np.lexsort((address, segment[own]))]
    snapshot = DeviceSnapshot(
        device=number,
        events=events.take(rows),
        segments=segments.take(kept),
        blocks=blocks.take(own, segment=segment[own]),
    )
    _refuse_overlaps(
        "segments", number, snapshot.segments.address, snapshot.segments.total_size
    )
    _refuse_overlaps("blocks", number, snapshot.blocks.address, snapshot.blocks.size)
    return snapshot


def _refuse_overlaps(noun: str, device: int, address: Ints, size: Ints) -> None:
    rows = np.flatnonzero(size > 0)
    start = address[rows].astype(np.int64).view(np.uint64)
    order = np.argsort(start, kind="stable")
    start, end = start[order], (start + size[rows].astype(np.uint64))[order]
    wrong = np.flatnonzero(end[:-1] > start[1:])
    if len(wrong):
        first, second = (int(start[wrong[0] + offset]) for offset in (0, 1))
        is_same = first == second and end[wrong[0]] == end[wrong[0] + 1]
        how = f"0x{first:x} stands twice"
        if not is_same:
            how = f"0x{first:x} reaches into 0x{second:x}"
        raise SnapshotError(f"{noun} of device {device} overlap: {how}")


def _span(trace: Ints, number: int) -> slice | Ints:
    """The rows of one device: one piece where the lists follow each other."""
    is_own = trace == number
    num = int(np.count_nonzero(is_own))
    if not num:
        return slice(0, 0)
    first, stop = int(np.argmax(is_own)), len(is_own) - int(np.argmax(is_own[::-1]))
    return slice(first, stop) if stop - first == num else np.flatnonzero(is_own)
