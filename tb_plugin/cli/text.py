"""Plain text that several verbs print: figures and problems."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from memboard.collector.cli.terminal import say
from memboard.collector.format.sizes import printable, range_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memboard.tb_plugin.api.base import Problem


def figure_line(label: str, value: str) -> str:
    """A figure of a prediction."""
    return f"    {label:28} {value}"


def estimate_lines(label: str, low: float, high: float, source: str) -> Iterator[str]:
    """Memory outside of torch's allocator, with the source of the estimate."""
    yield figure_line(f"+ {printable(label)}", range_text(low, high))
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
