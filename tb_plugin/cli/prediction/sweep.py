"""Several predictions of one program: for given values, or up to the largest that fits."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from collector.cli.failure import Failure
from collector.cli.text import printable, text_table
from collector.core.run_dir import free_run_dir
from collector.format.prediction import worst
from collector.format.sizes import bytes_text
from tb_plugin.cli.prediction.predicting import answers_of
from tb_plugin.cli.prediction.wording import PREDICTION_VERSION, as_json, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from collector.format.prediction import Fit
    from tb_plugin.cli.prediction.answer import Answer
    from tb_plugin.cli.prediction.request import Request

_MOST: Final = 1 << 20
"""Whatever is asked for, nothing larger is tried."""
_WORDS: Final = 800
"""Of what a program printed before it failed."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One value, and what came of it."""

    value: str
    request: Request
    answers: Sequence[Answer]

    @property
    def fit(self) -> Fit:
        """For all of its ranks."""
        return worst(one.fit for one in self.answers)

    def most(self, name: str) -> int | None:
        """The highest of a figure among its ranks and devices; bytes."""
        figures = [one.figures for answer in self.answers for one in answer.devices]
        return max((int(getattr(one, name)) for one in figures), default=None)

    @property
    def needed(self) -> tuple[int, int] | None:
        """With the low and the high ends of the estimates, where it ran its steps."""
        if self.fit in ("does not fit", "cannot say"):
            return None
        found = [one.needed for answer in self.answers for one in answer.devices]
        return max(found, default=None)


def check_placeholder(request: Request, name: str) -> None:
    """Whether there is anything that the values would change.

    Raises:
        Failure: `{name}` stands nowhere.
    """
    texts = [
        *request.program.arguments,
        *request.variables.values(),
        request.alloc_conf,
    ]
    if not any(f"{{{name}}}" in text for text in texts):
        raise Failure(
            f"{{{name}}} stands nowhere",
            where=" ".join(request.program.words),
            remedy=f"Put it where the value belongs: train.py --batch-size {{{name}}},"
            f" or --env BATCH_SIZE={{{name}}}.",
            code=2,
        )


def swept(request: Request, name: str, values: Sequence[str]) -> list[Tried]:
    """One prediction for each value, in their order."""
    check_placeholder(request, name)
    return [_try(request, name, value) for value in values]


def largest(request: Request, name: str, start: int) -> list[Tried]:
    """Predictions up to the largest number that fits, in the order they were made.

    Raises:
        Failure: a program did not run its steps, so nothing can be said.
    """
    check_placeholder(request, name)
    tried: list[Tried] = []

    def fits(number: int) -> bool:
        tried.append(_try(request, name, str(number)))
        if tried[-1].fit == "cannot say":
            raise Failure(
                f"nothing can be said of {name}={number}: {tried[-1].answers[0].reason}",
                where=" ".join(tried[-1].request.program.words),
                remedy="Run that by itself, with --on alone, to see why.",
                code=2,
            )
        return tried[-1].fit == "fits"

    search(fits, start, lambda: _guess(tried))
    return tried


def search(
    fits: Callable[[int], bool], start: int, guess: Callable[[], int | None]
) -> int:
    """The largest number from 1 to `_MOST` that fits, 0 where none does.

    `guess` says, from what was tried so far, which it may be. A guess that is right costs
    two tries; one that is not is followed by halves.
    """
    low, high, number, stride = 0, _MOST + 1, start, 1
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


def _guess(tried: Sequence[Tried]) -> int | None:
    """The largest that fits if memory grows as between the two largest that do."""
    known = sorted(
        (int(one.value), one.needed[1])
        for one in tried
        if one.fit == "fits" and one.needed is not None
    )[-2:]
    if len(known) < 2 or known[0][1] >= known[1][1]:
        return None
    (before, less), (after, more) = known
    capacity = tried[0].request.device.memory_bytes
    return after + int((capacity - more) * (after - before) / (more - less))


def best(tried: Sequence[Tried]) -> Fit:
    """What holds for the value that is best off."""
    order: tuple[Fit, ...] = ("fits", "too close to say", "does not fit", "cannot say")
    found = {one.fit for one in tried}
    return next(fit for fit in order if fit in found)


def largest_of(tried: Sequence[Tried]) -> Tried | None:
    """The largest number that fits; None: none does."""
    fitting = [one for one in tried if one.fit == "fits"]
    return max(fitting, key=lambda one: int(one.value), default=None)


def _try(request: Request, name: str, value: str) -> Tried:
    def filled(text: str) -> str:
        return text.replace(f"{{{name}}}", value)

    folder = f"{request.run_dir.name}-{name}={value}".replace("/", "_")
    one = replace(
        request,
        program=replace(
            request.program, arguments=tuple(map(filled, request.program.arguments))
        ),
        variables={key: filled(text) for key, text in request.variables.items()},
        alloc_conf=filled(request.alloc_conf),
        run_dir=free_run_dir(request.run_dir.parent, folder),
        is_quiet=not request.is_verbose,
    )
    answers = answers_of(one)
    tried = Tried(value, one, answers)
    print(f"{name}={printable(value)}: {tried.fit}", file=sys.stderr, flush=True)
    failed = next((answer for answer in answers if answer.fit == "cannot say"), None)
    if failed is not None and failed.words:
        print(failed.words[-_WORDS:].rstrip(), file=sys.stderr)
    return tried


def as_text(request: Request, name: str, tried: Sequence[Tried]) -> Iterator[str]:
    """A table, the values in order."""
    device = request.device
    torch = next((a.outcome.torch for one in tried for a in one.answers), "")
    yield f"virtual {device.label}: {bytes_text(device.memory_bytes)}, torch {torch}"
    rows = [
        (
            one.value,
            bytes_text(one.most("allocated_peak")),
            bytes_text(one.most("reserved_peak")),
            "" if one.needed is None else " - ".join(map(bytes_text, one.needed)),
            one.fit,
        )
        for one in _in_order(tried)
    ]
    head = (name, "peak allocated", "peak reserved", "with estimates", "")
    yield from map(printable, text_table(head, rows))
    yield f"To see them: tensorboard --logdir {shown(request.run_dir.parent)}"


def largest_text(name: str, tried: Sequence[Tried]) -> str:
    """The largest that fits, in one sentence."""
    found = largest_of(tried)
    if found is None:
        least = min(tried, key=lambda one: int(one.value))
        return f"not even {name}={least.value} surely fits: {least.answers[0].reason}"
    beyond = [one for one in tried if int(one.value) > int(found.value)]
    after = min(beyond, key=lambda one: int(one.value), default=None)
    words = "" if after is None else f"; {after.value}: {after.fit}"
    peak = bytes_text(found.most("allocated_peak"))
    return f"largest {name} that fits: {found.value}, peak allocated {peak}{words}"


def to_json(request: Request, name: str, tried: Sequence[Tried]) -> dict[str, Any]:
    """For programs: each value with its prediction."""
    return {
        "prediction_version": PREDICTION_VERSION,
        "name": name,
        "fit": best(tried),
        "device": as_json(request, tried[0].answers)["device"],
        "values": [
            {"value": one.value, **as_json(one.request, one.answers)}
            for one in _in_order(tried)
        ],
    }


def _in_order(tried: Sequence[Tried]) -> list[Tried]:
    """By number where they are numbers, else as they were given."""
    if all(one.value.lstrip("-").isdecimal() for one in tried):
        return sorted(tried, key=lambda one: int(one.value))
    return list(tried)
