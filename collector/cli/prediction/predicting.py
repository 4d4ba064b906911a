"""`memboard run --on`: runs what was requested, and prints the answer."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from collector.cli.failure import Failure
from collector.cli.prediction.answer import EXIT_CODES, answered, worst
from collector.cli.prediction.launch import ran
from collector.cli.prediction.wording import as_json, as_text

if TYPE_CHECKING:
    from collector.cli.prediction.answer import Answer
    from collector.cli.prediction.request import Request


def predict(request: Request, *, json_wanted: bool) -> int:
    """Run the program, and say whether it fits; returns the exit code."""
    answers = [one_answer(request)]
    if json_wanted:
        json.dump(as_json(request, answers), sys.stdout)
        print()
    else:
        print("\n".join(as_text(request, answers)), flush=True)
    return EXIT_CODES[worst(answers)]


def one_answer(request: Request) -> Answer:
    """Run one process, and judge what came of it."""
    done = ran(request)
    return answered(
        request.device,
        done.outcome,
        outside_bytes=request.outside_bytes,
        report=_report(request, done.outcome.rank),
    )


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
