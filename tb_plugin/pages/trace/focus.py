"""The part of a timeline shown first: one step, without the empty time at its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tb_plugin.api.trace import TraceFocus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.api.trace import TraceWhy
    from tb_plugin.pages.trace.axis import Placed

SLOW_RATIO: Final = 1.1
"""A step is the slowest where it takes so many times the median; else the first is shown."""


class _Step(NamedTuple):
    place: Placed
    number: int
    start_ns: int
    """In the trace's own time, as `end_ns`."""
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


def focus_of(
    places: Sequence[Placed], base_ns: int, step: int | None
) -> TraceFocus | None:
    """The step asked for, else the slowest that was traced, else the first one.

    Steps of profilers' traces go before those of spans. A step is cut to the work in
    it: a profiler's last step, for one, may last until the training ends. Where no step
    is marked it is all of the work; None without anything that is open.
    """
    if not places:
        return None
    traced = [one for one in places if one.source.found.kind == "trace"]
    steps = [found for one in traced for found in _steps(one)]
    every = [found for one in places for found in _steps(one)]
    asked = [one for one in (*steps, *every) if one.number == step]
    if step is not None and asked:
        return _shown(asked[0], base_ns, "asked")
    steps = steps or ([] if traced else every)
    if steps:
        slowest = max(steps, key=lambda one: one.length_ns)
        usual = float(np.median([one.length_ns for one in steps]))
        if slowest.length_ns > SLOW_RATIO * usual:
            return _shown(slowest, base_ns, "slowest")
        return _shown(steps[0], base_ns, "first")
    low, high = zip(*(_work_in(one) for one in traced or places), strict=True)
    return TraceFocus(
        None, None, float(min(low) - base_ns), float(max(high) - base_ns), "all"
    )


def _steps(place: Placed) -> list[_Step]:
    found = place.source.steps
    columns = (found.number.tolist(), found.start_ns.tolist(), found.end_ns.tolist())
    # A recorder's first step has no begin: it takes no time.
    return [_Step(place, *one) for one in zip(*columns, strict=True) if one[2] > one[1]]


def _shown(step: _Step, base_ns: int, why: TraceWhy) -> TraceFocus:
    low, high = _work_in(step.place, step.start_ns, step.end_ns)
    return TraceFocus(
        step.place.source.found.rank,
        step.number if step.number >= 0 else None,
        float(low - base_ns),
        float(high - base_ns),
        why,
    )


def _work_in(
    place: Placed, start_ns: int | None = None, end_ns: int | None = None
) -> tuple[int, int]:
    """First and last time of work within a stretch of its own time, on the common clock."""
    trace, work = place.trace, place.source.work
    start = trace.start_ns if start_ns is None else start_ns
    end = trace.end_ns if end_ns is None else end_ns
    inside = work[(work[:, 0] < end) & (work[:, 1] > start)]
    if len(inside):
        start, end = max(start, int(inside[0, 0])), min(end, int(inside[-1, 1]))
    return start + place.zero_ns, end + place.zero_ns
