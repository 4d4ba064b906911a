"""The table of a tracked step's modules: what each holds, and what it is compared with."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.api.memory.modules import CATEGORY_LABELS
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.facts.modules.columns import column_of, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.modules.tree import ModuleTree
    from memboard.tb_plugin.api.memory.modules import ModuleMeasure
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.facts.modules.columns import ModuleColumns
    from memboard.tb_plugin.facts.modules.values import ModuleValues

_RANK_TOTAL: Final = Column(
    "rank_total_bytes",
    "Rank total",
    unit="bytes",
    help=(
        "All that the rank held at the module's moment, whoever holds it: what torch's"
        " trackers print"
    ),
    bar="unknown",
)
_HELD: Final = Column(
    "held_bytes",
    "Memory",
    unit="bytes",
    help="What the module holds, with all modules below it",
    bar="unknown",
)
_OWN: Final = Column(
    "own_bytes",
    "Own",
    unit="bytes",
    help=(
        "Own bytes, without those of its children: its parameters, gradients and"
        " optimizer states, and what its code allocated"
    ),
    bar="unknown",
)
_CATEGORY_HELP: Final[dict[ModuleMeasure, str]] = {
    "held": "Of this category, with all modules below",
    "total": "The rank's total of this category at the module's moment",
}
_WHICH_CALL: Final = Column(
    "which_call",
    "Call",
    unit="text",
    help="Which call of the module is shown, and how many there were",
    absent="The module was not called",
    sorts=False,
)
_IN_FILES: Final = (
    Column("type", unit="text"),
    Column("fsdp"),
    Column("own_param_bytes", unit="bytes"),
    Column("own_buffer_bytes", unit="bytes"),
    Column("num_calls"),
    Column("call"),
    Column("time_us", unit="us"),
)


class _Quantity(NamedTuple):
    """Bytes of every module, and of what it is compared with."""

    column: Column
    bytes: Floats
    baseline: Floats | None
    is_shown: bool

    @property
    def longest(self) -> float:
        """The largest number of either; 0 where all are unknown."""
        both = [self.bytes] if self.baseline is None else [self.bytes, self.baseline]
        return float(np.fmax.reduce(np.abs(both), axis=None, initial=0.0))

    @property
    def shown(self) -> tuple[Column, Floats]:
        """The bytes, or where there is a baseline how many more than there."""
        if self.baseline is None:
            return self.column, self.bytes
        column = self.column._replace(
            key=self.column.key.replace("_bytes", "_change_bytes"),
            title=f"Δ\N{NO-BREAK SPACE}{self.column.title}",
            unit="change_bytes",
            bar="change",
        )
        return column, self.bytes - self.baseline

    def in_files(self) -> Iterator[tuple[Column, Floats]]:
        """What is not shown of it."""
        hidden = Column(self.column.key, unit="bytes")
        if self.baseline is not None or not self.is_shown:
            yield hidden, self.bytes
        if self.baseline is not None:
            yield hidden._replace(key=f"baseline_{hidden.key}"), self.baseline


def categories_of(values: ModuleValues) -> tuple[str, ...]:
    """Fine names of all that occur on either side, in their fixed order."""
    others = () if values.baseline is None else values.baseline.held.columns
    return in_order([*values.held.columns, *others])


def module_table(values: ModuleValues, tree: ModuleTree) -> TableRows:
    """A row for each module and for what stands for several of them.

    Bytes of modules and the rank's total never stand side by side: a total in a module's
    row reads as the module's.
    """
    quantities = [*_sums(values), *_categories(values)]
    shown = [quantity.shown for quantity in quantities if quantity.is_shown]
    rows, table = values.rows, values.table
    calls, which = rows.at(table.num_calls, 0), rows.at(table.call, -1)
    call = () if values.max_calls <= 1 else ((_WHICH_CALL, _call_texts(which, calls)),)
    in_files = {
        "type": rows.types,
        "fsdp": rows.at(tree.is_fsdp, 0),
        "own_param_bytes": rows.at(tree.param_bytes),
        "own_buffer_bytes": rows.at(tree.buffer_bytes),
        "num_calls": calls,
        "call": which,
        "time_us": 1e3 * rows.at(table.time_us),
    }
    columns = [
        *shown,
        *call,
        *((column, in_files[column.key]) for column in _IN_FILES),
        *(column for quantity in quantities for column in quantity.in_files()),
    ]
    # All bars are of one scale.
    longest = max(float(np.fmax.reduce(np.abs(of), initial=0.0)) for _, of in shown)
    return titled(
        table_of(
            [column for column, _ in columns],
            {column.key: of for column, of in columns},
            usual=shown[0][0].key,
            more={column.key: {"longest": longest} for column, _ in shown},
        ),
        "Modules",
        empty="This step has no modules.",
    )


def _sums(values: ModuleValues) -> Iterator[_Quantity]:
    of_rank = values.measure == "total"
    sums: tuple[tuple[Column, Callable[[ModuleColumns], Floats], bool], ...] = (
        (_RANK_TOTAL, attrgetter("total"), of_rank),
        (_HELD, attrgetter("held"), not of_rank),
        (_OWN, attrgetter("own"), not of_rank),
    )
    for column, sum_of, is_shown in sums:
        beside = None if values.baseline is None else sum_of(values.baseline.held)
        yield _Quantity(column, sum_of(values.held), beside, is_shown)


def _categories(values: ModuleValues) -> Sequence[_Quantity]:
    """The largest first; in files alone where all are zero."""
    ours = values.held
    theirs = None if values.baseline is None else values.baseline.held
    quantities = []
    for category in categories_of(values):
        column = Column(
            f"{category}_bytes",
            CATEGORY_LABELS.get(category, category),
            unit="bytes",
            help=_CATEGORY_HELP[values.measure],
            bar=category,
        )
        baseline = (
            None
            if theirs is None
            else column_of(theirs.columns, category, theirs.total)
        )
        of_modules = column_of(ours.columns, category, ours.total)
        quantity = _Quantity(column, of_modules, baseline, is_shown=True)
        quantities.append(quantity._replace(is_shown=quantity.longest > 0))
    return sorted(quantities, key=lambda quantity: -quantity.longest)


def _call_texts(which: Floats, calls: Floats) -> list[str]:
    # `3 of 3`
    return [
        "" if call < 0 or not num else f"{call + 1:,.0f} of {num:,.0f}"
        for call, num in zip(which.tolist(), calls.tolist(), strict=True)
    ]
