"""Route `/trace_path`: the critical path of a step, and what it is made of."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.findings.text import duration_text, share_text
from memboard.tb_plugin.analysis.trace.waiting.critical_path import (
    by_name,
    critical_path,
)
from memboard.tb_plugin.analysis.trace.waiting.work_starts import Cause
from memboard.tb_plugin.api.time.trace import TracePathResponse
from memboard.tb_plugin.contract.parameters import Count
from memboard.tb_plugin.contract.table import Column, rows_of, titled
from memboard.tb_plugin.facts.traces.profiled import SourceQuery
from memboard.tb_plugin.server.views.trace import of_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace.waiting.critical_path import OnPath, Piece
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.api.time.profile import ProfileChoice

MAX_ROWS: Final = 200
_COLUMNS: Final = (
    Column(
        "name",
        "Name",
        unit="name",
        help="Of the innermost slice, or of the call or kernel",
    ),
    Column(
        "cause", "Part", unit="text", help="Why the step could not go on without it"
    ),
    Column(
        "path_ms",
        "On the path",
        unit="ms",
        help="Making it shorter makes the step shorter, until another path is the longest",
    ),
    Column(
        "pieces", "Pieces", unit="count", help="How often the path passes through it"
    ),
)


class PathQuery(SourceQuery, frozen=True):
    """One trace, and a step of it; the longest where none is named."""

    step: Count | None = None


@of_profile("trace_path", PathQuery)
def trace_path(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: PathQuery
) -> TracePathResponse:
    """What a step's length is made of, without what was hidden behind it."""
    del run
    steps = profile.steps
    if not len(steps):
        return TracePathResponse(choice.state, (), _table([], 0), choice.problems)
    took = steps.end_ns - steps.start_ns
    index = steps.index_of(query.step)
    if index is None:
        index = int(took.argmax())
    path = critical_path(profile, index)
    names_on_path = by_name(profile, path)
    subject = f"Step {int(steps.number[index])}" if steps.are_marked else "The trace"
    return TracePathResponse(
        state=choice.state,
        sentences=(_sentence(subject, path, int(took[index])),),
        table=_table(names_on_path, int(took[index])),
        problems=choice.problems,
    )


def _table(names_on_path: Sequence[OnPath], took_ns: int) -> TableRows:
    shown = names_on_path[:MAX_ROWS]
    shares = tuple(share_text(on_path.path_ns / took_ns) for on_path in shown)
    rows = rows_of(
        _COLUMNS,
        shown,
        "path_ms",
        num_all=len(names_on_path),
        path_ms={"notes": shares},
    )
    return titled(rows, "Critical path of a step")


def _sentence(subject: str, path: Sequence[Piece], took_ns: int) -> str:
    """The parts of the path, the longest first."""
    sums: Counter[str] = Counter()
    for piece in path:
        sums[piece.cause.value] += piece.end_ns - piece.start_ns
    parts = [
        f"{share_text(num_ns / took_ns)} {cause}"
        for cause, num_ns in sums.most_common()
        if num_ns >= took_ns / 2000
    ]
    takes = f"{subject} takes {duration_text(took_ns / 1e9)}"
    if not parts:
        return f"{takes}."
    text = f"{takes}: {', '.join(parts)}. Work that is not on this path was hidden behind it."
    if sums[Cause.UNKNOWN.value] >= took_ns / 100:
        text += " What is not explained is work that began late after its launch, while"
        text += " nothing else ran that the trace has."
    if sums[Cause.BEFORE.value] >= took_ns / 100:
        text += (
            " Before its first recorded work a device may have run what was launched"
        )
        text += " before the recording began."
    return text
