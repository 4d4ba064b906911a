"""Route `/module_timeline`: categories through one window, and what ran when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tb_plugin.analysis.modules import timeline as analysis
from tb_plugin.analysis.modules.log import ModuleLog
from tb_plugin.api.modules import (
    ModuleCategory,
    ModuleMark,
    ModuleSpans,
    ModuleTimelineResponse,
)
from tb_plugin.contract.wire import f64, i32, u8
from tb_plugin.pages.modules.choice import (
    WindowQuery,
    absent_of,
    choose,
    facts_of,
    problems_of,
    readers,
)
from tb_plugin.pages.modules.columns import group_of
from tb_plugin.pages.of_run import of_run
from tb_plugin.server.parameters import Number, Pixels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tb_plugin.analysis.modules.tree import Floats
    from tb_plugin.api.base import RunSummary
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.modules import ModulesReader
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run

MAX_SPANS: Final = 3000
MAX_MARKS: Final = 100
_SPAN_PX: Final = 2
"""Narrower calls cannot be told from their neighbours."""


class ModuleTimelineQuery(WindowQuery, frozen=True):
    """A range of a window's times in milliseconds, or of its events."""

    axis: Literal["time", "event"] = "time"
    x0: Number | None = None
    x1: Number | None = None
    px: Pixels = 1200


@of_run("module_timeline", ModuleTimelineQuery, reads=readers, comes_again=False)
def module_timeline(
    reader: ModulesReader,
    series: SeriesReader,
    run: Run,
    summary: RunSummary,
    query: ModuleTimelineQuery,
    budget: Budget,
) -> ModuleTimelineResponse:
    """Answer `/module_timeline`."""
    choice = choose(reader, series, run, query, budget)
    memory = None if choice is None or choice.opened is None else choice.opened.memory
    log = memory if isinstance(memory, ModuleLog) else None
    axis = query.axis
    low, high = (0.0, 0.0) if log is None else analysis.extent(log, axis)
    x0 = low if query.x0 is None else min(max(query.x0, low), high)
    x1 = high if query.x1 is None else min(max(query.x1, x0), high)
    columns = None
    spans = ModuleSpans(kinds=analysis.SPAN_KINDS)
    marks: tuple[ModuleMark, ...] = ()
    if choice is not None and log is not None:
        columns = analysis.columns(log, choice.device, axis, x0, x1, query.px)
        spans = _spans(log, axis, x0, x1, query.px)
        marks = tuple(_marks(log, choice.device, axis))
    return ModuleTimelineResponse(
        run=summary,
        window=None if choice is None else choice.key.id,
        rank=None if choice is None else choice.rank,
        device="" if choice is None else choice.device_name,
        devices=() if choice is None else choice.devices,
        axis=axis,
        x_low=low,
        x_high=high,
        x0=x0,
        x_per_column=0.0 if columns is None else columns.width,
        total_bytes=f64([] if columns is None else columns.total_bytes),
        peak_x=f64([] if columns is None else columns.peak_x),
        categories=()
        if columns is None or log is None
        else _categories(log, columns.totals),
        spans=spans,
        marks=marks,
        facts=None if choice is None else facts_of(choice),
        absent=absent_of(reader, run, choice),
        problems=problems_of(run, choice),
    )


def _categories(log: ModuleLog, totals: Floats) -> tuple[ModuleCategory, ...]:
    return tuple(
        ModuleCategory(
            name=name,
            group=group_of(name),
            bytes=f64(totals[index]),
            baseline_bytes=None,
        )
        for index, name in enumerate(log.categories)
    )


def _spans(
    log: ModuleLog, axis: analysis.Axis, x0: float, x1: float, px: int
) -> ModuleSpans:
    found = analysis.spans(log, axis, x0, x1, _SPAN_PX * (x1 - x0) / px, MAX_SPANS)
    modules, index = np.unique(found.module, return_inverse=True)
    return ModuleSpans(
        modules=tuple(log.tree.fqn[row] for row in modules.tolist()),
        module=i32(index),
        kinds=analysis.SPAN_KINDS,
        kind=u8(found.kind),
        call=i32(found.call),
        depth=i32(found.depth),
        x0=f64(found.x0),
        x1=f64(found.x1),
        num_left_out=found.num_left_out,
    )


def _marks(log: ModuleLog, device: int, axis: analysis.Axis) -> Iterator[ModuleMark]:
    states: tuple[Literal["before_optimizer", "after_optimizer"], ...] = (
        "before_optimizer",
        "after_optimizer",
    )
    for state in states:
        moments, times = log.whole_window(state)
        for x in (moments if axis == "event" else times).tolist()[:MAX_MARKS]:
            yield ModuleMark(kind=state, x=float(x))
    moment = log.peaks[device][1]
    at = moment if axis == "event" else log.peak(device)[1]
    yield ModuleMark(kind="peak", x=float(at))
