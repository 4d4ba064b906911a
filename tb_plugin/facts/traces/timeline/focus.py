"""The part of a timeline shown first: one step, without the empty time at its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.api.time.trace import TraceFocus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.facts.traces.axis import PlacedSource
    from memboard.tb_plugin.facts.traces.timeline.interest import Interest

SLOW_RATIO: Final = 1.1
"""A step is the slowest where it takes so many times the median; else the first is shown."""


class _Step(NamedTuple):
    place: PlacedSource
    number: int
    start_ns: int
    """In the trace's own time, as `end_ns`."""
    end_ns: int

    @property
    def rank(self) -> int | None:
        return self.place.source.found.rank

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


def focus_of(
    places: Sequence[PlacedSource],
    base_ns: int,
    step: int | None,
    first: Sequence[Interest],
) -> TraceFocus | None:
    """The query's step, else the slowest that was traced, else the first one.

    Steps of profilers' traces go before those of spans. A step is cut to the work in
    it: a profiler's last step, for one, may last until the training ends. Where no step
    is marked it is all of the work; None without anything that is open. Of the `first`
    rank that has any steps, where there is one.
    """
    if not places:
        return None
    traced = [place for place in places if place.source.found.kind == "trace"]
    spans = [place for place in places if place.source.found.kind == "spans"]
    steps = _steps_of(traced or spans)
    asked = [
        profiled for profiled in (*steps, *_steps_of(spans)) if profiled.number == step
    ]
    if step is not None and asked:
        return _shown(asked[0], base_ns, "")
    for longest in first:
        own = [step for step in steps if step.rank == longest.rank]
        about = [
            same_number for same_number in own if same_number.number == longest.step
        ]
        if own:
            why = f" of rank {longest.rank}, {longest.why}"
            return _shown((about or [_longest(own)])[0], base_ns, why)
    if steps:
        slowest = _slowest(steps)
        if slowest is None:
            return _shown(steps[0], base_ns, ", the first traced")
        of = "" if slowest.rank is None else f" (rank {slowest.rank})"
        return _shown(slowest, base_ns, f", the slowest traced{of}")
    low, high = zip(
        *(_work_in(place_or_step) for place_or_step in traced or places), strict=True
    )
    return TraceFocus("", float(min(low) - base_ns), float(max(high) - base_ns))


def _steps_of(places: Sequence[PlacedSource]) -> list[_Step]:
    return [step for place in places for step in _steps(place)]


def _longest(steps: Sequence[_Step]) -> _Step:
    return max(steps, key=lambda step: step.length_ns)


def _slowest(steps: Sequence[_Step]) -> _Step | None:
    """None: they take about as long as each other."""
    slowest = _longest(steps)
    usual = float(np.median([step.length_ns for step in steps]))
    return slowest if slowest.length_ns > SLOW_RATIO * usual else None


def _steps(place: PlacedSource) -> list[_Step]:
    own_steps = place.source.steps
    columns = (
        own_steps.number.tolist(),
        own_steps.start_ns.tolist(),
        own_steps.end_ns.tolist(),
    )
    # A recorder's first step has no begin: it takes no time.
    return [
        _Step(place, *columns_of_step)
        for columns_of_step in zip(*columns, strict=True)
        if columns_of_step[2] > columns_of_step[1]
    ]


def _shown(step: _Step, base_ns: int, why: str) -> TraceFocus:
    """`why`: said after the step's number."""
    low, high = _work_in(step.place, step.start_ns, step.end_ns)
    sentence = "" if step.number < 0 else f"Opened at step {step.number:,}{why}"
    return TraceFocus(sentence, float(low - base_ns), float(high - base_ns))


def _work_in(
    place: PlacedSource, start_ns: int | None = None, end_ns: int | None = None
) -> tuple[int, int]:
    """First and last time of work within a stretch of its own time, on the common clock."""
    trace, work = place.trace, place.source.work
    start = trace.start_ns if start_ns is None else start_ns
    end = trace.end_ns if end_ns is None else end_ns
    inside = work[(work[:, 0] < end) & (work[:, 1] > start)]
    if len(inside):
        start, end = max(start, int(inside[0, 0])), min(end, int(inside[-1, 1]))
    return start + place.zero_ns, end + place.zero_ns
