"""Exceptions of `collector`: before training is under way, and for one misuse within it.

MemBoardError          the base: catch this to train on without recording
├── ConfigError        a setting that is unknown, ill-typed or out of range
└── SpanError          `start` or `stop` of a span, where it was not the other's turn
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


_MAX_MESSAGE = 10_000
_MAX_WORD = 100
"""No name is longer; to compare takes the square of the length."""
_BEGINNING: Final = 3
_SOMEWHAT: Final = 0.3
"""Likeness that is enough for a word that begins in the same way."""


class MemBoardError(Exception):
    """A user's setting or call cannot be carried out; the message says what to do."""


class ConfigError(MemBoardError, ValueError):
    """A setting is wrong; the message names the key, the place and the remedy."""

    def __init__(self, message: str = "") -> None:
        """Of a message that holds what it was given, which may be anything, the start."""
        super().__init__(message[:_MAX_MESSAGE])


class SpanError(MemBoardError, RuntimeError):
    """A span was started twice, or stopped without a start; the message names it."""


def nearest_of(word: str, candidates: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The likest of `candidates`; None where none is like it.

    Letters that changed places are likelier than others: `exprot` is export, not report.
    So is another ending than another beginning: `documentation` is docs, not completion.
    """
    import difflib

    word = word[:_MAX_WORD]
    names = list(candidates)
    same = [name for name in names if sorted(name) == sorted(word)]
    begins_so = [name for name in names if name[:_BEGINNING] == word[:_BEGINNING]]
    near = difflib.get_close_matches(word, begins_so, cutoff=_SOMEWHAT)
    near += difflib.get_close_matches(word, names, cutoff=cutoff)
    return next(iter(same + near), None)


def nearest(word: str, candidates: Iterable[str]) -> str:
    """A question whether the likest of `candidates` was meant."""
    near = nearest_of(word, candidates)
    return f"did you mean '{near}'?" if near else "no key is like it."
