"""Text of commands, printed as a terminal shows it best."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

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
_MOST_INDENT: Final = 0.75
"""Share of the width up to which what goes on stands below the last of several columns."""


def say(text: str, stream: TextIO | None = None) -> None:
    """Print it, by default to standard output; on a terminal wrapped and coloured.

    Without colours where NO_COLOR (no-color.org) or TERM=dumb is set.
    """
    stream = sys.stdout if stream is None else stream
    print(_for_terminal(text) if stream.isatty() else text, file=stream)


def width_of(stream: TextIO) -> int | None:
    """Letters of a line, where it is a terminal."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def _for_terminal(text: str) -> str:
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    for line in text.split("\n"):
        wrapped = _wrapped(line, width)
        lines += wrapped if is_plain else _coloured(wrapped)
    return "\n".join(lines)


def _wrapped(line: str, width: int) -> list[str]:
    """At words; what goes on stands further in, or below the last column of a table."""
    if len(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip()) + 2
    columns = [gap.end() for gap in re.finditer(r"(?<=\S)  +", line)]
    if columns:
        indent = columns[-1] if columns[-1] <= width * _MOST_INDENT else indent
    more = " " * indent
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=more,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _coloured(lines: list[str]) -> list[str]:
    """A line in the colour that its beginning has, wherever it was wrapped."""
    first_line = lines[0].lstrip()
    for start, code in _COLOURS.items():
        if first_line.startswith(start):
            return [
                f"{' ' * (len(line) - len(line.lstrip()))}\033[{code}m{line.lstrip()}\033[0m"
                for line in lines
            ]
    return lines
