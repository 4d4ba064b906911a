"""Which profiler's trace of a run is shown, and how far opening it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tb_plugin import api

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tb_plugin.jobs.trace_sources import FoundSource, Opening

MAX_LISTED: Final = 1_000
MAX_PROBLEMS: Final = 20


def profiler_traces(sources: Sequence[FoundSource]) -> list[FoundSource]:
    """Those that a profiler wrote, by cycle and rank, those that we recorded last."""
    return sorted(
        (one for one in sources if one.kind == "trace"),
        key=lambda one: (
            one.is_recorded,
            one.cycle or 0,
            one.rank is None,
            one.rank or 0,
            one.time_ns,
            one.name,
        ),
    )


def candidates_of(
    traces: Sequence[FoundSource], source: str | None, rank: int | None = None
) -> list[FoundSource]:
    """The one asked for; else any, the newest cycle's first, or that rank's alone.

    An id that is not there chooses nothing: the page says so.
    """
    if source is not None:
        return [one for one in traces if one.id == source]
    own = [one for one in traces if rank is None or one.rank == rank] or traces
    return sorted(own, key=lambda one: (not one.is_recorded, -(one.cycle or 0)))


def choice_of(
    traces: Sequence[FoundSource],
    opening: Opening | None,
    missing: str | None,
    passed_over: Sequence[Opening] = (),
) -> api.ProfileChoice:
    """What may be chosen, and what was; `missing`: an id that is not there.

    `passed_over`: what would have been chosen, had it opened.
    """
    problem = None if opening is None else opening.problem
    if opening is None and missing is not None:
        problem = api.Problem(
            severity="error",
            path="",
            what="This trace is not in the run (any more).",
            where="",
            salvaged="",
            remedy="Choose another one.",
            rank=None,
        )
    return api.ProfileChoice(
        traces=tuple(
            api.ProfiledTrace(
                id=one.id,
                name=one.name,
                rank=one.rank,
                cycle=one.cycle,
                num_bytes=one.num_bytes,
                time_ms=one.time_ns / 1e6 if one.time_ns else None,
            )
            for one in traces[-MAX_LISTED:]
        ),
        num_traces=len(traces),
        source=None if opening is None else opening.found.id,
        state="ready" if opening is None else opening.state,
        progress=1.0 if opening is None else opening.progress,
        doing="" if opening is None else opening.doing,
        problem=problem,
        problems=(
            ()
            if opening is None
            else (*_passed_over(passed_over, opening.found), *_left_out(opening))
        ),
    )


def _passed_over(
    openings: Sequence[Opening], shown: FoundSource
) -> Iterator[api.Problem]:
    for one in openings:
        if one.failure is not None:
            # Without its name the page's line would be about the trace that is shown.
            yield replace(
                one.failure,
                severity="warning",
                what=f"Another trace, {one.found.name}, cannot be opened: "
                f"{one.failure.what}",
                salvaged=f"{shown.name} is shown.",
            )


def _left_out(opening: Opening) -> tuple[api.Problem, ...]:
    """Of a trace that is open."""
    if opening.source is None:
        return ()
    trace = opening.source.trace
    return tuple(
        api.Problem(
            severity="warning",
            path=opening.found.name,
            what=f"{one.what} ({one.count:,})" if one.count > 1 else one.what,
            where=one.where,
            salvaged="" if trace.is_empty else "The rest of the trace is shown.",
            remedy="",
            rank=opening.found.rank,
        )
        for one in trace.problems[:MAX_PROBLEMS]
    )
