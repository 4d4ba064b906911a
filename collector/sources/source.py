"""Sources of figures: each is sampled at every step, or on a timer.

A source opens or raises `Unavailable`, with why it cannot. Anything else that escapes a
source is a fault: it is said once, and the source is off for a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from memboard.collector.core.source import SourceInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.format.columns import Column
    from memboard.collector.sources.device.accelerator import Device

    Row: TypeAlias = Sequence[int | float | None]


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
