"""A source of figures as all parts name it, and the error of one that cannot measure.

`Unavailable` carries the reason and the remedy that the page shows, because absence is
not zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TORCH_ERRORS: Final = (
    RuntimeError,
    AssertionError,
    AttributeError,
    OSError,
    TypeError,
    ValueError,
)
"""Errors of torch and the drivers below it where they cannot answer."""


class Unavailable(Exception):  # noqa: N818  # a state of the machine, not an error
    """A source cannot measure here."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        """`reason` and `remedy` are shown to the user as they are."""
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """What the page says about a source, recorded or not."""

    name: str
    cost: str
    """What it costs where, in words, e.g. "3 us per step"."""
