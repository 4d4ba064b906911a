"""The route of the segments over time: a picture as that of allocations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.allocator.lifetimes import Lifetimes
from tb_plugin.api.allocations import (
    AllocationColumns,
    AllocationGroup,
    AllocationsResponse,
)
from tb_plugin.api.segments import SegmentTimelineResponse, SizeClass
from tb_plugin.contract.wire import f64, i32
from tb_plugin.pages.histories.asked import of_device
from tb_plugin.pages.histories.history import marks_of_window
from tb_plugin.pages.memory.allocations import (
    HIDDEN,
    PictureQuery,
    axis_of,
    columns_of,
    lives_of,
    picture_of,
    runs_of,
    window_of,
)

if TYPE_CHECKING:
    from tb_plugin.analysis.allocator.segment_spans import Spans
    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.jobs.open_history import OpenDevice, Shown

_MAX_TEXT: Final = 200


class SegmentTimelineQuery(PictureQuery, frozen=True):
    """A picture of segments."""

    size_class: SizeClass | None = None


@of_device("segment_timeline", SegmentTimelineQuery)
def segment_timeline(
    device: OpenDevice, shown: Shown, query: SegmentTimelineQuery
) -> SegmentTimelineResponse:
    """One tile: what the allocator held of the device, piece by piece.

    A life here is a segment, or a part of an expandable one, from the event that brought
    it to the one that took it back.
    """
    order = np.argsort(device.replay.spans.opened, kind="stable")
    lives = _as_lives(device.replay.spans, order)
    names, kind = _kinds(device, order)
    passes = _passes(device.replay.spans, order, query)
    is_one = query.order == "allocation"
    band = np.where(passes, 0 if is_one else kind, HIDDEN)
    found = columns_of(device, replace(shown, level=device.reserved), query)
    top = float(device.reserved.at(found.at).max()) if query.y1 is None else query.y1
    num_bands = 1 if is_one else len(names)
    picture = picture_of(lives, band, num_bands, found.at, top, query)
    begins = np.flatnonzero(np.diff(picture.life, prepend=-1))
    peak_bytes, peak_moment = device.reserved.peak
    highest = int(found.at[np.argmax(picture.total)])
    groups = _groups(names, _bytes_of(lives, kind, len(names), highest, passes))
    tile = AllocationsResponse(
        device=device.number,
        axis=axis_of(device, query),
        columns=AllocationColumns(
            edge=f64(found.edge),
            moment=i32(found.at),
            active=f64(picture.total),
            reserved=f64(shown.reserved(found.at)),
        ),
        lives=lives_of(lives, picture.life[begins], kind, band, order),
        runs=runs_of(picture, begins),
        groups=groups,
        bands=_groups(("all",), [sum(of.bytes for of in groups)]) if is_one else groups,
        rest=f64(picture.rest),
        band_bytes=f64(picture.band_bytes),
        min_bytes=float(picture.min_bytes),
        top_bytes=top,
        peak_bytes=float(peak_bytes),
        peak_moment=peak_moment,
        marks=marks_of_window(device, *window_of(device, found, query)),
    )
    return SegmentTimelineResponse(tile)


def _as_lives(spans: Spans, order: Ints) -> Lifetimes:
    closed = spans.closed[order]
    return Lifetimes(
        addr=spans.address[order],
        size=spans.size[order],
        stack=spans.stack[order],
        born=spans.opened[order],
        freed=closed,
        gone=closed,
        num_lost=spans.num_lost,
    )


def _kinds(device: OpenDevice, order: Ints) -> tuple[tuple[str, ...], Ints]:
    """Names of kinds, and by span which it is: size class, and the pool if private."""
    spans = device.replay.spans
    pool = np.maximum(spans.pool[order], 0)
    keys = np.stack([pool, spans.is_large[order]], axis=1).astype(np.int64)
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    labels = device.history.pool_labels
    names = tuple(
        ("large" if is_large else "small")
        + (f", pool {labels[row]}"[:_MAX_TEXT] if row else "")
        for row, is_large in distinct.tolist()
    )
    return names or ("large",), place.reshape(-1)


def _passes(spans: Spans, order: Ints, query: SegmentTimelineQuery) -> Ints:
    keep = np.ones(len(order), np.bool_)
    if query.stream is not None:
        keep &= spans.stream[order] == query.stream
    if query.pool is not None:
        keep &= np.maximum(spans.pool[order], 0) == query.pool
    if query.size_class is not None:
        keep &= spans.is_large[order] == (query.size_class == "large")
    return keep


def _bytes_of(
    lives: Lifetimes, kind: Ints, num: int, moment: int, passes: Ints
) -> list[float]:
    """Bytes of each kind at a moment."""
    there = (lives.born <= moment) & (lives.gone > moment) & passes
    found = np.zeros(num, np.int64)
    np.add.at(found, kind[there], lives.size[there])
    return [float(value) for value in found.tolist()]


def _groups(
    names: tuple[str, ...], num_bytes: list[float]
) -> tuple[AllocationGroup, ...]:
    return tuple(
        AllocationGroup(key=name, label=name, category=None, stack=None, bytes=value)
        for name, value in zip(names, num_bytes, strict=True)
    )
