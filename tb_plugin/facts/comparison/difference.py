"""Tables of a comparison: both sides, B less A, and how much of A that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.api.compare import CompareTable
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.contract.table import Column, table_of, titled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.api.compare import CompareBy
    from memboard.tb_plugin.api.tables import ColumnUnit, TableColumn

_ABSENT: Final = "Not known, or only the other side has it"
_CHANGE: Final[Mapping[ColumnUnit, ColumnUnit]] = {
    "bytes": "change_bytes",
    "seconds": "excess_seconds",
}
_DIFFERENCE: Final = Column(
    "",
    "B \N{MINUS SIGN} A",
    help="Positive where B has more; sorted by the size of the difference",
    bar="difference",
)
_PERCENT: Final = Column(
    "percent",
    "%",
    unit="change_share",
    help="(B \N{MINUS SIGN} A) ÷ A; a small difference of a small value is a large percentage",
)
_FIGURES: Final = (
    Column("name", "Number", unit="text", sorts=False),
    Column("a", "A", unit="of_row", sorts=False),
    Column("b", "B", unit="of_row", sorts=False),
    Column("difference", _DIFFERENCE.title, unit="change_of_row", sorts=False),
    _PERCENT._replace(bar="change", sorts=False),
    Column("unit", unit="text"),
)
_NAMES: Final[Mapping[CompareBy, str]] = {
    "line": "Allocated at",
    "stack": "Allocated at, called from",
    "module": "Module",
    "category": "Category",
    "size": "Size of the blocks",
}


def side_columns(
    quantity: str,
    unit: ColumnUnit,
    a: Floats,
    b: Floats,
    *,
    hidden: bool = False,
    both: bool = False,
) -> Iterator[TableColumn]:
    """Those of both sides; a row that one of them lacks, NaN, counts as zero there.

    A side that knows nothing is no column, and there is no difference then, unless
    `both` are known. `hidden`: in files alone.
    """
    sides = (("A", a), ("B", b))
    shown_sides = [(side, of) for side, of in sides if both or np.isfinite(of).any()]
    for side, values in shown_sides:
        key, title = f"{side.lower()}_{quantity}", "" if hidden else side
        yield Column(key, title, unit=unit, absent=_ABSENT).sent(values)
    if len(shown_sides) < 2:
        return
    change = np.nan_to_num(b) - np.nan_to_num(a)
    change[np.isnan(a) & np.isnan(b)] = np.nan
    column = _DIFFERENCE._replace(
        key=f"difference_{quantity}", unit=_CHANGE.get(unit, "change")
    )
    yield column._replace(title="" if hidden else column.title).sent(change)
    if not hidden:
        share = _share(a, b, change)
        share[np.isnan(a) & ~np.isnan(b)] = np.inf
        share[np.isnan(b) & ~np.isnan(a)] = -np.inf
        yield _PERCENT.sent(share)


def _share(a: Floats, b: Floats, change: Floats) -> Floats:
    share = np.where(a == b, 0.0, np.nan)
    return np.divide(change, a, out=share, where=(a > 0) & (a != b))


class Figure(NamedTuple):
    """A number of both sides; None: not known."""

    label: str
    unit: ColumnUnit
    a: float | None
    b: float | None
    hint: str = ""
    note: str = ""
    """Whose number it is; empty: all ranks' together, or there is but one."""


def figures_of(title: str, rows: Sequence[Figure]) -> TableRows:
    """Numbers of several units, in that order."""
    a, b = np.array([(row.a, row.b) for row in rows], np.float64).reshape(-1, 2).T
    values = {
        "name": [row.label for row in rows],
        "a": a,
        "b": b,
        "difference": b - a,
        "percent": _share(a, b, b - a),
        "unit": [row.unit for row in rows],
    }
    names = {
        "notes": tuple(row.note for row in rows),
        "hints": tuple(row.hint for row in rows),
    }
    more: dict[str, dict[str, Any]] = {"name": names, "percent": {"longest": 1.0}}
    return titled(table_of(_FIGURES, values, "", more=more), title)


def difference(
    name_column: Column,
    names: Sequence[str],
    columns: Iterable[TableColumn],
    **more: Any,
) -> TableRows:
    """Rows of that name, and `words` of it; the largest difference first."""
    own = tuple(columns)
    order = [column.key for column in own if column.bar] or [
        column.key for column in own
    ]
    return TableRows(
        title=f"Difference by {name_column.key}",
        empty="There is no such row.",
        columns=(name_column.sent(names, **more), *own),
        num_rows=max((len(column.numbers) for column in own), default=0),
        num_all=len(names),
        usual=order[0] if order else name_column.key,
    )


class Difference(NamedTuple):
    """Live bytes of both sides by something, the largest difference first."""

    by: CompareBy
    labels: Sequence[str]
    """Of a stack the page makes its name."""
    held: Floats
    """(rows, 2). NaN: that side knows nothing."""
    blocks: Ints | None = None
    """(rows, 2); 0: only the other side has it; None: not known."""

    def sent(self) -> CompareTable:
        name_column = Column(self.by, _NAMES[self.by], unit="text")
        rows = difference(name_column, self.labels, self._columns())
        return CompareTable(by=self.by, rows=rows)

    def _columns(self) -> Iterator[TableColumn]:
        blocks = self.blocks
        sizes = self.held if blocks is None else np.where(blocks, self.held, np.nan)
        yield from side_columns(
            "bytes", "bytes", sizes[:, 0], sizes[:, 1], both=blocks is not None
        )
        if blocks is not None:
            for index, side in enumerate("AB"):
                about = f"Live blocks of {side}"
                column = Column(f"{side.lower()}_blocks", f"{side} blocks", help=about)
                yield column.sent(blocks[:, index])
