"""What a source is. Two kinds: sampled at each step, or on a timer.

A source opens or says why it cannot: `Unavailable` carries the reason and the remedy
that the page shows, because absence is not zero. Anything else that escapes a source
is a fault: the recorder logs it once, switches that source off and goes on.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.format.columns import Column


OUT_OF_FILES: Final = {errno.EMFILE, errno.ENFILE}
FILES_REMEDY: Final = (
    "Raise the limit on open files (ulimit -n), or find what leaves files open."
)


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


def remedy_of(name: str, error: BaseException) -> str:
    """What to do about a source that raised; it is tried again by itself."""
    if isinstance(error, OSError) and error.errno in OUT_OF_FILES:
        return f"{FILES_REMEDY} It is tried again now and then."
    return (
        "It is tried again now and then. If it goes on failing, switch it off with"
        f" {name}=False, and report this."
    )


class StepSource(Protocol):
    """Sampled on the training thread at every `rec.step()`: a few microseconds."""

    @property
    def info(self) -> SourceInfo:
        """Its name and cost."""

    @property
    def columns(self) -> Sequence[Column]:
        """Without the axes; the same for as long as it is open."""

    def sample(self) -> Sequence[int | float | None]:
        """Values for `columns`, in their order. Must not block or synchronise."""

    def close(self) -> None:
        """Give back what it holds (descriptors, patched functions)."""


class TimedSource(Protocol):
    """Sampled on the recorder's own thread every `interval_seconds`."""

    @property
    def info(self) -> SourceInfo:
        """Its name and cost."""

    @property
    def columns(self) -> Sequence[Column]:
        """Without the axes; the same for as long as it is open."""

    @property
    def interval_seconds(self) -> float:
        """Its pace."""

    def sample(self) -> Sequence[int | float | None]:
        """Values for `columns`, in their order. May take milliseconds."""

    def close(self) -> None:
        """Give back what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSource:
    """A timed source that is one function and holds nothing to give back."""

    info: SourceInfo
    columns: Sequence[Column]
    interval_seconds: float
    sample: Callable[[], Sequence[int | float | None]]

    def close(self) -> None:
        """Nothing is held."""
