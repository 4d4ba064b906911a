"""Parts of what verbs print: sizes, times, tables and problems as plain text."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def time_text(time_ms: float) -> str:
    """A time of day in UTC; `time_ms` since 1970."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1e3, timezone.utc)
    except (OverflowError, OSError, ValueError):
        # The file's clock may have said anything.
        return "at an unknown time"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def counted(number: int, what: str) -> str:
    """`3 ranks`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows below each other, the first column to the left."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def problem_lines(problem: Mapping[str, Any]) -> Iterator[str]:
    """What could not be read, where, and what to do."""
    where = ", ".join(filter(None, (problem["path"], problem["where"])))
    yield f"{problem['severity']}: {printable(problem['what'])}"
    yield f"  where: {printable(where)}"
    if problem["salvaged"]:
        yield f"  what was read: {printable(problem['salvaged'])}"
    yield f"  what to do: {printable(problem['remedy'])}"


def printable(text: str) -> str:
    """Names and messages come from files: nothing in them may steer a terminal."""
    return "".join(c if c.isprintable() else "?" for c in str(text))
