"""Memory of each module at one state of a tracked step, and memory of no module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.modules.states import WINDOW_STATES
from memboard.tb_plugin.analysis.modules.tree import lowest_with_most
from memboard.tb_plugin.api.memory.modules import (
    ModuleMeasure,
    ModuleSplit,
    ModuleState,
)
from memboard.tb_plugin.facts.modules.choice import chosen_state
from memboard.tb_plugin.facts.modules.columns import (
    BaselineQuery,
    ModuleColumns,
    ShownRows,
    adds_up,
    baseline_of,
)
from memboard.tb_plugin.facts.modules.sentences import Whole

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.modules.log import ModuleMemory
    from memboard.tb_plugin.analysis.modules.states import StateTable
    from memboard.tb_plugin.facts.modules.choice import Choice
    from memboard.tb_plugin.facts.modules.columns import Baseline
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.captures.modules import (
        ModulesReader,
        RankModules,
        RankWindow,
    )


class ModulesQuery(BaselineQuery, frozen=True):
    """What modules hold in one of their states."""

    state: ModuleState | None = None
    measure: ModuleMeasure = "held"


@dataclass(frozen=True, slots=True, eq=False)
class ModuleValues:
    """What modules hold at one state, against a baseline where the query names one."""

    rows: ShownRows
    state: str
    states: tuple[str, ...]
    max_calls: int
    measure: ModuleMeasure
    table: StateTable
    held: ModuleColumns
    whole: Whole | None
    baseline: Baseline | None


def module_values(
    reader: ModulesReader,
    view: View[ModulesQuery],
    choice: Choice,
    opened: RankModules,
) -> ModuleValues:
    """Values of the query's state, or else of the first one shown."""
    memory, asked = opened.memory, view.query
    state = chosen_state(memory, choice.device, asked.state)
    table = memory.at(state, choice.device, asked.call)
    measure: ModuleMeasure = asked.measure if opened.facts.has_held else "total"
    rows = _rows(reader, choice.ranks[choice.rank], opened)
    columns = ModuleColumns.of(memory, table, choice.device, measure)
    return ModuleValues(
        rows=rows,
        state=state,
        states=memory.states(choice.device),
        max_calls=memory.max_calls(state),
        measure=measure,
        table=table,
        held=columns.shown(rows, added=adds_up(state, measure)),
        whole=_whole(memory, table, state, choice.device, rows),
        baseline=baseline_of(reader, view, choice, opened, state, measure, rows),
    )


def _whole(
    memory: ModuleMemory, table: StateTable, state: str, device: int, rows: ShownRows
) -> Whole | None:
    """What modules hold and what nobody does, where all rows are of one moment."""
    held_bytes = memory.held(table, device) if state in WINDOW_STATES else None
    if held_bytes is None or not len(memory.tree) or np.isnan(table.total_bytes[0]):
        return None
    of_modules = held_bytes[:, memory.tree.parent < 0].sum(axis=1)
    rest = table.totals[:, 0] - of_modules
    module = None
    category = int(of_modules.argmax())
    if of_modules[category] < rest.max():
        category = int(rest.argmax())
        num_bytes = float(rest[category])
    else:
        sums = rows.sums(held_bytes[category])
        row = lowest_with_most(rows.parent, sums, rows.tree.num_equal)
        module, num_bytes = rows.tree.fqn[row], float(sums[row])
    order = [
        category
        for category in np.argsort(-rest, kind="stable").tolist()
        if rest[category]
    ]
    return Whole(
        split=ModuleSplit(
            total_bytes=float(table.total_bytes[0]),
            held_bytes=float(of_modules.sum()),
            unattributed_bytes=float(rest.sum()),
        ),
        unattributed=[
            (memory.categories[category], float(rest[category])) for category in order
        ],
        category=memory.categories[category],
        module=module,
        num_bytes=num_bytes,
    )


def _rows(reader: ModulesReader, window: RankWindow, opened: RankModules) -> ShownRows:
    """Made once: they are the same for all states."""
    key = (window.identity, "rows")
    shown_rows: ShownRows | None = reader.cache.get(key)
    if shown_rows is None:
        shown_rows = ShownRows.of(opened.memory.tree)
        texts = (*shown_rows.tree.fqn, *shown_rows.tree.label)
        names = sum(len(text) + 60 for text in texts)
        reader.cache.put(key, shown_rows, names + 49 * len(shown_rows.source))
    return shown_rows
