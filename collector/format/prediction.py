"""The rule by which a program that ran on virtual devices fits real ones, and its facts.

A process's recording has the facts in notes `prediction`: one as the recording begins,
with the estimates that are known by then, and one at its end, with all of them. The newest
counts.

- It does not fit where torch ran out of memory on the virtual device, which counts the
  low end of the context's estimate as used.
- It fits where it did not, and the highest that torch's allocator held and the high ends
  of all estimates are no more than the device has.
- Between the two it is too close to call: what the allocator holds in reserve it may give
  back where it must, and the estimates may be anywhere in their ranges.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # msgspec looks it up
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from memboard.collector.format.sizes import bytes_text, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NOTE: Final = "prediction"
"""The kind of its notes."""

Ended: TypeAlias = Literal["", "stopped", "finished", "raised", "out_of_memory"]
"""stopped: by us, after its steps; finished: by itself; empty: it did not come to an end
that could be written down."""

Fit: TypeAlias = Literal["fits", "does not fit", "too close to call", "cannot say"]

_WORST_FIRST: Final[tuple[Fit, ...]] = (
    "does not fit",
    "cannot say",
    "too close to call",
    "fits",
)
# As in `memboard.collector.format.encoding.payload`, which imports numpy: too early for some programs.
_Size = Annotated[int, Meta(ge=0, le=2**62)]
_Text = Annotated[str, Meta(max_length=10_000)]
_Few = Meta(max_length=1000)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one item takes of one device outside of torch's allocator; bytes."""

    name: _Text
    low: _Size
    high: _Size
    source: _Text


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFigures:
    """What torch's allocator says of one device at the end; bytes."""

    index: _Size
    allocated_peak: _Size
    active_peak: _Size
    reserved_peak: _Size
    num_alloc_retries: _Size
    num_ooms: _Size


class PredictionAnswer(NamedTuple):
    fit: Fit
    reason: str
    """One sentence, without the word itself."""
    decides: str = ""
    """Where it is too close to call: what would decide, one sentence; empty: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What is known of one process; bytes."""

    capacity: _Size
    """Of each of its devices."""
    estimates: Annotated[tuple[Estimate, ...], _Few]
    ended: Ended = ""
    error: _Text = ""
    """The exception that ended it, in one line."""
    unsuitable: Annotated[tuple[_Text, ...], _Few] = ()
    """Loaded libraries that bring a CUDA runtime of their own."""
    devices: Annotated[tuple[DeviceFigures, ...], _Few] = ()
    """Those it has used; empty before its end."""
    host: _Size | None = None
    """The host whose devices it shared with other ranks; None: they were its own."""
    others: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """What other ranks need of each device, by `together`; no note holds it."""

    @property
    def has_run(self) -> bool:
        """Whether it ran its steps; else nobody knows what it would have needed."""
        return self.ended in ("stopped", "finished")

    @property
    def outside(self) -> tuple[int, int]:
        """The low and the high ends of the estimates, added up."""
        return sum(estimate.low for estimate in self.estimates), sum(
            estimate.high for estimate in self.estimates
        )

    def needed(self, figures: DeviceFigures) -> tuple[int, int]:
        """Of a device, with the low and with the high ends of the estimates."""
        low, high = (
            own + others
            for own, others in zip(
                self.outside, self.others.get(figures.index, (0, 0)), strict=True
            )
        )
        return figures.reserved_peak + low, figures.reserved_peak + high

    @property
    def left(self) -> tuple[int, int] | None:
        """What the fullest device has left, at least and at most; None: not known."""
        if not self.devices:
            return None
        low, high = max(map(self.needed, self.devices), key=lambda pair: pair[1])
        return self.capacity - high, self.capacity - low

    def judged(self) -> PredictionAnswer:
        """Fits, does not fit, too close to call: the rule above."""
        if self.ended == "out_of_memory":
            return PredictionAnswer("does not fit", _first_sentences(self.error))
        if self.ended in ("", "raised"):
            return PredictionAnswer("cannot say", self._why_nothing())
        left = self.left
        if left is None:
            return PredictionAnswer(
                "cannot say",
                "the program has used no CUDA device; move its model and inputs to"
                " cuda",
            )
        if number := sum(device.num_ooms for device in self.devices):
            return PredictionAnswer(
                "too close to call",
                f"it ran out of memory {counted(number, 'time')} and went on:"
                " the program caught it",
            )
        least = left[0]
        if least >= 0:
            return PredictionAnswer(
                "fits",
                "what torch reserved and the high ends of the estimates leave"
                f" {bytes_text(least)} free",
            )
        if any(device.num_alloc_retries for device in self.devices):
            reason = (
                "torch had to give its cache back to stay within the device, and the"
                f" high ends of the estimates are {bytes_text(-least)} more than it has"
            )
        else:
            reason = (
                f"with the high ends of the estimates it lacks {bytes_text(-least)}, with"
                " the low ends it ran"
            )
        return PredictionAnswer("too close to call", reason, self._what_decides())

    def _why_nothing(self) -> str:
        if self.unsuitable:
            return (
                f"{self.unsuitable[0]} brings a CUDA runtime of its own, linked"
                " statically, which cannot run on a virtual GPU; the program:"
                f" {self.error or 'it ended without a word'}"
            )
        if not self.ended and not self.error:
            return "no end of the program was recorded so far"
        return f"the program did not run its steps: {self.error}"

    def _what_decides(self) -> str:
        low, high = self.outside
        if low == high:
            return ""
        return (
            f"the low and the high end of the estimates are {bytes_text(high - low)}"
            " apart: measure on a real device what lies outside of torch's allocator and"
            " give it, as in --outside 1.2GiB, to decide"
        )

    def to_note(self) -> dict[str, Any]:
        """Plain data, as a note holds it."""
        plain = asdict(self)
        del plain["others"]
        return plain


def prediction_of(data: Mapping[str, Any]) -> Prediction | None:
    """That of a note; None where it is none: files may hold anything."""
    names = [field.name for field in fields(Prediction) if field.name != "others"]
    try:
        return msgspec.convert({name: data[name] for name in names}, Prediction)
    except (KeyError, msgspec.ValidationError):
        return None


def together(every: Sequence[Prediction]) -> list[Prediction]:
    """Processes that ran at the same time: each with what the others need of its devices."""
    return [
        replace(
            prediction,
            others={
                figures.index: _sum(
                    other.needed(used)
                    for other in every
                    if other is not prediction
                    and other.host == prediction.host is not None
                    for used in other.devices
                    if used.index == figures.index
                )
                for figures in prediction.devices
            },
        )
        for prediction in every
    ]


def worst(fits: Iterable[Fit]) -> Fit:
    """Of several processes: what holds for all of them together."""
    given_fits = set(fits)
    return next((fit for fit in _WORST_FIRST if fit in given_fits), "cannot say")


def order(prediction: Prediction) -> tuple[int, int]:
    """Sorts processes: the worst answer first, and of those alike the fullest device."""
    left = prediction.left
    return _WORST_FIRST.index(prediction.judged().fit), 0 if left is None else left[0]


def _sum(ranges: Iterable[tuple[int, int]]) -> tuple[int, int]:
    low = high = 0
    for less, more in ranges:
        low, high = low + less, high + more
    return low, high


def _first_sentences(error: str) -> str:
    """What torch says first: what it wanted; the rest is in the figures."""
    return ". ".join(error.split(". ")[:2])
