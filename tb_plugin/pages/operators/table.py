"""Tables of a trace as they are sent: columns declared once, searched, sorted and cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tb_plugin.contract.wire import f64

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.pages.profile.asked import TableQuery

MAX_TEXT: Final = 2_000
"""Letters of a text that are sent; of operators the page sends them back to ask of one."""


def text_of(strings: Sequence[str], row: int) -> str:
    """A text as it is sent; empty where there is none."""
    return strings[row][:MAX_TEXT] if row >= 0 else ""


class Number(NamedTuple):
    """A column of numbers."""

    key: str
    """Field of the response, and what to sort by."""
    column: str = ""
    """Attribute of the analysis' table, where that is called otherwise."""
    per: float = 1.0
    wire: Callable[[npt.ArrayLike], npt.NDArray[Any]] = f64
    negative_is_unknown: bool = False

    def values(self, table: object, rows: Ints) -> npt.NDArray[np.float64]:
        """In the unit that is sent."""
        values = np.asarray(getattr(table, self.column or self.key), np.float64)
        return values[rows] / self.per

    def sorted_by(self, table: object, rows: Ints) -> npt.NDArray[np.float64]:
        """The same; NaN where it is unknown."""
        values = self.values(table, rows)
        return (
            np.where(values < 0, np.nan, values) if self.negative_is_unknown else values
        )


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of a table of an analysis, each an attribute of equal length."""

    numbers: tuple[Number, ...]
    texts: tuple[str, ...] = ()
    """Columns of rows of `Trace.strings`; -1: no text."""
    searched: tuple[str, ...] = ("name",)
    max_text: int = MAX_TEXT

    def rows(
        self,
        table: object,
        strings: Sequence[str],
        query: TableQuery,
        default: str,
        among: Ints,
    ) -> tuple[Ints, int]:
        """The first rows by `query.sort`, and how many hold `query.text`.

        The largest come first, with `-` before the name the smallest, texts from A; what
        is not known comes last either way. A name of no column means `default`.
        """
        rows = among
        if query.text:
            text = query.text.lower()
            found = [self._texts(table, strings, key, rows) for key in self.searched]
            held = [
                any(text in one.lower() for one in row)
                for row in zip(*found, strict=True)
            ]
            rows = rows[np.array(held, dtype=bool)]
        word = query.sort or default
        name, ascending = word.removeprefix("-"), word.startswith("-")
        if name in self.texts:
            words = [one.casefold() for one in self._texts(table, strings, name, rows)]
            order = sorted(
                range(len(rows)), key=words.__getitem__, reverse=not ascending
            )
            return rows[order[: query.top]], len(rows)
        numbers = {one.key: one for one in self.numbers}
        if name not in numbers:
            name, ascending = default, False
        values = numbers[name].sorted_by(table, rows)
        # The order of NaN is last in numpy, whichever the sign.
        by = np.argsort(values if ascending else -values, kind="stable")
        return rows[by[: query.top]], len(rows)

    def sent(self, table: object, strings: Sequence[str], rows: Ints) -> dict[str, Any]:
        """The columns of some rows, by field of the response."""
        return {
            **{
                key: tuple(
                    one[: self.max_text]
                    for one in self._texts(table, strings, key, rows)
                )
                for key in self.texts
            },
            **{one.key: one.wire(one.values(table, rows)) for one in self.numbers},
        }

    def _texts(
        self, table: object, strings: Sequence[str], key: str, rows: Ints
    ) -> list[str]:
        column = getattr(table, key)[rows].tolist()
        return [strings[row] if row >= 0 else "" for row in column]
