"""Single parameters of a request: read, checked, and refused by their name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tb_plugin.server.errors import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_PIXELS: Final = 8192
"""No screen is wider or higher, so nothing is drawn finer."""

_MAX_TEXT: Final = 4000


def text_of(args: Mapping[str, str], name: str) -> str | None:
    """A text; None where it is empty or missing.

    Raises:
        BadRequestError: it is too long.
    """
    text = args.get(name)
    if text is not None and len(text) > _MAX_TEXT:
        raise bad(name, text, f"at most {_MAX_TEXT} characters")
    return text or None


def word_of(args: Mapping[str, str], name: str, words: tuple[str, ...]) -> str | None:
    """One of some words; None where it is empty or missing.

    Raises:
        BadRequestError: it is another one.
    """
    text = args.get(name) or None
    if text is not None and text not in words:
        raise bad(name, text, "one of " + ", ".join(words))
    return text


def integer_of(args: Mapping[str, str], name: str, most: int) -> int | None:
    """A whole number up to `most`, which larger ones become.

    Raises:
        BadRequestError: it is none.
    """
    text = args.get(name) or None
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise bad(name, text, "a whole number")
    return min(int(text), most)


def pixels_of(args: Mapping[str, str], name: str, default: int) -> int:
    """A width or height to draw on; `default` where it is 0 or missing.

    Raises:
        BadRequestError: it is none that a screen can have.
    """
    pixels = integer_of(args, name, MAX_PIXELS + 1) or default
    if pixels > MAX_PIXELS:
        raise bad(name, args[name], f"at most {MAX_PIXELS:,} pixels")
    return pixels


def number_of(
    args: Mapping[str, str], name: str, most: float = math.inf
) -> float | None:
    """A number; None where it is empty or missing.

    Raises:
        BadRequestError: it is none, no finite one, or further from 0 than `most`.
    """
    text = args.get(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > most:
        raise bad(name, text, "a number")
    return value


def bad(name: str, value: str, expected: str) -> BadRequestError:
    """The error that names a parameter and what it should be."""
    return BadRequestError(
        f"The parameter {name} must be {expected}.",
        f"{name}={value[:80]}",
        "Correct the address, or reset the view.",
    )
