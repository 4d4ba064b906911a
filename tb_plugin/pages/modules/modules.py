"""Route `/modules`: one rank's memory by module at one state, and what it is beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.modules.states import WINDOW_STATES
from tb_plugin.api.modules import (
    ModuleCategory,
    ModuleMeasure,
    ModuleSplit,
    ModulesResponse,
    ModuleState,
    ModuleTree,
    ModuleUnattributed,
)
from tb_plugin.contract.wire import f64, i32
from tb_plugin.pages.modules.baseline import BaselineQuery, Held, baseline_of
from tb_plugin.pages.modules.choice import (
    absent_of,
    choose,
    chosen_state,
    facts_of,
    problems_of,
    readers,
    window_list,
)
from tb_plugin.pages.modules.columns import (
    column_of,
    group_of,
    in_order,
    tree_columns,
)
from tb_plugin.pages.of_run import of_run

if TYPE_CHECKING:
    from tb_plugin.analysis.modules.states import ModuleMemory, StateTable
    from tb_plugin.api.base import RunSummary
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.modules import (
        ModulesReader,
        RankModules,
        RankWindow,
    )
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run
    from tb_plugin.pages.modules.baseline import Baseline
    from tb_plugin.pages.modules.choice import Choice

NO_STATE: Final = "window_peak"
"""What an answer without values says it shows."""


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """The values of an answer, before they are columns."""

    tree: ModuleTree
    state: str
    states: tuple[str, ...]
    max_calls: int
    measure: ModuleMeasure
    table: StateTable
    held: Held
    split: ModuleSplit | None
    baseline: Baseline | None


class ModulesQuery(BaselineQuery, frozen=True):
    """What modules hold in one of their states."""

    state: ModuleState | None = None
    measure: ModuleMeasure = "held"


@of_run("modules", ModulesQuery, reads=readers, comes_again=False)
def modules(
    reader: ModulesReader,
    series: SeriesReader,
    run: Run,
    summary: RunSummary,
    query: ModulesQuery,
    budget: Budget,
) -> ModulesResponse:
    """Answer `/modules`."""
    choice = choose(reader, series, run, query, budget)
    shown = None
    if choice is not None and choice.opened is not None:
        shown = _shown(reader, choice, choice.opened, query, budget)
    baseline = None if shown is None else shown.baseline
    table = None if shown is None else shown.table
    held = None if shown is None else shown.held
    return ModulesResponse(
        run=summary,
        windows=() if choice is None else window_list(choice.windows),
        num_windows=0 if choice is None else len(choice.windows),
        window=None if choice is None else choice.key.id,
        ranks=i32([] if choice is None else sorted(choice.ranks)),
        rank=None if choice is None else choice.rank,
        state=NO_STATE if shown is None else shown.state,  # type: ignore[arg-type]
        states=() if shown is None else shown.states,  # type: ignore[arg-type]
        call=query.call,
        max_calls=0 if shown is None else shown.max_calls,
        device="" if choice is None else choice.device_name,
        devices=() if choice is None else choice.devices,
        measure="total" if shown is None else shown.measure,
        facts=None if choice is None else facts_of(choice),
        baseline=None if baseline is None else baseline.described,
        tree=ModuleTree() if shown is None else shown.tree,
        num_calls=i32([] if table is None else table.num_calls),
        call_shown=i32([] if table is None else table.call),
        time_us=f64([] if table is None else table.time_us),
        total_bytes=f64([] if held is None else held.total),
        held_bytes=f64([] if held is None else held.held),
        own_bytes=f64([] if held is None else held.own),
        split=None if shown is None else shown.split,
        baseline_total_bytes=None if baseline is None else f64(baseline.held.total),
        baseline_held_bytes=None if baseline is None else f64(baseline.held.held),
        baseline_own_bytes=None if baseline is None else f64(baseline.held.own),
        categories=() if shown is None else _categories(shown),
        absent=absent_of(reader, run, choice),
        problems=problems_of(run, choice),
    )


def _shown(
    reader: ModulesReader,
    choice: Choice,
    opened: RankModules,
    query: ModulesQuery,
    budget: Budget,
) -> _Shown:
    memory, asked = opened.memory, query
    state = chosen_state(memory, choice.device, asked.state)
    table = memory.at(state, choice.device, asked.call)
    measure: ModuleMeasure = asked.measure if opened.facts.has_held else "total"
    held = Held.of(memory, table, choice.device, measure)
    return _Shown(
        tree=_tree(reader, choice.ranks[choice.rank], opened),
        state=state,
        states=memory.states(choice.device),
        max_calls=memory.max_calls(state),
        measure=measure,
        table=table,
        held=held,
        split=_split(memory, table, state, choice.device),
        baseline=baseline_of(reader, choice, opened, state, measure, query, budget),
    )


def _split(
    memory: ModuleMemory, table: StateTable, state: str, device: int
) -> ModuleSplit | None:
    """What modules hold and what nobody does, where all rows are of one moment."""
    held = memory.held(table, device) if state in WINDOW_STATES else None
    if held is None or not len(memory.tree) or np.isnan(table.total_bytes[0]):
        return None
    of_modules = held[:, memory.tree.parent < 0].sum(axis=1)
    rest = table.totals[:, 0] - of_modules
    return ModuleSplit(
        total_bytes=float(table.total_bytes[0]),
        held_bytes=float(of_modules.sum()),
        unattributed_bytes=float(rest.sum()),
        unattributed=tuple(
            ModuleUnattributed(name=name, group=group_of(name), bytes=float(rest[row]))
            for row, name in enumerate(memory.categories)
            if rest[row]
        ),
    )


def _tree(reader: ModulesReader, window: RankWindow, opened: RankModules) -> ModuleTree:
    """Made once: it is the same for all states."""
    key = (window.identity, "tree")
    found: ModuleTree | None = reader.cache.get(key)
    if found is None:
        found = tree_columns(opened.memory.tree)
        names = sum(len(name) + 60 for name in (*found.names, *found.types))
        reader.cache.put(key, found, names + 29 * len(opened.memory.tree))
    return found


def _categories(shown: _Shown) -> tuple[ModuleCategory, ...]:
    held = shown.held
    beside = None if shown.baseline is None else shown.baseline.held
    names = in_order([*held.columns, *(() if beside is None else beside.columns)])
    return tuple(
        ModuleCategory(
            name=name,
            group=group_of(name),
            bytes=f64(column_of(held.columns, name, held.total)),
            baseline_bytes=None
            if beside is None
            else f64(column_of(beside.columns, name, beside.total)),
        )
        for name in names
    )
