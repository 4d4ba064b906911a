"""Why memory of a moment cannot be used: a sentence, what bears on it, and its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.allocator.lifetimes import OOM
from memboard.tb_plugin.analysis.allocator.moment.arenas import releasable
from memboard.tb_plugin.analysis.allocator.moment.fit import fit, obstacle
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.frames import stack_label
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.api.base import NO_I32
from memboard.tb_plugin.api.memory.segments import SegmentFigure, SegmentsWhy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.allocator.moment.fit import Fit, Obstacle
    from memboard.tb_plugin.analysis.allocator.moment.pins import SegmentPinners
    from memboard.tb_plugin.analysis.allocator.segments import SegmentState
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.jobs.open_history import OpenDevice


_FAILED_YET: Final = (
    "The request failed all the same: such a block became free only while torch handled the"
    " failure, or the history is incomplete."
)


class Request(NamedTuple):
    """Bytes somebody asks about, or those that failed at this very event."""

    num_bytes: int
    stream: int
    pool: int
    is_oom: bool
    device_free: int | None


def request_at(
    device: OpenDevice,
    moment: int,
    num_bytes: int | None,
    stream: int | None,
    pool: int | None,
) -> Request | None:
    """The request of a moment; None where nobody asks and nothing failed."""
    events = device.replay.device.events
    is_oom = moment >= 0 and int(events.action[moment]) == OOM
    free = int(events.device_free[moment]) if is_oom else NOTHING
    device_free = None if free < 0 else free
    if num_bytes is not None:
        return Request(
            num_bytes, stream or 0, pool or 0, is_oom=False, device_free=device_free
        )
    if not is_oom:
        return None
    failed = int(events.size[moment]), int(events.stream[moment])
    return Request(*failed, max(0, int(events.pool[moment])), True, device_free)


def why_of(
    device: OpenDevice,
    state: SegmentState,
    in_sight: SegmentState,
    pinners: SegmentPinners,
    request: Request | None,
    life_stack: Ints,
) -> SegmentsWhy:
    """`state`: all segments; `in_sight`: those that pass the filter."""
    segments = in_sight.segments
    active = int((segments.total_size - segments.free_size).sum())
    common = (
        SegmentFigure(
            "Returnable",
            int(releasable(in_sight).sum()),
            "What torch.cuda.empty_cache() would return to the device; a failing"
            " allocation does this first",
        ),
        SegmentFigure(
            "Rounding",
            max(0, active - int(segments.requested_size.sum())),
            "Bytes of active blocks beyond the requested size: multiples of 512"
            " bytes, and what was not worth splitting",
        ),
    )
    if request is None:
        return _without_request(device, in_sight, pinners, common)
    return _of_request(device, state, pinners, request, life_stack, common)


_Figures: TypeAlias = tuple[SegmentFigure, ...]


def _without_request(
    device: OpenDevice,
    in_sight: SegmentState,
    pinners: SegmentPinners,
    common: _Figures,
) -> SegmentsWhy:
    segments = in_sight.segments
    free, reserved = int(segments.free_size.sum()), int(segments.total_size.sum())
    largest = int(segments.largest_free.max(initial=0))
    more, pinner = [], NOTHING
    if len(pinners.stack):
        pinner = int(pinners.stack[0])
        label = stack_label(device.history.snapshot.stacks, pinner)
        alone, shared = int(pinners.alone_bytes[0]), int(pinners.shared_bytes[0])
        who = f"{label} alone" if alone >= shared else f"Together with others {label}"
        more.append(f"{who} keeps {size_text(max(alone, shared))} from being returned.")
    figures = (
        SegmentFigure(
            "Largest free block",
            largest,
            "The largest request that fits without new memory from the device",
        ),
        SegmentFigure("Free", free, "Reserved and not in use"),
        *common,
    )
    sentence = _at_rest(reserved, free, largest, int(common[0].bytes))
    return SegmentsWhy("plain", sentence, tuple(more), figures, pinner, NO_I32)


def _of_request(
    device: OpenDevice,
    state: SegmentState,
    pinners: SegmentPinners,
    request: Request,
    life_stack: Ints,
    common: _Figures,
) -> SegmentsWhy:
    where = {"pool": request.pool, "stream": request.stream}
    fitting = fit(state, device.replay.rounding, request.num_bytes, **where)
    missing = _missing(fitting, request)
    has_room = missing is not None and missing <= 0 and not request.is_oom
    fits = fitting.fits or has_room
    way = None if fits else obstacle(state, fitting, life_stack, **where)
    arena, asked = _arena(device, fitting, request), size_text(request.num_bytes)
    culprit, more = NOTHING, []
    if fitting.fits:
        largest = size_text(fitting.largest)
        sentence = f"{asked} fits: the largest free block is {largest}."
        more.append(f"{size_text(fitting.free)} is free {arena}.")
        if request.is_oom:
            more.append(_FAILED_YET)
    elif fits:
        sentence = f"{asked} fits in a new segment of the device's free memory."
        more.append(
            f"No free block serves it: {size_text(fitting.free)} is free {arena}."
        )
    else:
        sentence = _refused(asked, arena, fitting, request)
        if way is None and state.reserved_bytes:
            more.append("No segment that it may use is that large.")
        # What the device lacked may be less than what has to go for a free stretch.
        if way is not None and missing is not None and missing < way.live_bytes:
            way = None
        stacks = device.history.snapshot.stacks
        label = "" if way is None else stack_label(stacks, way.stack)
        more += _in_the_way(fitting, way, label, missing)
        # Where all is in use, it is not that blocks lie in between.
        if fitting.free >= fitting.size:
            first = int(pinners.stack[0]) if len(pinners.stack) else NOTHING
            culprit = first if way is None else way.stack
    return SegmentsWhy(
        "ok" if fits else "bad",
        sentence,
        tuple(more),
        (*_request_figures(fitting, request, fits), *common),
        culprit,
        NO_I32 if way is None else way.lives,
    )


def _request_figures(fit: Fit, request: Request, fits: bool) -> Iterator[SegmentFigure]:
    yield SegmentFigure(
        "Requested",
        request.num_bytes,
        f"The allocation; its block is rounded up to {fit.size:,} bytes",
    )
    own = "of its pool, stream and size class"
    yield SegmentFigure(
        "Largest free block",
        fit.largest,
        f"Largest {own}: no free block leaves these",
        not fits,
    )
    yield SegmentFigure("Free for it", fit.free, f"All free blocks {own}")
    if request.device_free is not None:
        hint = "Free on the device, outside of the allocator"
        yield SegmentFigure("Device had", request.device_free, hint)


def _at_rest(reserved: int, free: int, largest: int, back: int) -> str:
    if not reserved:
        return "Nothing is reserved at this moment."
    if not free:
        return f"All of the {size_text(reserved)} reserved is in use."
    goes = f"empty_cache() would return {size_text(back)}"
    return (
        f"{size_text(free)} of {size_text(reserved)} reserved is free, the largest block"
        f" {size_text(largest)};"
        f" {goes if back else 'none of it can be returned to the device'}."
    )


def _refused(asked: str, arena: str, fit: Fit, request: Request) -> str:
    failed = (
        f"An allocation of {asked} failed"
        if request.is_oom
        else f"{asked} does not fit"
    )
    free = f"{size_text(fit.free)} is free {arena}"
    if fit.free >= fit.size:
        largest = size_text(fit.largest)
        return f"{failed} although {free}: the largest free block is {largest}."
    return f"{failed}: {f'only {free}' if fit.free else f'nothing is free {arena}'}."


def _missing(fit: Fit, request: Request) -> int | None:
    """What the device lacked for a new segment; None where that is not known."""
    if request.device_free is None:
        return None
    return fit.new_segment_bytes - request.device_free - fit.releasable_bytes


def _in_the_way(
    fit: Fit, way: Obstacle | None, label: str, missing: int | None
) -> Iterator[str]:
    if way is not None:
        is_one = len(way.lives) == 1
        blocks = "one block" if is_one else counted(len(way.lives), "block")
        held_text = f"{size_text(way.live_bytes)}, {'' if is_one else 'mostly '}{label}"
        yield f"Freeing {blocks} ({held_text}) would make room for it."
    takes = f"A new segment would take {size_text(fit.new_segment_bytes)}"
    if missing is None or missing <= 0:
        yield f"{takes}."
    else:
        more = "more than the device had and empty_cache() would return"
        yield f"{takes}: {size_text(missing)} {more}."
    places = {"stream": fit.other_stream_largest, "pool": fit.other_pool_largest}
    kind, largest = max(
        places.items(), key=lambda place: (place[1] >= fit.size, place[1])
    )
    if largest >= fit.size:
        yield (
            f"Another {kind} has a free block of {size_text(largest)}; blocks never change"
            f" their {kind}."
        )
    elif largest > fit.largest:
        yield (
            "The largest free block of other streams and pools,"
            f" {size_text(largest)}, is too small as well."
        )


def _arena(device: OpenDevice, fit: Fit, request: Request) -> str:
    """`for large requests on stream 0x7`: the pool and the stream where there are several."""
    history = device.history
    parts = [f"for {'large' if fit.is_large else 'small'} requests"]
    for text, labels, row in (
        ("in pool", history.pool_labels, request.pool),
        ("on stream", history.stream_labels, request.stream),
    ):
        if len(labels) > 1:
            parts.append(f"{text} {labels[row] if row >= 0 else '?'}")
    return " ".join(parts)
