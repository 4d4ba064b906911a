"""What is predicted, as text for people and as JSON for programs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collector.cli.text import counted, printable, text_table
from collector.format.prediction import order, worst
from collector.format.sizes import bytes_text, range_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from collector.running.plan import Outcome, Place
    from tb_plugin.cli.prediction.answer import Answer, DeviceAnswer
    from tb_plugin.cli.prediction.request import Request

PREDICTION_VERSION: Final = 1

_MAX_PLACES: Final = 8
_MAX_RANKS: Final = 64
_ENDINGS: Final = {
    "stopped": "",
    "finished": ", the program's whole run",
    "out_of_memory": ", then it ran out of memory",
}


def as_json(request: Request, answers: Sequence[Answer]) -> dict[str, Any]:
    """For programs; sizes are bytes. Keys may be added, never change their meaning."""
    device = request.device
    return {
        "prediction_version": PREDICTION_VERSION,
        "fit": worst(one.fit for one in answers),
        "device": {
            "name": f"virtual {device.label}",
            "capacity_bytes": device.memory_bytes,
            "capability": list(device.capability),
        },
        "run": str(request.run_dir),
        "ranks": [_rank_json(answer) for answer in answers],
    }


def _rank_json(answer: Answer) -> dict[str, Any]:
    outcome = answer.outcome
    verdict = answer.verdict
    return {
        "rank": outcome.rank,
        "fit": answer.fit,
        "reason": answer.reason,
        "decides": answer.decides,
        "torch": outcome.torch,
        "ended": outcome.ended,
        "error": outcome.error,
        "num_steps": outcome.num_steps,
        "devices": [_device_json(one) for one in answer.devices],
        "verdict": None if verdict is None else verdict["sentence"],
        "places": [asdict(place) for place in outcome.places],
        "num_places_left_out": outcome.num_places_left_out,
        "absent": outcome.absent,
        "unsuitable": outcome.unsuitable,
        "unanswered_calls": list(answer.calls),
    }


def _device_json(one: DeviceAnswer) -> dict[str, Any]:
    return {
        "device": one.figures.index,
        "peak_allocated_bytes": one.figures.allocated_peak,
        "peak_active_bytes": one.figures.active_peak,
        "peak_reserved_bytes": one.figures.reserved_peak,
        "num_alloc_retries": one.figures.num_alloc_retries,
        "num_ooms": one.figures.num_ooms,
        "categories_bytes": dict(one.categories),
        "estimates": [
            {
                "name": item.name,
                "low_bytes": item.low,
                "high_bytes": item.high,
                "source": item.source,
            }
            for item in one.estimates
        ],
        "others_low_bytes": one.others[0],
        "others_high_bytes": one.others[1],
        "needed_low_bytes": one.needed[0],
        "needed_high_bytes": one.needed[1],
        "capacity_bytes": one.capacity,
    }


def as_text(request: Request, answers: Sequence[Answer]) -> Iterator[str]:
    """The answer, lines of text; of several ranks a table, and the worst one in full."""
    virtual, first = request.device, answers[0].outcome
    torch = f", torch {first.torch}" if first.torch else ""
    yield f"virtual {virtual.label}: {bytes_text(virtual.memory_bytes)}{torch}"
    fit = worst(one.fit for one in answers)
    leading = min(answers, key=lambda one: order(one.prediction))
    if len(answers) > 1:
        yield from _table(answers)
        yield f"rank {leading.outcome.rank}:"
    outcome = leading.outcome
    end = _ENDINGS.get(outcome.ended, f", then: {printable(outcome.error)}")
    yield f"  {counted(outcome.num_steps, 'step')}{end}"
    for one in leading.devices:
        if len(leading.devices) > 1:
            yield f"  device {one.figures.index}"
        yield from _figures(one)
        if leading.prediction.has_run:
            device = _device_json(one)
            yield from estimate_lines(device["estimates"])
            yield from needed_lines(device, one.capacity)
    yield from _rests_on(outcome)
    if request.is_verbose:
        yield "  Calls of NVIDIA's libraries that nothing answers:"
        yield from (f"    {printable(call)}" for call in leading.calls or ("none",))
    yield ""
    yield f"{fit}: {printable(leading.reason)}"
    if leading.decides:
        yield f"  {leading.decides}"
    if leading.verdict is not None:
        yield f"  {printable(leading.verdict['sentence'])}"
        for advice in leading.verdict["advice"][:1]:
            setting = f" {advice['setting']}" if advice["setting"] else ""
            yield f"  try: {printable(advice['text'] + setting)}"
    if request.run_dir.is_dir():
        yield f"To see it: tensorboard --logdir {shown(request.run_dir.parent)}"


def _table(answers: Sequence[Answer]) -> Iterator[str]:
    rows = [
        (
            str(answer.outcome.rank),
            _most(answer, "allocated_peak"),
            _most(answer, "reserved_peak"),
            answer.fit,
        )
        for answer in answers[:_MAX_RANKS]
    ]
    yield from text_table(("rank", "peak allocated", "peak reserved", ""), rows)


def _most(answer: Answer, name: str) -> str:
    sizes = [getattr(one.figures, name) for one in answer.devices]
    return bytes_text(max(sizes, default=None))


def _figures(one: DeviceAnswer) -> Iterator[str]:
    yield line("peak allocated", bytes_text(one.figures.allocated_peak))
    for name, size in sorted(one.categories.items(), key=lambda item: -item[1]):
        if size:
            yield line(f"  {printable(name)}", bytes_text(size))
    yield line("peak reserved", bytes_text(one.figures.reserved_peak))
    if one.figures.num_alloc_retries:
        number = one.figures.num_alloc_retries
        yield line("cache given back", counted(number, "time"))


def estimate_lines(estimates: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What lies outside of torch's allocator, as JSON has it, with the source."""
    for item in estimates:
        size = range_text(item["low_bytes"], item["high_bytes"])
        if item["low_bytes"] != item["high_bytes"]:
            size += ", estimated"
        yield line(f"+ {printable(item['name'])}", size)
        yield f"      {printable(item['source'])}"


def needed_lines(device: Mapping[str, Any], capacity: float) -> Iterator[str]:
    """What a device needs with them and with other ranks, as JSON has it."""
    others = device["others_low_bytes"], device["others_high_bytes"]
    if any(others):
        yield line("+ other ranks on it", range_text(*others))
    needed = range_text(device["needed_low_bytes"], device["needed_high_bytes"])
    yield line("needed", f"{needed} of {bytes_text(capacity)}")


def line(name: str, value: str) -> str:
    """A figure below an answer."""
    return f"    {name:28} {value}"


def _rests_on(outcome: Outcome) -> Iterator[str]:
    """What makes the prediction less than certain."""
    if outcome.places:
        yield "  This prediction rests on values that are not real, read at:"
        for place in outcome.places[:_MAX_PLACES]:
            yield f"    {_place(place)}"
        more = len(outcome.places) - _MAX_PLACES + outcome.num_places_left_out
        if more > 0:
            yield f"    and {counted(more, 'more place')}"
    for words in outcome.absent:
        yield f"  {printable(words)}"
    for path in outcome.unsuitable:
        yield (
            f"  {printable(path)} has a CUDA runtime of its own, linked statically:"
            " what it allocates is not seen"
        )


def _place(place: Place) -> str:
    by = f", by {place.by}" if place.by else ""
    where = f"{shown(Path(place.file))}:{place.line} {place.function}{by}"
    return f"{printable(where)} ({counted(place.count, 'time')})"


def shown(path: Path) -> str:
    """Relative to the working directory where it is below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
