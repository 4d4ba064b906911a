"""A report as sections of lines and tables, rendered as text and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from memboard.collector.cli.failure import printable
from memboard.tb_plugin.analysis.findings.render import markdown_table, plain
from memboard.tb_plugin.cli.text import text_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column of a table; cells may hold texts from files."""

    title: str
    cell: Callable[[T], str]
    is_text: bool = False
    """Aligned to the left, as the first column always is."""


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """Rows below titles; columns are declared once for every form."""

    columns: Sequence[Column[T]]
    rows: Sequence[T]

    def cells(self) -> list[tuple[str, ...]]:
        return [tuple(column.cell(row) for column in self.columns) for row in self.rows]


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """A part that has a form of its own in each."""

    text: Sequence[str]
    markdown: Sequence[str]


Item: TypeAlias = "str | Table[Any] | RenderedPart | Section"


@dataclass(slots=True)
class Section:
    """A titled part; its lines may hold texts from files."""

    title: str
    items: list[Item] = field(default_factory=list)

    def add(self, *items: Item | None) -> None:
        self.items += [item for item in items if item is not None]


def text_of(
    section: Section, max_width: int | None = None, indent: str = ""
) -> Iterator[str]:
    """Lines; a section's items stand below its title, further in.

    `max_width`: of rows of tables, in letters.
    """
    yield indent + printable(section.title)
    if not indent:
        yield "=" * len(section.title)
        inner = "  "
    else:
        inner = indent + "  "
    for item in section.items:
        if isinstance(item, str):
            yield inner + printable(item)
        elif isinstance(item, Section):
            yield from text_of(item, max_width, inner)
        elif isinstance(item, RenderedPart):
            yield from (inner + line for line in item.text)
        else:
            rows = [tuple(map(printable, row)) for row in item.cells()]
            head = [column.title for column in item.columns]
            left = [
                index
                for index, column in enumerate(item.columns)
                if column.is_text or not index
            ]
            room = None if max_width is None else max_width - len(inner)
            lines = text_table(head, rows, left, room)
            yield from (inner + line for line in lines if line.strip())


def markdown_of(section: Section, level: int = 1) -> Iterator[str]:
    """The same with headings, lists and tables."""
    yield f"{'#' * level} {plain(section.title)}"
    for kind, items in groupby(section.items, key=type):
        if kind is str:
            yield ""
            yield from (f"- {plain(str(item))}" for item in items)
            continue
        for item in items:
            yield ""
            if isinstance(item, Section):
                yield from markdown_of(item, level + 1)
            elif isinstance(item, RenderedPart):
                yield from item.markdown
            elif isinstance(item, Table):
                right = [
                    index
                    for index, column in enumerate(item.columns)
                    if index and not column.is_text
                ]
                head = [column.title for column in item.columns]
                yield from markdown_table(head, item.cells(), right=right)
