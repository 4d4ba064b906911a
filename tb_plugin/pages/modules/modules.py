"""Routes `/modules` and `/module_timeline`: memory by module at one state, or over a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from memboard.tb_plugin.analysis.modules import timeline as analysis
from memboard.tb_plugin.analysis.modules.log import ModuleLog
from memboard.tb_plugin.api.base import f64, i32
from memboard.tb_plugin.api.memory.modules import (
    CategorySeries,
    ModuleCategory,
    ModuleMark,
    ModuleSpans,
    ModulesResponse,
    ModuleTimelineResponse,
)
from memboard.tb_plugin.contract.parameters import Number, Pixels
from memboard.tb_plugin.facts.modules.choice import (
    WindowQuery,
    absent_of,
    choose,
    chosen_window,
    facts_of,
    problems_of,
    window_list,
    window_of,
)
from memboard.tb_plugin.facts.modules.columns import group_of
from memboard.tb_plugin.facts.modules.sentences import (
    baseline_words,
    caveats_of,
    fact_words,
    lead_of,
    moments_of,
)
from memboard.tb_plugin.facts.modules.tree_table import categories_of, module_table
from memboard.tb_plugin.facts.modules.values import ModulesQuery, module_values
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.api.memory.modules import ModuleBaseline
    from memboard.tb_plugin.facts.modules.choice import Choice
    from memboard.tb_plugin.facts.modules.columns import Baseline
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.captures.modules import (
        ModulesReader,
    )

MAX_SPANS: Final = 3000
MAX_MARKS: Final = 100
_SPAN_PX: Final = 2
"""Narrower calls cannot be told from their neighbours."""


@of_run(
    "modules", ModulesQuery, reads=lambda readers: (readers.modules,), comes_again=False
)
def modules(view: View[ModulesQuery], reader: ModulesReader) -> ModulesResponse:
    # Answer `/modules`
    run = view.run
    choice = choose(reader, view)
    if choice is None or choice.opened is None:
        return _nothing(reader, view, choice)
    facts, memory = choice.opened.facts, choice.opened.memory
    shown = module_values(reader, view, choice, choice.opened)
    baseline = shown.baseline
    window = window_of(choice.key, choice.ranks, attempts=False)
    compared = None if baseline is None else _described(baseline, choice)
    return ModulesResponse(
        run=view.summary,
        windows=window_list(choice.windows),
        num_windows=len(choice.windows),
        window=choice.key.id,
        ranks=i32(sorted(choice.ranks)),
        rank=choice.rank,
        state=shown.state,  # type: ignore[arg-type]
        states=moments_of(shown.states),
        call=view.query.call,
        max_calls=shown.max_calls,
        device=choice.device_name,
        devices=choice.devices,
        measure=shown.measure,
        facts=facts_of(choice, choice.opened),
        fact_words=tuple(
            fact_words(
                facts,
                None if shown.state == "window_peak" else memory.peak(choice.device),
            )
        ),
        caveats=tuple(caveats_of(facts)),
        lead=lead_of(
            shown.whole,
            shown.state,
            window,
            choice.rank,
            has_modules=shown.measure == "held",
            against="" if compared is None else compared.words,
        ),
        baseline=compared,
        tree=shown.rows.tree,
        table=module_table(shown, memory.tree),
        split=None if shown.whole is None else shown.whole.split,
        categories=tuple(
            ModuleCategory(category, group_of(category))
            for category in categories_of(shown)
        ),
        absent=absent_of(reader, run, choice),
        problems=problems_of(run, choice),
    )


def _nothing(
    reader: ModulesReader, view: View[ModulesQuery], choice: Choice | None
) -> ModulesResponse:
    """No window, or one that cannot be read."""
    return ModulesResponse(
        run=view.summary,
        windows=() if choice is None else window_list(choice.windows),
        num_windows=0 if choice is None else len(choice.windows),
        window=None if choice is None else choice.key.id,
        ranks=i32([] if choice is None else sorted(choice.ranks)),
        rank=None if choice is None else choice.rank,
        call=view.query.call,
        absent=absent_of(reader, view.run, choice),
        problems=problems_of(view.run, choice),
    )


def _described(baseline: Baseline, choice: Choice) -> ModuleBaseline:
    described = baseline.described
    key = chosen_window(choice.windows, described.window) or choice.key
    window = window_of(key, choice.windows[key], attempts=False)
    return replace(described, words=baseline_words(described, window))


class ModuleTimelineQuery(WindowQuery, frozen=True):
    """A range of a window's times in milliseconds, or of its events."""

    axis: Literal["time", "event"] = "time"
    x0: Number | None = None
    x1: Number | None = None
    px: Pixels = 1200


@of_run(
    "module_timeline",
    ModuleTimelineQuery,
    reads=lambda readers: (readers.modules,),
    comes_again=False,
)
def module_timeline(
    view: View[ModuleTimelineQuery], reader: ModulesReader
) -> ModuleTimelineResponse:
    # Answer `/module_timeline`
    query = view.query
    choice = choose(reader, view)
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
        least = _SPAN_PX * (x1 - x0) / query.px
        spans = analysis.spans(log, axis, x0, x1, least, MAX_SPANS)
        marks = tuple(_marks(log, choice.device, axis))
    return ModuleTimelineResponse(
        run=view.summary,
        window=None if choice is None else choice.key.id,
        rank=None if choice is None else choice.rank,
        device="" if choice is None else choice.device_name,
        axis=axis,
        x_low=low,
        x_high=high,
        x0=x0,
        x_per_column=0.0 if columns is None else columns.width,
        total_bytes=f64([] if columns is None else columns.total_bytes),
        peak_x=f64([] if columns is None else columns.peak_x),
        categories=()
        if columns is None or log is None
        else _over_time(log, columns.held),
        spans=spans,
        marks=marks,
    )


def _over_time(log: ModuleLog, totals: Floats) -> tuple[CategorySeries, ...]:
    return tuple(
        CategorySeries(
            name=category, group=group_of(category), bytes=f64(totals[index])
        )
        for index, category in enumerate(log.categories)
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
    peak_x = moment if axis == "event" else log.peak(device)[1]
    yield ModuleMark(kind="peak", x=float(peak_x))
