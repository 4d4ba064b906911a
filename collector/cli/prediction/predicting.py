"""`memboard run --on`: runs what was requested, and prints the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from collector.cli.failure import Failure
from collector.cli.prediction.answer import EXIT_CODES, answered, worst
from collector.cli.prediction.launch import ran
from collector.cli.prediction.wording import as_json, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.cli.prediction.answer import Answer
    from collector.cli.prediction.request import Request


def predict(request: Request, *, json_wanted: bool) -> int:
    """Run the program, and say whether it fits; returns the exit code."""
    answers = answers_of(request)
    say(as_json(request, answers) if json_wanted else as_text(request, answers))
    return EXIT_CODES[worst(answers)]


def say(answer: dict[str, Any] | Iterable[str]) -> None:
    """Print JSON, or lines."""
    if isinstance(answer, dict):
        print(json.dumps(answer), flush=True)
    else:
        print("\n".join(answer), flush=True)


def answers_of(request: Request) -> list[Answer]:
    """Run the request's processes, and judge what came of each."""
    every = ran(request)
    return [
        answered(
            request.device,
            done.outcome,
            beside=[
                other.outcome
                for other in every
                if other is not done
                and request.ranks.share_a_host(other.outcome.rank, done.outcome.rank)
            ],
            outside_bytes=request.outside_bytes,
            report=_report(request, done.outcome.rank),
            words=done.words,
            calls=done.calls,
        )
        for done in every
    ]


def _report(request: Request, rank: int) -> dict[str, Any] | None:
    """Of the run; None where the program has recorded nothing."""
    from collector.cli.report import report_of

    if not request.run_dir.is_dir():
        return None
    try:
        return report_of(
            request.run_dir, rank=rank, capacity_bytes=request.device.memory_bytes
        )
    except Failure:
        return None
