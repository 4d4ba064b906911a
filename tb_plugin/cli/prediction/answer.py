"""The answer of `memboard run --on`: does the program fit, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.cli.failure import Failure
from memboard.collector.cli.terminal import say
from memboard.collector.format.memory import NOUNS
from memboard.collector.format.prediction import order, together, worst
from memboard.collector.format.sizes import bytes_text, counted, printable, range_text
from memboard.tb_plugin.analysis.text_tables import Column, Table
from memboard.tb_plugin.cli.opening import runs_at
from memboard.tb_plugin.cli.prediction.launch import launch
from memboard.tb_plugin.cli.report.reading import Reader
from memboard.tb_plugin.cli.text import estimate_lines, figure_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memboard.collector.format.prediction import (
        DeviceFigures,
        Fit,
        Prediction,
        PredictionAnswer,
    )
    from memboard.collector.running.plan import Outcome, Place
    from memboard.tb_plugin.api.findings import Finding
    from memboard.tb_plugin.cli.prediction.rank_process import Ran
    from memboard.tb_plugin.cli.prediction.request import Request
    from memboard.tb_plugin.cli.report.reading import RunReport

PREDICTION_VERSION: Final = 1
EXIT_CODES: Final[Mapping[Fit, int]] = {
    "fits": 0,
    "does not fit": 1,
    "cannot say": 2,
    "too close to call": 3,
}

_MAX_PLACES: Final = 8
_MAX_RANKS: Final = 64
_ENDINGS: Final = {
    "stopped": "",
    "finished": ", the program's whole run",
    "out_of_memory": ", then it ran out of memory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    ran: Ran
    prediction: Prediction
    judged: PredictionAnswer
    categories: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """By device, what was allocated at the peak."""
    no_categories: str = ""
    """Why a device may lack them."""
    recorded_fit: str = ""
    """What the recording says, where that is something else; see `_recorded_fit`."""
    error: Finding | None = None
    """The out-of-memory error, as in `memboard report`."""

    @property
    def outcome(self) -> Outcome:
        return self.ran.outcome

    def peak(self, figure: str) -> int | None:
        """The highest of a figure among its devices; bytes."""
        sizes = [int(getattr(device, figure)) for device in self.prediction.devices]
        return max(sizes, default=None)


def predict(request: Request, *, as_json: bool) -> int:
    """Run the program, and print whether it fits; returns the exit code."""
    answers = answers_of(request)
    if as_json:
        print(json.dumps(to_json(request, answers)))
    else:
        say("\n".join(to_text(request, answers)))
    return EXIT_CODES[fit_of(answers)]


def answers_of(request: Request) -> list[Answer]:
    """Run the request's processes, and judge the outcome of each."""
    every = list(launch(request))
    capacity = request.device.memory_bytes
    predictions = together(
        [
            ran.outcome.prediction(capacity, request.ranks.host(ran.outcome.rank))
            for ran in every
        ]
    )
    return [
        _answer(request, ran, prediction)
        for ran, prediction in zip(every, predictions, strict=True)
    ]


def fit_of(answers: Iterable[Answer]) -> Fit:
    """For all of a job's ranks together."""
    return worst(answer.judged.fit for answer in answers)


def _answer(request: Request, ran: Ran, prediction: Prediction) -> Answer:
    report = _report(request, ran.outcome.rank)
    categories: dict[int, tuple[float, Mapping[str, float]]] = {}
    for snapshot in () if report is None else report.snapshots:
        for device in snapshot.devices:
            peak = device.peak_allocated_bytes
            if peak > categories.get(device.device, (-1.0, {}))[0]:
                categories[device.device] = peak, device.categories_bytes
    findings = () if report is None else report.findings.findings
    errors = (
        finding
        for finding in findings
        if finding.state and finding.state.is_out_of_memory
    )
    judged = prediction.judged()
    return Answer(
        ran=ran,
        prediction=prediction,
        judged=judged,
        categories={device: sizes for device, (_, sizes) in categories.items()},
        no_categories=_no_categories(report),
        recorded_fit=_recorded_fit(report, judged),
        error=next(errors, None),
    )


def _no_categories(report: RunReport | None) -> str:
    """Why there may be no breakdown of the peak."""
    if report is None:
        return "nothing was recorded"
    unread = [
        snapshot.problem
        for snapshot in report.snapshots
        if snapshot.problem is not None
    ]
    if unread:
        return f"the allocator's history cannot be read: {unread[0].what}"
    if report.snapshots:
        return "the allocator's history holds no allocation of this device"
    if report.problems:
        return f"the recording holds no history: {report.problems[0].what}"
    return "the recording holds no history of the allocator"


def _recorded_fit(report: RunReport | None, judged: PredictionAnswer) -> str:
    """What the recording says where that is not `judged`: it was not completed."""
    recorded = None if report is None else report.overview.prediction
    if recorded is None or recorded.fit == judged.fit:
        return ""
    return recorded.fit


def _report(request: Request, rank: int) -> RunReport | None:
    """Of the run; None where the program has recorded nothing."""
    if not request.run_dir.is_dir():
        return None
    store = runs_at(request.run_dir)
    reader = Reader(store, request.device.memory_bytes)
    try:
        return next((reader.run(run, rank) for run in store.runs()), None)
    except Failure:
        return None


def to_json(request: Request, answers: Sequence[Answer]) -> dict[str, Any]:
    """For programs; sizes are bytes. Keys may be added, never change their meaning."""
    device = request.device
    return {
        "prediction_version": PREDICTION_VERSION,
        "fit": fit_of(answers),
        "device": {
            "name": f"virtual {device.label}",
            "capacity_bytes": device.memory_bytes,
            "capability": list(device.capability),
        },
        "run": str(request.run_dir),
        "ranks": [_rank_json(answer) for answer in answers],
    }


def _rank_json(answer: Answer) -> dict[str, Any]:
    outcome, error = answer.outcome, answer.error
    return {
        "rank": outcome.rank,
        **answer.judged._asdict(),
        "torch": outcome.torch,
        "ended": outcome.ended,
        "error": outcome.error,
        "num_steps": outcome.num_steps,
        "devices": [
            _device_json(answer, device) for device in answer.prediction.devices
        ],
        "verdict": None if error is None else error.sentence,
        "places": [asdict(place) for place in outcome.places],
        "num_places_left_out": outcome.num_places_left_out,
        "absent": outcome.absent,
        "unsuitable": outcome.unsuitable,
        "unanswered_calls": list(answer.ran.calls),
    }


def _device_json(answer: Answer, figures: DeviceFigures) -> dict[str, Any]:
    prediction = answer.prediction
    others = prediction.others.get(figures.index, (0, 0))
    needed = prediction.needed(figures)
    return {
        "device": figures.index,
        "peak_allocated_bytes": figures.allocated_peak,
        "peak_active_bytes": figures.active_peak,
        "peak_reserved_bytes": figures.reserved_peak,
        "num_alloc_retries": figures.num_alloc_retries,
        "num_ooms": figures.num_ooms,
        "categories_bytes": dict(answer.categories.get(figures.index, {})),
        "categories_absent": _absence(answer, figures),
        "rounding_bytes": _rounding(answer, figures),
        "estimates": [
            {
                "name": estimate.name,
                "low_bytes": estimate.low,
                "high_bytes": estimate.high,
                "source": estimate.source,
            }
            for estimate in prediction.estimates
        ],
        "others_low_bytes": others[0],
        "others_high_bytes": others[1],
        "needed_low_bytes": needed[0],
        "needed_high_bytes": needed[1],
        "capacity_bytes": prediction.capacity,
    }


def _absence(answer: Answer, figures: DeviceFigures) -> str | None:
    """Why there is no breakdown of a device's peak; None where there is one, or no peak."""
    sizes = answer.categories.get(figures.index, {})
    if any(sizes.values()) or not figures.allocated_peak:
        return None
    return answer.no_categories


_RANKS: Final[Sequence[Column[Answer]]] = (
    Column("rank", lambda answer: str(answer.outcome.rank)),
    Column("peak allocated", lambda answer: bytes_text(answer.peak("allocated_peak"))),
    Column("peak reserved", lambda answer: bytes_text(answer.peak("reserved_peak"))),
    Column("", lambda answer: answer.judged.fit),
)


def to_text(request: Request, answers: Sequence[Answer]) -> Iterator[str]:
    """The answer, lines of text; of several ranks a table, and the worst one in full."""
    virtual, first = request.device, answers[0].outcome
    torch = f", torch {first.torch}" if first.torch else ""
    yield f"virtual {virtual.label}: {bytes_text(virtual.memory_bytes)}{torch}"
    leading = min(answers, key=lambda answer: order(answer.prediction))
    if len(answers) > 1:
        yield from Table(_RANKS, answers[:_MAX_RANKS]).text_lines()
        yield f"rank {leading.outcome.rank}:"
    outcome = leading.outcome
    end = _ENDINGS.get(outcome.ended, f", then: {printable(outcome.error)}")
    yield f"  {counted(outcome.num_steps, 'step')}{end}"
    for figures in leading.prediction.devices:
        if len(leading.prediction.devices) > 1:
            yield f"  device {figures.index}"
        yield from _device_lines(leading, figures)
    yield from _caveats(outcome)
    if request.is_verbose:
        yield "  Calls of NVIDIA's libraries that nothing answers:"
        yield from (f"    {printable(call)}" for call in leading.ran.calls or ("none",))
    if leading.recorded_fit:
        yield (
            f'  The recording was not completed: in it stands "{leading.recorded_fit}".'
        )
    yield ""
    yield f"{fit_of(answers)}: {printable(leading.judged.reason)}"
    if leading.judged.decides:
        yield f"  {leading.judged.decides}"
    if leading.error is not None:
        yield f"  {printable(leading.error.sentence)}"
        for advice in leading.error.advice[:1]:
            setting = f" {advice.setting}" if advice.setting else ""
            yield f"  try: {printable(advice.text + setting)}"
    if request.run_dir.is_dir():
        yield f"To see it: tensorboard --logdir {shown(request.run_dir.parent)}"


def _rounding(answer: Answer, figures: DeviceFigures) -> float | None:
    """What the allocator's blocks had beyond the requests that categories count.

    None: not known, as where memory that waited for a stream was live beside the peak.
    """
    sizes = answer.categories.get(figures.index)
    if not sizes or figures.active_peak != figures.allocated_peak:
        return None
    rest = figures.allocated_peak - sum(sizes.values())
    return rest if rest >= 0 else None


def _device_lines(answer: Answer, figures: DeviceFigures) -> Iterator[str]:
    prediction = answer.prediction
    yield figure_line("peak allocated", bytes_text(figures.allocated_peak))
    sizes = answer.categories.get(figures.index, {})
    for category, size in sorted(sizes.items(), key=lambda item: -item[1]):
        if size:
            yield figure_line(f"  {NOUNS[category]}", bytes_text(size))
    if rounding := _rounding(answer, figures):
        yield figure_line("  rounding of blocks", bytes_text(rounding))
    absence = _absence(answer, figures)
    if absence:
        yield figure_line("  by category", f"not known: {printable(absence)}")
    yield figure_line("peak reserved", bytes_text(figures.reserved_peak))
    if figures.num_alloc_retries:
        retries = counted(figures.num_alloc_retries, "time")
        yield figure_line("cache freed, retried", retries)
    if not prediction.has_run:
        return
    for estimate in prediction.estimates:
        yield from estimate_lines(
            estimate.name, estimate.low, estimate.high, estimate.source
        )
    others = prediction.others.get(figures.index, (0, 0))
    if any(others):
        yield figure_line("+ other ranks on it", range_text(*others))
    needed = range_text(*prediction.needed(figures))
    yield figure_line("needed", f"{needed} of {bytes_text(prediction.capacity)}")


def _caveats(outcome: Outcome) -> Iterator[str]:
    """Facts that make the prediction less than certain."""
    decide = [place for place in outcome.places if not place.is_only_shown]
    shown_only = [place for place in outcome.places if place.is_only_shown]
    left_out = outcome.num_places_left_out
    if decide:
        yield "  This prediction depends on values that are not real, read at:"
        yield from _place_lines(decide, 0 if shown_only else left_out)
    if shown_only:
        yield "  Values that are not real were only printed, logged or dropped at:"
        yield from _place_lines(shown_only, left_out)
    for sentence in outcome.absent:
        yield f"  {printable(sentence)}"
    for path in outcome.unsuitable:
        yield (
            f"  {printable(path)} has a CUDA runtime of its own, linked statically:"
            " its allocations are not recorded"
        )


def _place_lines(places: Sequence[Place], num_left_out: int) -> Iterator[str]:
    for place in places[:_MAX_PLACES]:
        yield f"    {_place(place)}"
    more = max(0, len(places) - _MAX_PLACES) + num_left_out
    if more:
        yield f"    and {counted(more, 'more place')}"


def _place(place: Place) -> str:
    by = f", by {place.by}" if place.by else ""
    where = f"{place.function}{by}"
    if place.file:
        where = f"{shown(Path(place.file))}:{place.line} {where}"
    return f"{printable(where)} ({counted(place.count, 'time')})"


def shown(path: Path) -> str:
    """Relative to the working directory where it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
