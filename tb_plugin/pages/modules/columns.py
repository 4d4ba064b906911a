"""Columns of module memory, and what they are compared with.

That is another state, window or rank, or the median. Modules are matched by fqn: pipeline
stages and changed models have others, which then have no baseline. The median reads ranks
spread evenly over all of them, as many as time and memory allow, and says how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from collector.format.memory import CATEGORIES, FOLDS_INTO
from tb_plugin.analysis.modules.tree import num_equal
from tb_plugin.api.modules import ModuleBaseline, ModuleSeries, ModuleState
from tb_plugin.api.modules import ModuleTree as ApiModuleTree
from tb_plugin.contract.parameters import Rank, Text
from tb_plugin.contract.wire import f64, i32, u8
from tb_plugin.pages.modules.choice import (
    WindowQuery,
    chosen_window,
    device_of,
    open_window,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tb_plugin.analysis.arrays import Floats, Ints
    from tb_plugin.analysis.modules.log import ModuleMemory
    from tb_plugin.analysis.modules.states import StateTable
    from tb_plugin.analysis.modules.tree import ModuleTree
    from tb_plugin.api.modules import CategoryGroup, ModuleMeasure
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.modules import (
        ModulesReader,
        RankModules,
        RankWindow,
    )
    from tb_plugin.pages.modules.choice import Choice
    from tb_plugin.pages.of_run import View

_ORDER: Final = {name: index for index, name in enumerate(CATEGORIES)}

MAX_MEDIAN_BYTES: Final = 128 << 20
"""What the columns of all ranks may take while their median is made."""


def tree_columns(tree: ModuleTree) -> ApiModuleTree:
    """The tree as the page gets it: names of modules rather than whole paths."""
    names: dict[str, int] = {}
    name, parents = [], tree.parent.tolist()
    fqns = tree.fqn
    for row, fqn in enumerate(fqns):
        above = parents[row]
        own = fqn
        if above >= 0:
            length = len(fqns[above]) + 1
            if fqn.startswith(fqns[above] + "."):
                own = fqn[length:]
            else:  # named otherwise than its parent: it stands alone
                parents[row] = -1
        name.append(names.setdefault(own, len(names)))
    types: dict[str, int] = {}
    type_ = [types.setdefault(t, len(types)) if t else -1 for t in tree.type]
    return ApiModuleTree(
        names=tuple(names),
        name=i32(name),
        types=tuple(types),
        type=i32(type_),
        parent=i32(parents),
        is_fsdp=u8(tree.is_fsdp),
        param_bytes=f64(tree.param_bytes),
        buffer_bytes=f64(tree.buffer_bytes),
        num_equal=i32(num_equal(tree)),
    )


def group_of(category: str) -> CategoryGroup:
    """The category whose colour it has."""
    return FOLDS_INTO.get(category, "unknown")  # type: ignore[return-value]


def in_order(categories: Iterable[str]) -> tuple[str, ...]:
    """Categories in their fixed order, none twice."""
    return tuple(
        sorted(set(categories), key=lambda name: _ORDER.get(name, len(_ORDER)))
    )


def column_of(columns: Mapping[str, Floats], name: str, like: Floats) -> Floats:
    """A category's column; 0 where others are known and it does not occur."""
    found = columns.get(name)
    return np.where(np.isnan(like), np.nan, 0.0) if found is None else found


def module_series(
    categories: Sequence[str], totals: Floats, held: Floats | None
) -> tuple[ModuleSeries, ...]:
    """Categories by (category, row) as a response has them."""
    nothing = np.full(totals.shape[1], np.nan)
    return tuple(
        ModuleSeries(
            name=name,
            group=group_of(name),
            total_bytes=f64(totals[index]),
            held_bytes=f64(nothing if held is None else held[index]),
        )
        for index, name in enumerate(categories)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Columns over the modules of one tree."""

    total: Floats
    """All that was tracked on the rank at each module's moment."""
    held: Floats
    """By the module and those below it; NaN where unknown, as is `own`."""
    own: Floats
    """By the module itself."""
    columns: Mapping[str, Floats]
    """By category, of the chosen measure."""

    @classmethod
    def of(
        cls,
        memory: ModuleMemory,
        table: StateTable,
        device: int,
        measure: ModuleMeasure,
    ) -> Held:
        """The columns of one state."""
        nothing = np.full(table.totals.shape, np.nan)
        own, held = memory.own(table, device), memory.held(table, device)
        own = nothing if own is None else own
        held = nothing if held is None else held
        shown = held if measure == "held" else table.totals
        columns = dict(zip(memory.categories, shown, strict=True))
        return cls(table.total_bytes, held.sum(axis=0), own.sum(axis=0), columns)

    def moved(self, rows: Ints | None) -> Held:
        """The same for another tree, whose modules are these `rows`; -1 for none."""
        if rows is None:
            return self

        def at(values: Floats) -> Floats:
            return np.append(values, np.nan)[rows]

        columns = {name: at(column) for name, column in self.columns.items()}
        return Held(at(self.total), at(self.held), at(self.own), columns)


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Columns to compare with, over the modules shown."""

    held: Held
    described: ModuleBaseline


class BaselineQuery(WindowQuery, frozen=True):
    """A call of a window's modules, and what it is compared with."""

    call: Annotated[int, Meta(ge=0, le=10**9)] | None = None
    against: Literal["state", "window", "rank", "median"] | None = None
    against_state: ModuleState | None = None
    against_window: Text | None = None
    against_rank: Rank | None = None


def baseline_of(
    reader: ModulesReader,
    view: View[BaselineQuery],
    choice: Choice,
    opened: RankModules,
    state: str,
    measure: ModuleMeasure,
) -> Baseline | None:
    """The baseline a request asks for; None where it asks for none, or has none."""
    asked = view.query
    of_state, key, rank = state, choice.key, choice.rank
    if asked.against == "state" and asked.against_state:
        of_state = asked.against_state
    elif asked.against == "window":
        key = chosen_window(choice.windows, asked.against_window) or key
    elif asked.against == "rank" and asked.against_rank is not None:
        rank = asked.against_rank
    elif asked.against != "median":
        return None
    comparison = _Comparison(
        reader, choice, opened.memory.tree, of_state, measure, asked.call
    )
    ranks = choice.windows[key]
    described = ModuleBaseline(
        kind=asked.against,
        state=of_state,  # type: ignore[arg-type]  # one of the contract's words
        window=key.id,
        rank=None if asked.against == "median" else rank,
        num_ranks=1,
        of_ranks=len(ranks),
    )
    if asked.against == "median":
        return comparison.median(list(ranks.values()), described, view.budget)
    if rank not in ranks:
        return None
    held = comparison.held(ranks[rank])
    return None if held is None else Baseline(held, described)


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """Brings what other windows hold to the modules shown."""

    reader: ModulesReader
    choice: Choice
    tree: ModuleTree
    state: str
    measure: ModuleMeasure
    call: int | None

    def held(self, window: RankWindow, *, keep: bool = True) -> Held | None:
        """What a rank held in a window; None where that cannot be read."""
        problems = self.choice.problems
        opened = open_window(self.reader, window, problems, keep=keep)
        if opened is None:
            return None
        memory = opened.memory
        device = device_of(memory, self.choice.device_name)
        table = memory.at(self.state, device, self.call)
        held = Held.of(memory, table, device, self.measure)
        return held.moved(rows_by_name(self.tree, memory.tree))

    def median(
        self,
        windows: Sequence[RankWindow],
        described: ModuleBaseline,
        budget: Budget,
    ) -> Baseline | None:
        """The median over ranks of each number by itself."""
        found: list[Held] = []
        room = MAX_MEDIAN_BYTES
        for window in spread(windows):
            if found and (not budget.allows() or room < 0):
                budget.exhausted = True
                break
            held = self.held(window, keep=False)
            if held is not None:
                found.append(held)
                room -= (3 + len(held.columns)) * held.total.nbytes
        if not found:
            return None
        names = in_order(name for held in found for name in held.columns)
        columns = {
            name: _median([column_of(h.columns, name, h.total) for h in found])
            for name in names
        }
        total = _median([h.total for h in found])
        held_bytes = _median([h.held for h in found])
        own = _median([h.own for h in found])
        said = replace(described, num_ranks=len(found))
        return Baseline(Held(total, held_bytes, own, columns), said)


def rows_by_name(wanted: ModuleTree, found: ModuleTree) -> Ints | None:
    """Of each module of `wanted` the row in `found`, -1 for none; None: all the same."""
    if wanted is found or wanted.fqn == found.fqn:
        return None
    row_of = {fqn: row for row, fqn in reversed(list(enumerate(found.fqn)))}
    return np.array([row_of.get(fqn, -1) for fqn in wanted.fqn], np.int64)


def spread(windows: Sequence[RankWindow]) -> list[RankWindow]:
    """Ranks so ordered that any first few of them are spread over all."""
    ordered = sorted(windows, key=lambda window: window.rank)
    num_bits = max(len(ordered) - 1, 0).bit_length()

    def reversed_bits(index: int) -> int:
        return int(f"{index:0{max(num_bits, 1)}b}"[::-1], 2)

    return [ordered[i] for i in sorted(range(len(ordered)), key=reversed_bits)]


def _median(columns: Sequence[Floats]) -> Floats:
    """Over the ranks that have a number; NaN where none has."""
    values = np.sort(np.stack(columns), axis=0)  # what is not known comes last
    num = np.count_nonzero(~np.isnan(values), axis=0)
    low = np.take_along_axis(values, np.maximum(num - 1, 0)[None] // 2, axis=0)
    high = np.take_along_axis(values, (num // 2)[None], axis=0)
    result: Floats = np.where(num > 0, (low + high) / 2, np.nan)[0]
    return result
