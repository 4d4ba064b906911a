"""Tables as they are sent: what each column says, and its values by row."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import NO_F64, Columns, F64Column

ColumnUnit: TypeAlias = Literal[
    "text",
    "name",
    "category",
    "problem",
    "stack",
    "count",
    "rank",
    "ms",
    "us",
    "seconds",
    "excess_seconds",
    "instant",
    "bytes",
    "size_class",
    "change_bytes",
    "change",
    "change_share",
    "of_row",
    "change_of_row",
    "bytes_per_second",
    "share",
    "ratio",
    "flops",
    "yes",
    "errors",
]
"""Kinds of values. The first four are texts: any, names of operators and kernels,
categories of memory, and what went wrong. A stack is a number too, of `StacksResponse`;
below 0: none, or all others. An instant
is of the epoch, in ms: the browser knows its time zone. A size class is named by its least bytes: it goes up to
twice as many. Shares are 0 to 1. An excess or a change has
its sign; a share of change is infinite where only one side of a comparison has the row.
`of_row`: as the column `unit` says."""


class TableColumn(Columns, frozen=True, kw_only=True):
    """A column of a table, declared once for page and files."""

    key: str
    """Its word in the URL, in files, and of a route's `sort`."""
    title: str
    """Empty: it is in files alone."""
    help: str
    unit: ColumnUnit
    texts: tuple[str, ...] = ()
    numbers: F64Column = NO_F64
    """NaN: not known. Columns of texts have none, or what they are sorted by."""
    notes: tuple[str, ...] = ()
    """Said after each value; empty: none has any."""
    hints: tuple[str, ...] = ()
    """Said of each value where it is pointed at."""
    absent: str = ""
    """Why a value is not known."""
    absent_text: str = ""
    """Stands there instead of a dash."""
    bar: str = ""
    """Whose colour a value's bar has: kind of work, part of a step or of memory; `row`:
    what `TableRows.colours` says; `change`: of less or of more; `difference`: the same,
    and the column sorts by size. Empty: no bar."""
    longest: float = 0.0
    """As long as a bar can be."""
    sum: float | None = None
    """Of all rows, sent or not; for shares."""
    share_of: str = ""  # `of the device's time`
    sorts: bool = True


class TableRows(Struct, frozen=True, kw_only=True):
    """The rows of a table that are sent."""

    title: str = ""
    """What the rows are; above the table, in its label and in its files' names."""
    summary: str = ""
    empty: str = ""
    """Why there is no row."""
    columns: tuple[TableColumn, ...]
    num_rows: int
    num_all: int
    """Those that match the query, sent or not."""
    usual: str
    """The column that sorts at first: the largest first, with a minus the smallest."""
    colours: tuple[str, ...] = ()
    """By row, for bars: as `TableColumn.bar`."""


NO_ROWS: Final = TableRows(columns=(), num_rows=0, num_all=0, usual="")
