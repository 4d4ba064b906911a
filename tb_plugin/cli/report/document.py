"""A report as sections of lines and tables, rendered as text and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memboard.collector.format.sizes import printable
from memboard.tb_plugin.analysis.text_tables import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Block(Protocol):
    """A part of several lines, such as a table or a finding."""

    def text_lines(self, max_width: int | None = None) -> Iterable[str]: ...

    def markdown_lines(self) -> Iterable[str]: ...


Item: TypeAlias = "str | Block | Section"


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
        else:
            room = None if max_width is None else max_width - len(inner)
            lines = item.text_lines(room)
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
            elif not isinstance(item, str):
                yield from item.markdown_lines()
