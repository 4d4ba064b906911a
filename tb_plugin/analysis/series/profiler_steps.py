"""Steps whose time is the profiler's own: they say nothing about the training.

A step's time reaches from the end of the one before to its own end, so what is done when
step N ends is part of step N + 1. There a trace is ended and a snapshot of the allocator
taken; the trace is then written beside the steps that follow, under the interpreter's lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.api.time.steps import ProfilerStep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from memboard.collector.format.records import CaptureEntry
    from memboard.tb_plugin.analysis.arrays import Floats

SAVING: Final = 1.5
"""Time to write a trace, as a share of the time torch took to end it: per event 10.4 us
beside 7 (`memboard.collector.torch_profiler.exporting`)."""
_INSIDE: Final = ("modules", "hooks", "activations")
"""Kinds that are taken inside the step that they name."""
MOST: Final = 1 / 2
"""Largest share of columns left out; beyond it none is: nothing usual would remain."""


@dataclass(frozen=True, slots=True, eq=False)
class StepEnds:
    """When the steps of one file ended; of a bucket of steps, the last of them."""

    last: npt.NDArray[np.int64]
    ns: npt.NDArray[np.int64]


def trace_steps(
    meta: Mapping[str, object], warmup: int, ends: StepEnds
) -> Iterable[ProfilerStep]:
    """Steps in which torch's profiler was made ready, started, stopped and saved."""
    first, last = _count(meta, "first_step"), _count(meta, "last_step")
    if first is None or last is None:
        return
    if warmup > 0:
        yield ProfilerStep(max(0, first - warmup), max(0, first - warmup), "start")
    yield ProfilerStep(first, first, "start")
    yield ProfilerStep(last + 1, last + 1, "stop")
    stop_ns = 1000 * (_count(meta, "stop_us") or 0)
    index = int(np.searchsorted(ends.last, last))
    if stop_ns == 0 or index >= len(ends.last):
        return
    # By the rows' own clock: another one may be ahead of it.
    saved_ns = int(ends.ns[index]) + round((1 + SAVING) * stop_ns)
    until = min(int(np.searchsorted(ends.ns, saved_ns)), len(ends.last) - 1)
    if ends.last[until] > last + 1:
        yield ProfilerStep(last + 2, int(ends.last[until]), "save")


def capture_step(entry: CaptureEntry, phase: str) -> ProfilerStep | None:
    """The step that took a capture; None of kinds that cost next to nothing."""
    if entry.phase != phase or entry.step is None:
        return None
    if entry.kind in _INSIDE:
        return ProfilerStep(entry.step, entry.step, "capture")
    if entry.kind != "history" or entry.label == "oom":
        return None
    step = entry.step + (entry.function == "step" and entry.context == "end")
    return ProfilerStep(step, step, "capture")


def usual_columns(
    steps: Iterable[ProfilerStep], edges: Floats, widest: int = 1
) -> npt.NDArray[np.bool_]:
    """Columns that hold none of these steps; all of them where too few would remain.

    `widest`: steps of which only means are known, and whose bucket lies in two columns.
    """
    usual = np.ones(len(edges) - 1, np.bool_)
    for step in steps:
        low = np.searchsorted(edges[1:], step.first - (widest - 1), "right")
        high = np.searchsorted(edges[:-1], step.last + (widest - 1), "right")
        usual[low:high] = False
    return (
        usual if np.count_nonzero(usual) >= MOST * len(usual) else np.ones_like(usual)
    )


def _count(meta: Mapping[str, object], key: str) -> int | None:
    value = meta.get(key)
    sane = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if sane else None  # type: ignore[return-value]  # checked above
