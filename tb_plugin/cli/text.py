"""Plain text that several verbs print: tables and problems."""

from __future__ import annotations

import sys
import textwrap
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from memboard.collector.cli.failure import printable
from memboard.collector.cli.terminal import say
from memboard.collector.format.sizes import range_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memboard.tb_plugin.api.base import Problem

_GAP: Final = 2
_MIN_WIDTH: Final = 16
"""Letters of a line in a cell that is wrapped."""


def text_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int] = (0,),
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
        say(f"memboard {verb}: {complaint}", sys.stderr)
