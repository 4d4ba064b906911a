"""Sources of figures: each is sampled at every step, or on a timer.

A source opens or says why it cannot: `Unavailable` carries the reason and the remedy
that the page shows, because absence is not zero. Anything else that escapes a source
is a fault: it is said once, and the source is off for a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.format.columns import Column
    from memboard.collector.sources.device.accelerator import Device

    Row: TypeAlias = Sequence[int | float | None]


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


def nothing() -> None:
    """Nothing is held that must be given back."""


class Reader(NamedTuple):
    """A source that is open."""

    sample: Callable[[], Row]
    """Values for the source's columns, in their order. Of a source of steps it takes
    microseconds and neither blocks nor synchronises; of a timed one perhaps milliseconds."""
    close: Callable[[], Any] = nothing
    """Give back what it holds (descriptors, patched functions)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(SourceInfo):
    """One thing that can be measured."""

    columns: Callable[[RecordConfig], tuple[Column, ...]]
    open: Callable[[RecordConfig, Device], Reader]
    """Raises Unavailable where it cannot measure."""
    setting: str
    """The key that switches it off; of a timed one, its pace."""
    times: float = 1.0
    """Its interval, in multiples of the setting's."""
    per_host: bool = False
    """Whether it says the same on every rank of a host."""
