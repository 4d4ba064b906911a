"""Tables whose columns are declared once, as text for terminals and as Markdown."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from memboard.collector.format.sizes import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

_GAP: Final = 2
_MIN_WIDTH: Final = 16
"""Letters of a line in a cell that is wrapped."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column of a table; cells may hold texts from files."""

    title: str
    cell: Callable[[T], str]
    is_text: bool = False
    """Aligned to the left, as the first column always is."""


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """Rows below the titles of their columns, for every form alike."""

    columns: Sequence[Column[T]]
    rows: Sequence[T]

    def text_lines(self, max_width: int | None = None) -> Iterator[str]:
        """Rows for a terminal; `max_width`: in letters, None: as wide as they are."""
        head = tuple(block_text(column.title) for column in self.columns)
        rows = [
            tuple(block_text(column.cell(row)) for column in self.columns)
            for row in self.rows
        ]
        left = [
            index
            for index, column in enumerate(self.columns)
            if column.is_text or not index
        ]
        return text_table(head, rows, left, max_width)

    def markdown_lines(self) -> Iterator[str]:
        titles = [
            f" {column.title} " if column.title else " " for column in self.columns
        ]
        yield f"|{'|'.join(titles)}|"
        marks = [
            "-" if column.is_text or not index else "-:"
            for index, column in enumerate(self.columns)
        ]
        yield f"|{'|'.join(marks)}|"
        for row in self.rows:
            yield f"| {' | '.join(plain(column.cell(row)) for column in self.columns)} |"


def block_text(text: str) -> str:
    """Text from files as one line of a fenced block, which no fence in it ends."""
    return printable(text, " ").replace("```", "'''")


def plain(text: str) -> str:
    """Text from files within Markdown: it neither ends a cell nor becomes markup."""
    escaped = block_text(text)
    for mark in "\\|<`[":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped


def text_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int],
    max_width: int | None = None,
) -> Iterator[str]:
    """Rows below each other; `left`: columns of text.

    Where they are wider than `max_width`, columns of text are wrapped; columns that do not
    fit then follow below, behind the first one again.
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    if max_width is not None:
        widths = _narrowed(widths, left, max_width)
    begin = 1
    while begin == 1 or begin < len(widths):
        end = begin + 1
        while end < len(widths) and (
            max_width is None
            or _total([widths[0], *widths[begin : end + 1]]) <= max_width
        ):
            end += 1
        shown = [0, *range(begin, min(end, len(widths)))]
        for row in (head, *rows):
            yield from _row_lines(
                [(row[index], widths[index], index in left) for index in shown]
            )
        begin = end


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * len(widths)


def _narrowed(widths: list[int], left: Sequence[int], max_width: int) -> list[int]:
    """The same with narrower columns of text, the widest first, as far as needed."""
    narrowed = list(widths)
    while (excess := _total(narrowed) - max_width) > 0:
        widest = max(left, key=lambda index: narrowed[index])
        second = max(
            (narrowed[index] for index in left if index != widest), default=_MIN_WIDTH
        )
        least = max(_MIN_WIDTH, min(second, narrowed[widest] - 1))
        if narrowed[widest] <= _MIN_WIDTH:
            break
        narrowed[widest] = max(least, narrowed[widest] - excess)
    return narrowed


def _row_lines(cells: Sequence[tuple[str, int, bool]]) -> Iterator[str]:
    """One row: a line, or more where cells of text are wrapped."""
    wrapped = [
        [text] if len(text) <= width else textwrap.wrap(text, width)
        for text, width, _ in cells
    ]
    for parts in zip_longest(*wrapped, fillvalue=""):
        line = [
            part.ljust(width) if is_text else part.rjust(width)
            for part, (_, width, is_text) in zip(parts, cells, strict=True)
        ]
        yield (" " * _GAP + (" " * _GAP).join(line)).rstrip()
