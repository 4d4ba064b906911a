"""Routes `/allocations` and `/segment_timeline`: what lives when, as a picture of columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from memboard.tb_plugin.analysis.allocator.listing.segment_lives import segment_lives
from memboard.tb_plugin.analysis.allocator.live import live_rows, summed
from memboard.tb_plugin.analysis.allocator.stacking import (
    Columns,
    band_bytes,
    columns,
    num_events_until,
    stacked,
    time_columns,
    with_start,
)
from memboard.tb_plugin.api.base import NO_F64, f64, i32, u16
from memboard.tb_plugin.api.memory.blocks import (
    AllocationColour,
    AllocationColumns,
    AllocationGroup,
    AllocationLives,
    AllocationOrder,
    AllocationRuns,
    AllocationsResponse,
    NamedGroup,
)
from memboard.tb_plugin.api.memory.segments import SegmentTimelineResponse, SizeClass
from memboard.tb_plugin.contract.parameters import Number, Pixels, Whole
from memboard.tb_plugin.facts.histories.description import marks_of_window
from memboard.tb_plugin.facts.histories.opening import DeviceQuery
from memboard.tb_plugin.server.views.history import of_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.allocator.groups import Groups
    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.allocator.listing.segment_lives import SegmentLives
    from memboard.tb_plugin.analysis.allocator.selection import Selection
    from memboard.tb_plugin.analysis.allocator.stacking import Stacking
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.jobs.open_history import OpenDevice

Axis: TypeAlias = Literal["event", "time"]

MIN_PX: Final = 0.75
"""A block that is less tall is summed up."""

US_PER_MS: Final = 1e3
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
    band = shown.bands(bands.of_life)
    picture = picture_of(device.lives, band, len(bands.groups), drawn.at, top, query)
    peak_bytes, peak_moment = shown.level.peak
    moment = int(drawn.at[active.argmax()])
    return _tile(
        device,
        shown,
        query,
        drawn,
        picture,
        lives=lives_of(
            device.lives, picture.life[picture.begins], groups.of_life, bands.of_life
        ),
        groups=_groups(device, groups, moment, shown),
        bands=_groups(device, bands, moment, shown),
        group_bytes=NO_F64
        if bands is groups
        else f64(
            band_bytes(
                device.lives,
                shown.bands(groups.of_life),
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
        in_ms = replace(in_time, edge=in_time.edge / US_PER_MS)
        return with_start(in_ms, shown.level)
    start_event = 0 if query.e0 is None else query.e0
    stop_event = device.num_events if query.e1 is None else query.e1
    return with_start(columns(after, start_event, stop_event, query.px), shown.level)


def window_of(
    device: OpenDevice, columns: Columns, query: WindowQuery
) -> tuple[int, int]:
    """The events that columns show: the first, and the one after the last."""
    clock, end = None, float(columns.edge[-1])
    if query.axis == "time":
        clock = device.clock_us
    if clock is None:
        return int(columns.start[0]), int(end)
    return int(columns.start[0]), num_events_until(clock, end * US_PER_MS)


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


def runs_of(picture: Stacking) -> AllocationRuns:
    return AllocationRuns(
        slot=i32(picture.slots),
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


def group_fields(group: NamedGroup, num_bytes: float) -> dict[str, Any]:
    """What an `AllocationGroup` says of a group that holds so much."""
    return {
        "key": group.key[:_MAX_TEXT],
        "label": group.label[:_MAX_TEXT],
        "category": group.category,
        "stack": group.stack,
        "bytes": float(num_bytes),
    }


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
    segments = segment_lives(
        device.replay.spans, query.stream, query.pool, is_large(query.size_class)
    )
    lives, kind, names = segments.lives, segments.kind, _kind_names(device, segments)
    is_one = query.order == "allocation"
    band = segments.bands(are_one=is_one)
    drawn = columns_of(device, replace(shown, level=device.reserved), query)
    top = float(device.reserved.at(drawn.at).max()) if query.y1 is None else query.y1
    num_bands = 1 if is_one else len(names)
    picture = picture_of(lives, band, num_bands, drawn.at, top, query)
    peak_bytes, peak_moment = device.reserved.peak
    highest = int(drawn.at[picture.total.argmax()])
    groups = _kind_groups(names, segments.bytes_at(highest))
    tile = _tile(
        device,
        shown,
        query,
        drawn,
        picture,
        lives=lives_of(lives, picture.life[picture.begins], kind, band, segments.row),
        groups=groups,
        bands=_kind_groups(("all",), [sum(of.bytes for of in groups)])
        if is_one
        else groups,
        group_bytes=f64(
            band_bytes(lives, segments.bands(are_one=False), len(names), drawn.at)
        )
        if is_one
        else NO_F64,
        top_bytes=top,
        peak_bytes=float(peak_bytes),
        peak_moment=peak_moment,
    )
    return SegmentTimelineResponse(tile)


def is_large(size_class: SizeClass | None) -> bool | None:
    """Whether segments of a size class are large; None: of any."""
    return None if size_class is None else size_class == "large"


def _kind_names(device: OpenDevice, segments: SegmentLives) -> tuple[str, ...]:
    """`large`, `small, pool 0x2`: size class, and the pool if private."""
    labels = device.history.pool_labels
    names = tuple(
        ("large" if is_large else "small")
        + (f", pool {labels[pool]}"[:_MAX_KIND] if pool else "")
        for pool, is_large in segments.kinds
    )
    return names or ("large",)


def _kind_groups(
    names: tuple[str, ...], num_bytes: list[float]
) -> tuple[AllocationGroup, ...]:
    return tuple(
        AllocationGroup(key=label, label=label, bytes=value)
        for label, value in zip(names, num_bytes, strict=True)
    )
