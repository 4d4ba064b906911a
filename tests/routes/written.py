"""Answers as text that a person can review and a diff can show.

JSON with sorted keys, one line where it fits; columns and long lists of numbers as one
line of their figures; of long tables the first rows and a checksum of all; numbers with
six digits, or whole.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTH = 118
ROW_WIDTH = 400
"""Of a row of a table: one line each, so that a diff shows rows."""
MOST_ROWS = 12
MOST_INNER_ROWS = 4
"""Of tables in rows of tables."""
_SHORT_COLUMN = 12
_MOST_TEXT = 1_500
_WHOLE_FROM = 1e5
"""From here on the sixth digit is a whole one: times of day keep their milliseconds."""


class Raw(str):
    """Stands in the text as it is, without quotes."""

    __slots__ = ()


def written(value: Any, depth: int = 0) -> str:
    """A value of JSON and columns as text; `depth` is how far it is indented."""
    return _text(_plain(value), depth)


def _text(plain: Any, depth: int, width: int = WIDTH) -> str:
    line = _line(plain)
    inner = "  " * (depth + 1)
    if len(line) + 2 * depth <= width or isinstance(plain, (str, int, float)):
        return line
    if isinstance(plain, dict):
        rows = [
            f"{inner}{key}: {_text(item, depth + 1)}" for key, item in plain.items()
        ]
        return "{\n" + "\n".join(rows) + "\n" + "  " * depth + "}"
    rows = [inner + _text(item, depth + 1, ROW_WIDTH) for item in plain]
    return "[\n" + "\n".join(rows) + "\n" + "  " * depth + "]"


def _line(plain: Any) -> str:
    if isinstance(plain, Raw):
        return str(plain)
    if isinstance(plain, dict):
        return "{" + ", ".join(f"{k}: {_line(v)}" for k, v in plain.items()) + "}"
    if isinstance(plain, list):
        return "[" + ", ".join(map(_line, plain)) + "]"
    return json.dumps(plain, ensure_ascii=False)


def _plain(value: Any, most: int = MOST_ROWS) -> Any:
    """Only what `_line` knows, and as much of it as is shown."""
    if isinstance(value, np.ndarray):
        return Raw(_column(str(value.dtype), value.tolist()))
    if isinstance(value, dict):
        return {str(key): _plain(value[key], most) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        if len(value) > _SHORT_COLUMN and all(map(_is_number, value)):
            return Raw(_column("list", list(value)))
        rows = [_plain(item, MOST_INNER_ROWS) for item in value[:most]]
        if len(value) > most:
            rest = "\n".join(_line(_plain(item)) for item in value)
            rows.append(Raw(f"... {len(value)} in all #{checksum(rest)}"))
        return rows
    if isinstance(value, str) and len(value) > _MOST_TEXT:
        return f"{value[:_MOST_TEXT]}... {len(value)} characters #{checksum(value)}"
    return number(value) if isinstance(value, float) else value


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, (int, float))


def _column(kind: str, values: Sequence[float | None]) -> str:
    shown = [number(value) for value in values]
    head = f"<{kind} {len(shown)}>"
    if len(shown) <= _SHORT_COLUMN:
        return f"{head} {' '.join(map(str, shown))}".rstrip()
    known = [v for v in values if v is not None and math.isfinite(v)]
    figures = ""
    if known:
        least, most, total = min(known), max(known), math.fsum(known)
        figures = f" {number(least)} to {number(most)}, sum {number(total)}"
    lacking = len(shown) - len(known)
    none = f", {lacking} not known" if lacking else ""
    first, last = " ".join(map(str, shown[:5])), " ".join(map(str, shown[-3:]))
    marks = checksum(" ".join(map(str, shown)))
    return f"{head}{figures}{none}: {first} .. {last} #{marks}"


def number(value: float | None) -> float | int | Raw | None:
    """A number as it stands in the text."""
    if value is None or isinstance(value, int):
        return value
    if not math.isfinite(value):
        return Raw(str(value))
    if value == int(value) or abs(value) >= _WHOLE_FROM:
        return round(value)
    return float(f"{value:.6g}")


def checksum(text: str) -> str:
    """Eight digits that change with the text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def cut(text: str, most: int) -> str:
    """The first lines of a text, and a checksum where there are more."""
    lines = text.splitlines()
    if len(lines) <= most:
        return "\n".join(lines)
    rest = f"... {len(lines)} lines in all #{checksum(text)}"
    return "\n".join([*lines[:most], rest])


def replaced(text: str, names: Mapping[str, str]) -> str:
    """The text with what differs from run to run named; the longest first."""
    for found in sorted(names, key=len, reverse=True):
        text = text.replace(found, names[found])
    return text
