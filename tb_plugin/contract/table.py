"""Tables as they are sent: columns declared once, searched, sorted and cut."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from memboard.tb_plugin.api.base import f64
from memboard.tb_plugin.api.tables import TableColumn, TableRows

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Iterable,
        Mapping,
        Sequence,
        Sized,
    )

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.api.tables import ColumnUnit

MAX_TEXT: Final = 2_000
"""Letters of a text that are sent; of operators the page sends them back to ask of one."""

_TEXTS: Final = ("text", "name", "category", "problem")
_SIGNED: Final = frozenset({
    "excess_seconds",
    "change",
    "change_bytes",
    "change_share",
    "change_of_row",
})  # fmt: skip
"""Units of differences, which may be below zero."""
_NO_WORDS: Final[Mapping[str, Any]] = MappingProxyType({})
_NANOSECONDS: Final = {"ms": 1e6, "us": 1e3}
"""Of the units of times, which analyses have in nanoseconds."""


def cut(text: str, length: int = MAX_TEXT) -> str:
    """A text as it is sent: one that is longer ends in `…`."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def text_of(strings: Sequence[str], row: int) -> str:
    """A text as it is sent; empty where there is none."""
    return cut(strings[row]) if row >= 0 else ""


class RowsQuery(Protocol):
    """Which rows of a table the page shows, in which order."""

    @property
    def sort(self) -> str | None:
        """A column, `-` before it for ascending order; None: the table's own order."""

    @property
    def text(self) -> str | None:
        """What one of the searched columns must contain, in any case."""

    @property
    def top(self) -> int:
        """How many rows at most."""


class Column(NamedTuple):
    """A column, with the words that the page has for it."""

    key: str
    title: str = ""
    unit: ColumnUnit = "count"
    help: str = ""
    absent: str = ""
    """Why a value is not known: NaN, None, an empty text or, of these columns, negative."""
    absent_text: str = ""
    """Stands there instead of a dash."""
    bar: str = ""
    share_of: str = ""
    sorts: bool = True
    names: tuple[str, ...] = ()
    """Its texts by number, where the analysis' table has these; empty: `Trace.strings`."""
    value: Callable[[Any], Any] | None = None
    """Of a row of `rows_of`; None: its attribute of that name."""

    @property
    def attribute(self) -> str:
        """Of the analysis' table or its rows."""
        if self.unit not in _NANOSECONDS:
            return self.key
        return f"{self.key.removesuffix(f'_{self.unit}')}_ns"

    @property
    def is_text(self) -> bool:
        """Whether its values are texts."""
        return self.unit in _TEXTS

    def numbers(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """As they are sent, of the analysis' own."""
        scaled = np.asarray(values, np.float64) / _NANOSECONDS.get(self.unit, 1.0)
        # Analyses say -1 where something is absent.
        is_marked = self.absent and self.unit not in _SIGNED
        return np.where(scaled < 0, np.nan, scaled) if is_marked else scaled

    def sent(self, values: Iterable[Any], **more: Any) -> TableColumn:
        """With its values, in the unit that is sent, by row.

        `order`: numbers by which texts are sorted, where that is not from A.
        """
        texts: tuple[str, ...] = ()
        numbers = f64(more.pop("order", ()))
        if self.is_text:
            texts = tuple(cut(str(value)) for value in values)
        else:
            numbers = f64(values if isinstance(values, np.ndarray) else [*values])
        if self.bar:
            present = np.abs(numbers[~np.isnan(numbers)])
            more.setdefault("longest", float(present.max(initial=0.0)))
        fields = {**self._asdict(), **more, "texts": texts, "numbers": numbers}
        del fields["names"], fields["value"]
        return TableColumn(**fields)


def table_of(
    columns: Iterable[Column],
    values: Mapping[str, Iterable[Any]],
    usual: str,
    num_all: int | None = None,
    more: Mapping[str, Mapping[str, Any]] = _NO_WORDS,
    colours: tuple[str, ...] = (),
) -> TableRows:
    """A table of the analysis' own values, by column; `more`: words of a column."""
    sent = []
    for column in columns:
        own = values[column.key]
        if not column.is_text:
            own = column.numbers([np.nan if value is None else value for value in own])
        sent.append(column.sent(own, **more.get(column.key, {})))
    num = max(
        (max(len(column.texts), len(column.numbers)) for column in sent), default=0
    )
    return TableRows(
        columns=tuple(sent),
        num_rows=num,
        num_all=num if num_all is None else num_all,
        usual=usual,
        colours=colours,
    )


def rows_of(
    columns: Sequence[Column],
    rows: Sequence[object],
    usual: str,
    num_all: int | None = None,
    **more: Mapping[str, Any],
) -> TableRows:
    """A table of objects, each with its columns' values."""
    values = {
        column.key: [*map(column.value or attrgetter(column.attribute), rows)]
        for column in columns
    }
    return table_of(columns, values, usual, num_all, more)


def titled(
    rows: TableRows, title: str, summary: str = "", empty: str = ""
) -> TableRows:
    """A table with its words; `summary` also says that not all rows are listed."""
    if rows.num_rows < rows.num_all:
        listed = f"the first {rows.num_rows:,} of {rows.num_all:,} are listed"
        summary = f"{summary}; {listed}" if summary else listed
    return replace(
        rows, title=title, summary=f"{summary}." if summary else "", empty=empty
    )


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of a table of an analysis, each an attribute of equal length.

    Texts are rows of `Trace.strings` there; -1: none.
    """

    columns: tuple[Column, ...]
    searched: tuple[str, ...] = ("name",)
    max_text: int = MAX_TEXT

    def rows(
        self,
        table: Sized,
        strings: Sequence[str],
        query: RowsQuery,
        default: str,
        among: Ints | None = None,
    ) -> tuple[Ints, int]:
        """The first rows by `query.sort`, and how many hold `query.text`.

        The largest come first, with `-` before the name the smallest, texts from A; what
        is not known comes last either way. A name of no column means `default`.
        Without `among` all rows are looked at.
        """
        rows = np.arange(len(table)) if among is None else among
        if query.text:
            text = query.text.lower()
            is_match = np.zeros(len(rows), np.bool_)
            for column in self.columns:
                if column.key in self.searched:
                    cells = _texts(table, strings, column, rows)
                    matches = [_holds(cell.lower(), text, column) for cell in cells]
                    is_match |= np.array(matches, np.bool_)
            rows = rows[is_match]
        word = query.sort or default
        sort_key, ascending = word.removeprefix("-"), word.startswith("-")
        column_by_key = {column.key: column for column in self.columns if column.sorts}
        if sort_key not in column_by_key:
            sort_key, ascending = default, False
        column = column_by_key[sort_key]
        if column.is_text:
            sort_texts = [
                text.casefold() for text in _texts(table, strings, column, rows)
            ]
            order = sorted(
                range(len(rows)), key=sort_texts.__getitem__, reverse=not ascending
            )
            return rows[order[: query.top]], len(rows)
        values = column.numbers(getattr(table, column.attribute))[rows]
        # The order of NaN is last in numpy, whichever the sign.
        by = np.argsort(values if ascending else -values, kind="stable")
        return rows[by[: query.top]], len(rows)

    def fields(self, table: object, rows: Ints) -> dict[str, Any]:
        """The numbers of some rows, by field of a response that is no table."""
        return {
            column.key: column.numbers(getattr(table, column.attribute))[rows]
            for column in self.columns
        }

    def sent(
        self,
        table: object,
        strings: Sequence[str],
        asked: tuple[Ints, int],
        usual: str,
        *,
        without: Collection[str] = (),
        replaced: Mapping[str, Iterable[Any]] | None = None,
        notes: Mapping[str, tuple[str, ...]] = _NO_WORDS,
        colours: tuple[str, ...] = (),
    ) -> TableRows:
        """The rows that `rows` chose.

        `replaced`, `notes`: by column, values that the table has not, and what stands
        behind each value, of these rows.
        """
        rows, num_all = asked
        replaced_by_key = dict(replaced or {})
        columns = []
        for column in self.columns:
            if column.key in without:
                continue
            total = None
            values = replaced_by_key.get(column.key)
            if values is None and column.is_text:
                texts = _texts(table, strings, column, rows)
                values = [cut(text, self.max_text) for text in texts]
            elif values is None:
                every = column.numbers(getattr(table, column.attribute))
                values = every[rows]
                total = float(np.nansum(every)) if column.share_of else None
            columns.append(
                column.sent(values, sum=total, notes=notes.get(column.key, ()))
            )
        return TableRows(
            columns=tuple(columns),
            num_rows=len(rows),
            num_all=num_all,
            usual=usual,
            colours=colours,
        )


def _holds(cell: str, text: str, column: Column) -> bool:
    """A name of a list has to be whole: `mm` is no communication."""
    return text == cell if column.names else text in cell


def _texts(
    table: object, strings: Sequence[str], column: Column, rows: Ints
) -> list[str]:
    texts = column.names or strings
    numbers = getattr(table, column.key)[rows].tolist()
    return [texts[number] if number >= 0 else "" for number in numbers]
