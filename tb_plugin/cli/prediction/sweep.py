"""Several predictions of one program: for given values, or up to the largest that fits."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.cli.failure import Failure, UsageError
from memboard.collector.cli.terminal import say
from memboard.collector.format.sizes import bytes_text, printable
from memboard.collector.process.run_dir import free_run_dir
from memboard.tb_plugin.analysis.text_tables import Column, Table
from memboard.tb_plugin.cli.prediction.answer import (
    EXIT_CODES,
    PREDICTION_VERSION,
    answers_of,
    fit_of,
    shown,
    to_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memboard.collector.format.prediction import Fit
    from memboard.tb_plugin.cli.prediction.answer import Answer
    from memboard.tb_plugin.cli.prediction.request import Request

_MAX_NUMBER: Final = 1 << 20
_MAX_OUTPUT: Final = 800
"""Of what a program printed before it failed."""
_BEST_FIRST: Final[tuple[Fit, ...]] = (
    "fits",
    "too close to call",
    "does not fit",
    "cannot say",
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One value, and the answers to it."""

    value: str
    request: Request
    answers: Sequence[Answer]

    @property
    def fit(self) -> Fit:
        """For all of its ranks."""
        return fit_of(self.answers)

    def peak(self, figure: str) -> int | None:
        """The highest of a figure among its ranks and devices; bytes."""
        peaks = [answer.peak(figure) for answer in self.answers]
        return max((peak for peak in peaks if peak is not None), default=None)

    @property
    def needed(self) -> tuple[int, int] | None:
        """With the low and the high ends of the estimates, where it ran its steps."""
        if self.fit in ("does not fit", "cannot say"):
            return None
        predictions = [answer.prediction for answer in self.answers]
        needed = [
            prediction.needed(figures)
            for prediction in predictions
            for figures in prediction.devices
        ]
        return max(needed, default=None)


def predict_values(
    request: Request, placeholder: str, values: Sequence[str] | int, *, as_json: bool
) -> int:
    """Predict for each value; for a number, from there to the largest that fits.

    Prints the answers, and returns the exit code of the best.
    """
    texts = [
        *request.program.arguments,
        *request.variables.values(),
        request.alloc_conf,
    ]
    if not any(f"{{{placeholder}}}" in text for text in texts):
        raise UsageError(
            f"{{{placeholder}}} is missing in {' '.join(request.program.words)!r}: put it"
            f" where the value belongs, as in train.py --batch-size {{{placeholder}}}, or --env"
            f" BATCH_SIZE={{{placeholder}}}"
        )
    if isinstance(values, int):
        trials = _largest(request, placeholder, values)
    else:
        trials = [_try(request, placeholder, value) for value in values]
    fits = {trial.fit for trial in trials}
    best = next(fit for fit in _BEST_FIRST if fit in fits)
    if all(trial.value.lstrip("-").isdecimal() for trial in trials):
        trials.sort(key=lambda trial: int(trial.value))
    if as_json:
        print(json.dumps(_to_json(request, placeholder, best, trials)))
    else:
        say("\n".join(_to_text(request, placeholder, trials)))
        if isinstance(values, int):
            print(_largest_text(placeholder, trials))
    return EXIT_CODES[best]


def _largest(request: Request, placeholder: str, start: int) -> list[Trial]:
    """Predictions up to the largest number that fits, in the order they were made."""
    trials: list[Trial] = []

    def fits(number: int) -> bool:
        trial = _try(request, placeholder, str(number))
        trials.append(trial)
        if trial.fit == "cannot say":
            raise Failure(
                f"{placeholder}={number} cannot be predicted:"
                f" {trial.answers[0].judged.reason}",
                where=" ".join(trial.request.program.words),
                remedy="run it alone, with only --on, to see why",
            )
        return trial.fit == "fits"

    search(fits, start, lambda: _guess(trials))
    return trials


def search(
    fits: Callable[[int], bool], start: int, guess: Callable[[], int | None]
) -> int:
    """The largest number from 1 to `_MAX_NUMBER` that fits, 0 where none does.

    `guess` returns, from all trials so far, which it may be. A guess that is right costs
    two trials; one that is not is followed by halves.
    """
    low, high, number, stride = 0, _MAX_NUMBER + 1, start, 1
    while high - low > 1:
        fitted = fits(number)
        if fitted:
            low = number
        else:
            high, stride = number, 1
        expected = guess()
        if not fitted or not low:
            number = (low + high) // 2
        elif expected is None:
            number = 2 * low
        elif expected > low:
            number = expected
        else:
            number, stride = low + stride, 2 * stride
        number = min(max(number, low + 1), high - 1)
    return low


def _guess(trials: Sequence[Trial]) -> int | None:
    """The largest that fits if memory grows as between the two largest that do."""
    measured = sorted(
        (int(trial.value), trial.needed[1])
        for trial in trials
        if trial.fit == "fits" and trial.needed is not None
    )[-2:]
    if len(measured) < 2 or measured[0][1] >= measured[1][1]:
        return None
    (before, less), (after, more) = measured
    capacity = trials[0].request.device.memory_bytes
    return after + int((capacity - more) * (after - before) / (more - less))


def _try(request: Request, placeholder: str, value: str) -> Trial:
    def filled(text: str) -> str:
        return text.replace(f"{{{placeholder}}}", value)

    folder = f"{request.run_dir.name}-{placeholder}={value}".replace("/", "_")
    program = request.program
    changed = replace(
        request,
        program=replace(program, arguments=tuple(map(filled, program.arguments))),
        variables={key: filled(text) for key, text in request.variables.items()},
        alloc_conf=filled(request.alloc_conf),
        run_dir=free_run_dir(request.run_dir.parent, folder),
        is_quiet=not request.is_verbose,
    )
    trial = Trial(value, changed, answers_of(changed))
    print(f"{placeholder}={printable(value)}: {trial.fit}", file=sys.stderr, flush=True)
    for answer in trial.answers:
        if answer.judged.fit == "cannot say":
            if answer.ran.words:
                print(answer.ran.words[-_MAX_OUTPUT:].rstrip(), file=sys.stderr)
            break
    return trial


def _to_text(
    request: Request, placeholder: str, trials: Sequence[Trial]
) -> Iterator[str]:
    """A table, the values in order."""
    device = request.device
    torch = trials[0].answers[0].outcome.torch
    yield f"virtual {device.label}: {bytes_text(device.memory_bytes)}, torch {torch}"
    columns: Sequence[Column[Trial]] = (
        Column(placeholder, lambda trial: trial.value),
        Column(
            "peak allocated", lambda answer: bytes_text(answer.peak("allocated_peak"))
        ),
        Column(
            "peak reserved", lambda answer: bytes_text(answer.peak("reserved_peak"))
        ),
        Column("with estimates", _needed_text),
        Column("", lambda trial: trial.fit),
    )
    yield from Table(columns, trials).text_lines()
    yield f"To see them: tensorboard --logdir {shown(request.run_dir.parent)}"


def _needed_text(trial: Trial) -> str:
    return "" if trial.needed is None else " - ".join(map(bytes_text, trial.needed))


def _largest_text(placeholder: str, trials: Sequence[Trial]) -> str:
    """The largest that fits, in one sentence; `trials` in order."""
    fitting = [trial for trial in trials if trial.fit == "fits"]
    if not fitting:
        reason = trials[0].answers[0].judged.reason
        return f"not even {placeholder}={trials[0].value} surely fits: {reason}"
    largest = fitting[-1]
    beyond = trials[trials.index(largest) + 1 :][:1]
    after = "".join(f"; {trial.value}: {trial.fit}" for trial in beyond)
    if int(largest.value) == _MAX_NUMBER:
        after = "; larger numbers were not tried"
    peak = bytes_text(largest.peak("allocated_peak"))
    return f"largest {placeholder} that fits: {largest.value}, peak allocated {peak}{after}"


def _to_json(
    request: Request, placeholder: str, best: Fit, trials: Sequence[Trial]
) -> dict[str, Any]:
    """For programs: each value with its prediction."""
    return {
        "prediction_version": PREDICTION_VERSION,
        "name": placeholder,
        "fit": best,
        "device": to_json(request, trials[0].answers)["device"],
        "values": [
            {"value": trial.value, **to_json(trial.request, trial.answers)}
            for trial in trials
        ],
    }
