"""Columns of module memory, and what they are compared with.

That is another state, window or rank, or the median. Modules are matched by fqn: pipeline
stages and changed models have others, which then have no baseline. The median reads ranks
spread evenly over all of them, as many as time and memory allow, and says how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from memboard.collector.format.memory import CATEGORIES, FOLDS_INTO
from memboard.tb_plugin.analysis.modules.states import ALL_STATES, WINDOW_STATES
from memboard.tb_plugin.analysis.modules.tree import folds_of, num_equal
from memboard.tb_plugin.api.base import i32
from memboard.tb_plugin.api.memory.modules import ModuleBaseline
from memboard.tb_plugin.api.memory.modules import ModuleTree as ApiModuleTree
from memboard.tb_plugin.contract.parameters import Text
from memboard.tb_plugin.facts.modules.choice import (
    WindowQuery,
    chosen_window,
    device_of,
    open_window,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.modules.log import ModuleMemory
    from memboard.tb_plugin.analysis.modules.states import StateTable
    from memboard.tb_plugin.analysis.modules.tree import ModuleTree
    from memboard.tb_plugin.api.memory.modules import CategoryGroup, ModuleMeasure
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.modules.choice import Choice
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.captures.modules import (
        ModulesReader,
        RankModules,
        RankWindow,
    )

_ORDER: Final = {name: index for index, name in enumerate(CATEGORIES)}

MAX_MEDIAN_BYTES: Final = 128 << 20
"""Memory of the columns of all ranks while their median is made."""


@dataclass(frozen=True, slots=True, eq=False)
class ShownRows:
    """The rows of an answer: modules, and before equal ones what stands for them."""

    source: Ints
    """Rows of the tree; -1 for what stands for others."""
    folds: Sequence[tuple[int, Ints]]
    """Row here, and the rows of the tree that it stands for."""
    tree: ApiModuleTree
    types: tuple[str, ...]
    """Of modules, or of those that a row stands for; empty where unknown."""

    @classmethod
    def of(cls, tree: ModuleTree) -> ShownRows:
        equal = num_equal(tree)
        first = {int(fold.members[0]): fold for fold in folds_of(tree, equal)}
        source: list[int] = []
        folds: list[tuple[int, Ints]] = []
        for row in range(len(tree)):
            if row in first:
                folds.append((len(source), first[row].members))
                source.append(-1)
            source.append(row)
        rows = np.array(source, np.int64)
        first_members = {row: int(members[0]) for row, members in folds}
        types = tuple(
            tree.type[first_members.get(row, module)]
            for row, module in enumerate(source)
        )
        return cls(rows, folds, _tree_columns(tree, equal, rows, folds), types)

    @property
    def parent(self) -> Ints:
        """By row, what it is shown below: its module, or what stands for it."""
        fold = self.tree.fold
        is_member = (fold >= 0) & (fold != np.arange(len(fold)))
        return np.where(is_member, fold, self.tree.parent).astype(np.int64)

    def at(self, values: Floats | Ints, absent: float = np.nan) -> Floats:
        """A column of the tree; `absent` for what stands for others."""
        return np.append(values, absent)[self.source]

    def sums(self, values: Floats) -> Floats:
        """A column of the tree, summed up for what stands for others."""
        at_states = self.at(values)
        for row, members in self.folds:
            at_states[row] = values[members].sum()
        return at_states


def _tree_columns(
    tree: ModuleTree, equal: Ints, source: Ints, folds: Sequence[tuple[int, Ints]]
) -> ApiModuleTree:
    """The tree as the page gets it."""
    row_of = np.full(len(tree), -1, np.int64)
    row_of[source[source >= 0]] = np.flatnonzero(source >= 0)
    fold = np.full(len(source), -1, np.int64)
    members = dict(folds)
    names: list[str] = []
    fqns: list[str] = []
    labels: list[str] = []
    parents, numbers = [], []
    for row, of in enumerate(source.tolist()):
        first = int(members[row][0]) if of < 0 else of
        above = int(tree.parent[first])
        if of < 0:
            mine = members[row]
            fold[row] = fold[row_of[mine]] = row
            own = [tree.fqn[row].rpartition(".")[2] for row in mine[:2].tolist()]
            own += ["…"] if len(mine) > 2 else []
            text, number = f"{{{','.join(own)}}}", len(mine)
        else:
            text, number = tree.fqn[of], int(equal[of])
            prefix = f"{tree.fqn[above]}."
            if above >= 0 and not text.startswith(prefix):
                above = -1  # named otherwise than its parent: it stands alone
            elif above >= 0:
                text = text.removeprefix(prefix)
        parent = int(row_of[above]) if above >= 0 else -1
        layers = f"{text}.*"
        if of < 0 and above >= 0:
            layers = f"{names[parent]}.{text}"
        names.append(text)
        fqns.append(text if parent < 0 else f"{fqns[parent]}.{text}")
        labels.append(
            f"{number:,} \N{MULTIPLICATION SIGN} {layers}" if number else text
        )
        parents.append(parent)
        numbers.append(number)
    return ApiModuleTree(
        fqn=tuple(fqns),
        label=tuple(labels),
        parent=i32(parents),
        num_equal=i32(numbers),
        fold=i32(fold),
    )


def adds_up(state: str, measure: ModuleMeasure) -> bool:
    """Whether bytes of modules side by side have a sum: of one moment, and their own."""
    return state in WINDOW_STATES and measure == "held"


def group_of(category: str) -> CategoryGroup:
    """The category whose colour it has."""
    return FOLDS_INTO.get(category, "unknown")  # type: ignore[return-value]


def in_order(categories: Iterable[str]) -> tuple[str, ...]:
    """Categories in their fixed order, none twice."""
    return tuple(
        sorted(set(categories), key=lambda name: _ORDER.get(name, len(_ORDER)))
    )


def column_of(columns: Mapping[str, Floats], category: str, like: Floats) -> Floats:
    """A category's column; 0 where others are known and it does not occur."""
    column = columns.get(category)
    return np.where(np.isnan(like), np.nan, 0.0) if column is None else column


def own_bytes(memory: ModuleMemory, table: StateTable, device: int) -> Floats:
    """Bytes that each module holds without those below it; NaN where unknown."""
    own = memory.own(table, device)
    return np.full(len(table.total_bytes), np.nan) if own is None else own.sum(axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class ModuleColumns:
    """Columns over the modules of one tree."""

    total: Floats
    """All that was tracked on the rank at each module's moment."""
    held: Floats
    """By the module and those below it; NaN where unknown, as is `own`."""
    own: Floats
    columns: Mapping[str, Floats]
    """By category, of the chosen measure."""

    @classmethod
    def of(
        cls,
        memory: ModuleMemory,
        table: StateTable,
        device: int,
        measure: ModuleMeasure,
    ) -> ModuleColumns:
        """The columns of one state."""
        nothing = np.full(table.totals.shape, np.nan)
        held_bytes = memory.held(table, device)
        held_bytes = nothing if held_bytes is None else held_bytes
        shown = held_bytes if measure == "held" else table.totals
        columns = dict(zip(memory.categories, shown, strict=True))
        own = own_bytes(memory, table, device)
        return cls(table.total_bytes, held_bytes.sum(axis=0), own, columns)

    def shown(self, rows: ShownRows, *, added: bool) -> ModuleColumns:
        """For the rows of an answer; what stands for several is `added` up, or unknown."""
        of = rows.sums if added else rows.at
        columns = {category: of(column) for category, column in self.columns.items()}
        return ModuleColumns(rows.at(self.total), of(self.held), of(self.own), columns)

    def moved(self, rows: Ints | None) -> ModuleColumns:
        """The same for another tree, whose modules are these `rows`; -1 for none."""
        if rows is None:
            return self

        def at(values: Floats) -> Floats:
            return np.append(values, np.nan)[rows]

        columns = {category: at(column) for category, column in self.columns.items()}
        return ModuleColumns(at(self.total), at(self.held), at(self.own), columns)


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Columns to compare with, over the modules shown."""

    held: ModuleColumns
    described: ModuleBaseline


class BaselineQuery(WindowQuery, frozen=True):
    """A call of a window's modules, and what it is compared with."""

    call: Annotated[int, Meta(ge=0, le=10**9)] | None = None
    against: Text | None = None  # `median`, `rank:3`, `window:ID`, `state:NAME`


def baseline_of(
    reader: ModulesReader,
    view: View[BaselineQuery],
    choice: Choice,
    opened: RankModules,
    state: str,
    measure: ModuleMeasure,
    rows: ShownRows,
) -> Baseline | None:
    """The baseline a request asks for; None where it asks for none, or has none."""
    kind, _, which = (view.query.against or "").partition(":")
    of_state, key, rank = state, choice.key, choice.rank
    if kind == "state" and which in ALL_STATES:
        of_state = which
    elif kind == "window":
        key = chosen_window(choice.windows, which) or key
    elif kind == "rank" and which.isdecimal():
        rank = int(which)
    elif kind != "median":
        return None
    comparison = _Comparison(
        reader, choice, opened.memory.tree, rows, of_state, measure, view.query.call
    )
    ranks = choice.windows[key]
    described = ModuleBaseline(
        kind=kind,  # type: ignore[arg-type]  # one of the contract's words, as the state
        state=of_state,  # type: ignore[arg-type]
        window=key.id,
        rank=None if kind == "median" else rank,
        num_ranks=1,
        of_ranks=len(ranks),
    )
    if kind == "median":
        return comparison.median(list(ranks.values()), described, view.budget)
    if rank not in ranks:
        return None
    columns = comparison.held(ranks[rank])
    return None if columns is None else Baseline(columns, described)


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """Brings what other windows hold to the modules shown."""

    reader: ModulesReader
    choice: Choice
    tree: ModuleTree
    rows: ShownRows
    state: str
    measure: ModuleMeasure
    call: int | None

    def held(self, window: RankWindow, *, keep: bool = True) -> ModuleColumns | None:
        """What a rank held in a window; None where that cannot be read."""
        problems = self.choice.problems
        opened = open_window(self.reader, window, problems, keep=keep)
        if opened is None:
            return None
        memory = opened.memory
        device = device_of(memory, self.choice.device_name)
        table = memory.at(self.state, device, self.call)
        columns = ModuleColumns.of(memory, table, device, self.measure)
        moved = columns.moved(rows_by_name(self.tree, memory.tree))
        return moved.shown(self.rows, added=adds_up(self.state, self.measure))

    def median(
        self,
        windows: Sequence[RankWindow],
        described: ModuleBaseline,
        budget: Budget,
    ) -> Baseline | None:
        """The median over ranks of each number by itself."""
        columns_of_ranks: list[ModuleColumns] = []
        room = MAX_MEDIAN_BYTES
        for window in spread(windows):
            if columns_of_ranks and (not budget.allows() or room < 0):
                budget.exhausted = True
                break
            of_rank = self.held(window, keep=False)
            if of_rank is not None:
                columns_of_ranks.append(of_rank)
                room -= (3 + len(of_rank.columns)) * of_rank.total.nbytes
        if not columns_of_ranks:
            return None
        names = in_order(
            category for columns in columns_of_ranks for category in columns.columns
        )
        columns = {
            category: _median(
                [column_of(h.columns, category, h.total) for h in columns_of_ranks]
            )
            for category in names
        }
        total = _median([h.total for h in columns_of_ranks])
        held_bytes = _median([h.held for h in columns_of_ranks])
        own = _median([h.own for h in columns_of_ranks])
        of_ranks = replace(described, num_ranks=len(columns_of_ranks))
        return Baseline(ModuleColumns(total, held_bytes, own, columns), of_ranks)


def rows_by_name(wanted: ModuleTree, other: ModuleTree) -> Ints | None:
    """Of each module of `wanted` the row in `other`, -1 for none; None: all the same."""
    if wanted is other or wanted.fqn == other.fqn:
        return None
    row_of = {fqn: row for row, fqn in reversed(list(enumerate(other.fqn)))}
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
