"""`memboard run --on`: runs what was requested, and prints the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from collector.cli.failure import Failure
from collector.format.prediction import together, worst
from tb_plugin.cli.prediction.answer import EXIT_CODES, answered
from tb_plugin.cli.prediction.launch import ran
from tb_plugin.cli.prediction.wording import as_json, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tb_plugin.cli.prediction.answer import Answer
    from tb_plugin.cli.prediction.request import Request


def predict(request: Request, *, json_wanted: bool) -> int:
    """Run the program, and say whether it fits; returns the exit code."""
    answers = answers_of(request)
    say(as_json(request, answers) if json_wanted else as_text(request, answers))
    return EXIT_CODES[worst(one.fit for one in answers)]


def say(answer: dict[str, Any] | Iterable[str]) -> None:
    """Print JSON, or lines."""
    if isinstance(answer, dict):
        print(json.dumps(answer), flush=True)
    else:
        print("\n".join(answer), flush=True)


def answers_of(request: Request) -> list[Answer]:
    """Run the request's processes, and judge what came of each."""
    every = list(ran(request))
    predictions = together(
        [
            done.outcome.prediction(
                request.device.memory_bytes, request.ranks.host(done.outcome.rank)
            )
            for done in every
        ]
    )
    return [
        answered(
            prediction,
            done.outcome,
            report=_report(request, done.outcome.rank),
            words=done.words,
            calls=done.calls,
        )
        for done, prediction in zip(every, predictions, strict=True)
    ]


def _report(request: Request, rank: int) -> dict[str, Any] | None:
    """Of the run; None where the program has recorded nothing."""
    from tb_plugin.cli.report.command import report_of

    if not request.run_dir.is_dir():
        return None
    try:
        return report_of(
            request.run_dir, rank=rank, capacity_bytes=request.device.memory_bytes
        )
    except Failure:
        return None
