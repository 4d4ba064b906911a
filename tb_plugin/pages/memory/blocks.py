"""Routes `/allocations` and `/segment_timeline`: what lives when, as a picture of columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.allocator.groups import FOLDED
from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
from memboard.tb_plugin.analysis.allocator.live import live_rows, summed
from memboard.tb_plugin.analysis.allocator.stacking import (
    Columns,
    band_bytes,
    columns,
    stacked,
    time_columns,
)
from memboard.tb_plugin.api.base import NO_F64
from memboard.tb_plugin.api.blocks import (
    AllocationColour,
    AllocationColumns,
    AllocationGroup,
    AllocationLives,
    AllocationOrder,
    AllocationRuns,
    AllocationsResponse,
)
from memboard.tb_plugin.api.segments import SegmentTimelineResponse, SizeClass
from memboard.tb_plugin.contract.parameters import Number, Pixels, Whole
from memboard.tb_plugin.contract.wire import f64, i32, u16
from memboard.tb_plugin.facts.histories.description import marks_of_window
from memboard.tb_plugin.facts.histories.opening import DeviceQuery, of_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.allocator.groups import Group, Groups
    from memboard.tb_plugin.analysis.allocator.segment_spans import Spans
    from memboard.tb_plugin.analysis.allocator.selection import Selection
    from memboard.tb_plugin.analysis.allocator.stacking import Stacking
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.api.modules import CategoryGroup
    from memboard.tb_plugin.jobs.open_history import OpenDevice
    from memboard.tb_plugin.pages.memory.segments import SegmentsQuery

Axis: TypeAlias = Literal["event", "time"]

MIN_PX: Final = 0.75
"""A block that is less tall is summed up."""

US_PER_MS: Final = 1e3
HIDDEN: Final = -1
"""The band of what is not in the picture."""
_MAX_TEXT: Final = 500

_MAX_KIND: Final = 200


class WindowQuery(DeviceQuery, frozen=True):
    """A window of events, or of time, in pixel columns."""

    axis: Axis = "event"
    e0: Whole | None = None
    e1: Whole | None = None
    t0: Number | None = None  # Milliseconds, likewise t1
    t1: Number | None = None
    px: Pixels = 1200


class PictureQuery(WindowQuery, frozen=True):
    """A picture of a window: `rows` pixels high, from `y0` to `y1` bytes."""

    y0: Number | None = None
    y1: Number | None = None
    rows: Pixels = 800
    order: AllocationOrder = "category"


class AllocationsQuery(PictureQuery, frozen=True):
    colour: AllocationColour = "category"


@of_device("allocations", AllocationsQuery)
def allocations(
    device: OpenDevice, shown: Selection, query: AllocationsQuery
) -> AllocationsResponse:
    """One tile of the picture."""
    drawn = columns_of(device, shown, query)
    groups, bands = device.groups(query.colour), _bands(device, query)
    active = shown.level.at(drawn.at)
    top = float(active.max()) if query.y1 is None else query.y1
    band = of_shown(bands.of_life, shown)
    picture = picture_of(device.lives, band, len(bands.groups), drawn.at, top, query)
    peak_bytes, peak_moment = shown.level.peak
    begins = _begins_of(picture)
    moment = int(drawn.at[np.argmax(active)])
    return _tile(
        device,
        shown,
        query,
        drawn,
        picture,
        lives=lives_of(
            device.lives, picture.life[begins], groups.of_life, bands.of_life
        ),
        groups=_groups(device, groups, moment, shown),
        bands=_groups(device, bands, moment, shown),
        group_bytes=NO_F64
        if bands is groups
        else f64(
            band_bytes(
                device.lives,
                of_shown(groups.of_life, shown),
                len(groups.groups),
                drawn.at,
            )
        ),
        top_bytes=top,
        peak_bytes=float(peak_bytes),
        peak_moment=peak_moment,
    )


def _tile(
    device: OpenDevice,
    shown: Selection,
    query: PictureQuery,
    columns: Columns,
    picture: Stacking,
    **more: Any,
) -> AllocationsResponse:
    """A picture as it is sent; `more`: what is drawn, and the peak of all."""
    return AllocationsResponse(
        device=device.number,
        axis=axis_of(device, query),
        columns=AllocationColumns(
            edge=f64(columns.edge),
            moment=i32(columns.at),
            active=f64(picture.total),
            reserved=f64(shown.reserved(columns.at)),
        ),
        runs=runs_of(picture),
        rest=f64(picture.rest),
        band_bytes=f64(picture.band_bytes),
        min_bytes=float(picture.min_bytes),
        marks=marks_of_window(device, *window_of(device, columns, query)),
        **more,
    )


def picture_of(
    lives: Lifetimes,
    band: Ints,
    num_bands: int,
    events: Ints,
    top: float,
    query: PictureQuery,
) -> Stacking:
    """What lives at `events`, stacked for a picture up to `top` bytes."""
    bottom = query.y0 or 0.0
    return stacked(
        lives,
        band,
        num_bands,
        events,
        max(1, int(MIN_PX * max(top - bottom, 0) / query.rows)),
        bottom=int(bottom),
        top=None if query.y1 is None else int(query.y1),
    )


def axis_of(device: OpenDevice, query: WindowQuery) -> Axis:
    """The axis that is drawn: there is none of time where there are no times."""
    return query.axis if device.has_times else "event"


def columns_of(device: OpenDevice, shown: Selection, query: WindowQuery) -> Columns:
    """The pixel columns of a question: the same for all routes that show columns."""
    after = shown.level.after
    clock = device.clock_us if query.axis == "time" else None
    if clock is not None:
        start = 0.0 if query.t0 is None else query.t0 * US_PER_MS
        stop = float(clock[-1]) if query.t1 is None else query.t1 * US_PER_MS
        in_time = time_columns(after, clock, start, stop, query.px)
        return Columns(in_time.at, in_time.start, in_time.edge / US_PER_MS)
    start_event = 0 if query.e0 is None else query.e0
    stop_event = device.num_events if query.e1 is None else query.e1
    return columns(after, start_event, stop_event, query.px)


def window_of(
    device: OpenDevice, columns: Columns, query: WindowQuery
) -> tuple[int, int]:
    """The events that columns show: the first, and the one after the last."""
    clock, end = None, float(columns.edge[-1])
    if query.axis == "time":
        clock = device.clock_us
    if clock is None:
        return int(columns.start[0]), int(end)
    return int(columns.start[0]), int(np.searchsorted(clock, end * US_PER_MS, "right"))


def of_shown(group: Ints, shown: Selection) -> Ints:
    """Groups by life, below 0 of those that are not shown."""
    if shown.is_selected is None:
        return group
    return np.where(shown.is_selected, group.astype(np.int32), HIDDEN)


def lives_of(
    lives: Lifetimes, rows: Ints, group: Ints, band: Ints, number: Ints | None = None
) -> AllocationLives:
    """Some lives, as the page needs them; `number`: what it calls each, else its row."""
    return AllocationLives(
        life=i32(rows if number is None else number[rows]),
        size=f64(lives.size[rows]),
        born=i32(lives.born[rows]),
        freed=i32(lives.freed[rows]),
        gone=i32(lives.gone[rows]),
        stack=i32(lives.stack[rows]),
        group=u16(group[rows]),
        band=u16(band[rows]),
    )


def _bands(device: OpenDevice, query: AllocationsQuery) -> Groups:
    if query.order == "allocation":
        return device.all_in_one
    return device.groups("category" if query.order == "category" else query.colour)


def _begins_of(picture: Stacking) -> Ints:
    """The first run of each life."""
    return np.flatnonzero(np.diff(picture.life, prepend=-1))


def runs_of(picture: Stacking) -> AllocationRuns:
    begins = _begins_of(picture)
    counts = np.diff(begins, append=len(picture.life))
    return AllocationRuns(
        slot=i32(np.repeat(np.arange(len(begins)), counts)),
        first=u16(picture.first),
        last=u16(picture.last),
        offset=f64(picture.offset),
    )


def _groups(
    device: OpenDevice, groups: Groups, moment: int, shown: Selection
) -> tuple[AllocationGroup, ...]:
    lives = device.lives
    rows = shown.rows(live_rows(lives, moment))
    sums = summed(lives, rows, groups.of_life, len(groups.groups))
    return allocation_groups(groups, sums.num_bytes.tolist())


def allocation_groups(
    groups: Groups, num_bytes: Sequence[float]
) -> tuple[AllocationGroup, ...]:
    """Groups with the bytes of each."""
    return tuple(
        AllocationGroup(**group_fields(group, group_bytes))
        for group, group_bytes in zip(groups.groups, num_bytes, strict=True)
    )


def group_fields(group: Group, num_bytes: float) -> dict[str, Any]:
    """What an `AllocationGroup` says of a group that holds so much."""
    return {
        "key": group.key[:_MAX_TEXT],
        "label": group.label[:_MAX_TEXT],
        "category": category_or_none(group.category),
        "stack": group.stack,
        "bytes": float(num_bytes),
    }


def category_or_none(name: str) -> CategoryGroup | None:
    """One of the categories that have a colour."""
    return name if name in FOLDED else None  # type: ignore[return-value]  # these words


class SegmentTimelineQuery(PictureQuery, frozen=True):
    size_class: SizeClass | None = None


@of_device("segment_timeline", SegmentTimelineQuery)
def segment_timeline(
    device: OpenDevice, shown: Selection, query: SegmentTimelineQuery
) -> SegmentTimelineResponse:
    """One tile: what the allocator held of the device, piece by piece.

    A life here is a segment, or a part of an expandable one, from the event that brought
    it to the one that took it back.
    """
    order = np.argsort(device.replay.spans.opened, kind="stable")
    lives = _as_lives(device.replay.spans, order)
    names, kind = _kinds(device, order)
    spans = device.replay.spans
    pool = np.maximum(spans.pool[order], 0)
    passes = passing(query, spans.stream[order], pool, spans.is_large[order])
    is_one = query.order == "allocation"
    band = np.where(passes, 0 if is_one else kind, HIDDEN)
    drawn = columns_of(device, replace(shown, level=device.reserved), query)
    top = float(device.reserved.at(drawn.at).max()) if query.y1 is None else query.y1
    num_bands = 1 if is_one else len(names)
    picture = picture_of(lives, band, num_bands, drawn.at, top, query)
    begins = _begins_of(picture)
    peak_bytes, peak_moment = device.reserved.peak
    highest = int(drawn.at[np.argmax(picture.total)])
    groups = _kind_groups(names, _bytes_of(lives, kind, len(names), highest, passes))
    tile = _tile(
        device,
        shown,
        query,
        drawn,
        picture,
        lives=lives_of(lives, picture.life[begins], kind, band, order),
        groups=groups,
        bands=_kind_groups(("all",), [sum(of.bytes for of in groups)])
        if is_one
        else groups,
        group_bytes=f64(
            band_bytes(lives, np.where(passes, kind, HIDDEN), len(names), drawn.at)
        )
        if is_one
        else NO_F64,
        top_bytes=top,
        peak_bytes=float(peak_bytes),
        peak_moment=peak_moment,
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
        + (f", pool {labels[row]}"[:_MAX_KIND] if row else "")
        for row, is_large in distinct.tolist()
    )
    return names or ("large",), place.reshape(-1)


def passing(
    query: SegmentTimelineQuery | SegmentsQuery, stream: Ints, pool: Ints, large: Ints
) -> Flags:
    """Segments that are asked for, by their stream, pool and size class."""
    keep = np.ones(len(stream), np.bool_)
    if query.stream is not None:
        keep &= stream == query.stream
    if query.pool is not None:
        keep &= pool == query.pool
    if query.size_class is not None:
        keep &= large == (query.size_class == "large")
    return keep


def _bytes_of(
    lives: Lifetimes, kind: Ints, num: int, moment: int, passes: Ints
) -> list[float]:
    """Bytes of each kind at a moment."""
    there = (lives.born <= moment) & (lives.gone > moment) & passes
    sums = np.zeros(num, np.int64)
    np.add.at(sums, kind[there], lives.size[there])
    return [float(value) for value in sums.tolist()]


def _kind_groups(
    names: tuple[str, ...], num_bytes: list[float]
) -> tuple[AllocationGroup, ...]:
    return tuple(
        AllocationGroup(key=name, label=name, category=None, stack=None, bytes=value)
        for name, value in zip(names, num_bytes, strict=True)
    )
