"""Fits, does not fit, too close to say: the figures of one process, and the rule.

- It does not fit where torch ran out of memory on the virtual device, which counts the
  low end of the context's estimate as used.
- It fits where it did not, and the highest that torch's allocator held and the high ends
  of all estimates are no more than the device has.
- Between the two it is too close to say: what the allocator holds in reserve it may give
  back where it must, and the estimates may be anywhere in their ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from collector.cli.prediction.estimates import estimates_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.cli.prediction.estimates import Estimate
    from collector.running.plan import DeviceFigures, Outcome
    from collector.virtual.devices import Device

Fit: TypeAlias = Literal["fits", "does not fit", "too close to say", "cannot say"]

EXIT_CODES: Final[Mapping[Fit, int]] = {
    "fits": 0,
    "does not fit": 1,
    "cannot say": 2,
    "too close to say": 3,
}
_WORST_FIRST: Final[tuple[Fit, ...]] = (
    "does not fit",
    "cannot say",
    "too close to say",
    "fits",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAnswer:
    """Of one device of one process; bytes."""

    figures: DeviceFigures
    estimates: tuple[Estimate, ...]
    capacity: int
    categories: Mapping[str, int]
    """What was allocated at the peak, by category; empty: no history says it."""
    others: tuple[int, int] = (0, 0)
    """What other ranks need of the device, with the low and the high ends."""

    @property
    def needed(self) -> tuple[int, int]:
        """With the low and with the high ends of the estimates."""
        low, high = _needed(self.figures, self.estimates)
        return low + self.others[0], high + self.others[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Of one process."""

    fit: Fit
    reason: str
    """One sentence, without the word itself."""
    outcome: Outcome
    devices: tuple[DeviceAnswer, ...]
    words: str = ""
    """The end of what the program printed, where that was kept from the terminal."""
    calls: tuple[str, ...] = ()
    """Of NVIDIA's libraries, which nothing answered; where that was asked for."""
    verdict: Mapping[str, Any] | None = None
    """Of the error that it ran out with, as in `memboard report`; None: it did not."""


def answered(
    device: Device,
    outcome: Outcome,
    *,
    outside_bytes: int | None,
    report: Mapping[str, Any] | None,
    beside: Sequence[Outcome] = (),
    words: str = "",
    calls: tuple[str, ...] = (),
) -> Answer:
    """The answer; `report`: of the run, and of this rank alone, where there is one.

    `beside`: of processes that ran on the same devices at the same time.
    """
    estimates = estimates_of(device, outcome, outside_bytes)
    devices = tuple(
        DeviceAnswer(
            figures=figures,
            estimates=estimates,
            capacity=device.memory_bytes,
            categories=_categories(report, figures.index),
            others=_others(device, beside, figures.index, outside_bytes),
        )
        for figures in outcome.devices
    )
    fit, reason = _fit(outcome, devices)
    ooms = [] if report is None else report["verdict"]["ooms"]
    verdict = next((one for one in ooms if one["is_out_of_memory"]), None)
    return Answer(
        fit=fit,
        reason=reason,
        outcome=outcome,
        devices=devices,
        words=words,
        calls=calls,
        verdict=verdict,
    )


def _needed(figures: DeviceFigures, estimates: Iterable[Estimate]) -> tuple[int, int]:
    low = high = figures.reserved_peak
    for one in estimates:
        low, high = low + one.low, high + one.high
    return low, high


def _others(
    device: Device, beside: Sequence[Outcome], index: int, outside_bytes: int | None
) -> tuple[int, int]:
    low = high = 0
    for outcome in beside:
        estimates = estimates_of(device, outcome, outside_bytes)
        for figures in outcome.devices:
            if figures.index == index:
                less, more = _needed(figures, estimates)
                low, high = low + less, high + more
    return low, high


def worst(answers: Sequence[Answer]) -> Fit:
    """Of several processes: what holds for all of them together."""
    found = {answer.fit for answer in answers}
    return next((fit for fit in _WORST_FIRST if fit in found), "cannot say")


def _fit(outcome: Outcome, devices: Sequence[DeviceAnswer]) -> tuple[Fit, str]:
    if outcome.ended == "out_of_memory":
        return "does not fit", _first_sentences(outcome.error)
    if outcome.ended in ("", "raised"):
        what = outcome.error or "it ended without a word"
        if outcome.unsuitable:
            return "cannot say", (
                f"{outcome.unsuitable[0]} brings a CUDA runtime of its own, linked"
                f" statically, which cannot run on a virtual GPU; the program: {what}"
            )
        return "cannot say", f"the program did not run its steps: {what}"
    if not devices:
        return "cannot say", "the program has used no CUDA device"
    if any(one.figures.num_ooms for one in devices):
        number = sum(one.figures.num_ooms for one in devices)
        return "too close to say", (
            f"it ran out of memory {number} time{'s' * (number != 1)} and went on: the"
            " program caught it"
        )
    left = min(one.capacity - one.needed[1] for one in devices)
    if left >= 0:
        return "fits", (
            "what torch reserved and the high ends of the estimates leave"
            f" {_gib(left)} free"
        )
    if any(one.figures.num_alloc_retries for one in devices):
        return "too close to say", (
            "torch had to give its cache back to stay within the device, and the high"
            f" ends of the estimates are {_gib(-left)} more than it has"
        )
    return "too close to say", (
        f"with the high ends of the estimates it lacks {_gib(-left)}, with the low ends"
        " it ran"
    )


def _first_sentences(error: str) -> str:
    """What torch says first: what it wanted; the rest is in the figures."""
    return ". ".join(error.split(". ")[:2])


def _gib(size: int) -> str:
    from collector.cli.text import bytes_text

    return bytes_text(size)


def _categories(report: Mapping[str, Any] | None, index: int) -> Mapping[str, int]:
    """Of the capture with the highest peak of the device."""
    best: tuple[int, Mapping[str, int]] = (-1, {})
    for snapshot in () if report is None else report["snapshots"]:
        for device in snapshot["devices"]:
            peak = device["peak_allocated_bytes"] or 0
            if device["device"] == index and peak > best[0]:
                best = peak, device["categories_bytes"]
    return best[1]
