"""Plain text that several verbs print: tables and problems."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from collector.cli.failure import printable
from collector.format.sizes import range_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TextIO

    from tb_plugin.api.base import Problem

_COLOURS: Final = {
    "Out of memory": "1;31",
    "memboard ": "31",
    "error:": "31",
    "warning:": "33",
    "try:": "32",
    "what to do:": "32",
    "not recorded:": "2",
}
"""By how a line begins: codes of ECMA-48's SGR."""


def coloured(text: str, stream: TextIO) -> str:
    """The same for a terminal, unless NO_COLOR (no-color.org) or TERM=dumb is set."""
    if (
        not stream.isatty()
        or os.environ.get("NO_COLOR")
        or os.environ.get("TERM") == "dumb"
    ):
        return text
    return "\n".join(map(_coloured_line, text.split("\n")))


def _coloured_line(line: str) -> str:
    words = line.lstrip()
    for start, code in _COLOURS.items():
        if words.startswith(start):
            indent = line[: len(line) - len(words)]
            return f"{indent}\033[{code}m{words}\033[0m"
    return line


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)
) -> Iterator[str]:
    """Rows below each other; `left`: columns of text."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def figure_line(name: str, value: str) -> str:
    """A figure of a prediction."""
    return f"    {name:28} {value}"


def estimate_lines(name: str, low: float, high: float, source: str) -> Iterator[str]:
    """Memory outside of torch's allocator, with the source of the estimate."""
    yield figure_line(f"+ {printable(name)}", range_text(low, high))
    yield f"      {printable(source)}"


def problem_lines(problem: Problem) -> Iterator[str]:
    """A file that could not be read: what, where, and what to do."""
    where = ", ".join(filter(None, (problem.path, problem.where)))
    yield f"{problem.severity}: {printable(problem.what)}"
    yield f"  where: {printable(where)}"
    if problem.salvaged:
        yield f"  what was read: {printable(problem.salvaged)}"
    yield f"  what to do: {printable(problem.remedy)}"


def problem_text(problem: Problem) -> str:
    """The same as one text."""
    return "\n".join(problem_lines(problem))


def complain(verb: str, complaints: Iterable[object]) -> None:
    """Name on standard error what a verb goes on without."""
    for complaint in complaints:
        print(coloured(f"memboard {verb}: {complaint}", sys.stderr), file=sys.stderr)
