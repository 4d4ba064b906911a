"""Fits, does not fit, too close to say: the figures of one process, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.format.prediction import DeviceFigures, Estimate, Fit, Prediction
    from collector.running.plan import Outcome

EXIT_CODES: Final[Mapping[Fit, int]] = {
    "fits": 0,
    "does not fit": 1,
    "cannot say": 2,
    "too close to say": 3,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAnswer:
    """Of one device of one process; bytes."""

    figures: DeviceFigures
    estimates: tuple[Estimate, ...]
    capacity: int
    needed: tuple[int, int]
    """With the low and with the high ends of the estimates."""
    categories: Mapping[str, int]
    """What was allocated at the peak, by category; empty: no history says it."""
    others: tuple[int, int]
    """What other ranks need of the device, with the low and the high ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Of one process."""

    fit: Fit
    reason: str
    """One sentence, without the word itself."""
    decides: str
    """Where it is too close to say: what would decide; empty: nothing."""
    outcome: Outcome
    prediction: Prediction
    """What of it decides."""
    devices: tuple[DeviceAnswer, ...]
    words: str = ""
    """The end of what the program printed, where that was kept from the terminal."""
    calls: tuple[str, ...] = ()
    """Of NVIDIA's libraries, which nothing answered; where that was asked for."""
    verdict: Mapping[str, Any] | None = None
    """Of the error that it ran out with, as in `memboard report`; None: it did not."""


def answered(
    prediction: Prediction,
    outcome: Outcome,
    *,
    report: Mapping[str, Any] | None,
    words: str = "",
    calls: tuple[str, ...] = (),
) -> Answer:
    """The answer; `report`: of the run, and of this rank alone, where there is one."""
    devices = tuple(
        DeviceAnswer(
            figures=figures,
            estimates=prediction.estimates,
            capacity=prediction.capacity,
            needed=prediction.needed(figures),
            categories=_categories(report, figures.index),
            others=prediction.others.get(figures.index, (0, 0)),
        )
        for figures in prediction.devices
    )
    fit, reason, decides = prediction.judged()
    ooms = [] if report is None else report["verdict"]["ooms"]
    verdict = next((one for one in ooms if one["is_out_of_memory"]), None)
    return Answer(
        fit=fit,
        reason=reason,
        decides=decides,
        outcome=outcome,
        prediction=prediction,
        devices=devices,
        words=words,
        calls=calls,
        verdict=verdict,
    )


def _categories(report: Mapping[str, Any] | None, index: int) -> Mapping[str, int]:
    """Of the capture with the highest peak of the device."""
    best: tuple[int, Mapping[str, int]] = (-1, {})
    for snapshot in () if report is None else report["snapshots"]:
        for device in snapshot["devices"]:
            peak = device["peak_allocated_bytes"] or 0
            if device["device"] == index and peak > best[0]:
                best = peak, device["categories_bytes"]
    return best[1]
