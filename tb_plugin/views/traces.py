"""Route `/traces`: the files of traces of a run, and how far each is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin import api

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tb_plugin.readers.trace_files.found import FoundTrace
    from tb_plugin.readers.trace_sources import Opening

MAX_FILES: Final = 10_000


def traces(
    summary: api.RunSummary,
    found: Sequence[FoundTrace],
    opening: Callable[[FoundTrace], Opening | None],
    problems: tuple[api.Problem, ...],
    *,
    still_reading: bool,
) -> api.TracesResponse:
    """Answer `/traces`; `opening` says how far a file is, None: nobody asked for it."""
    return api.TracesResponse(
        run=summary,
        files=tuple(_file(one, opening(one)) for one in found[:MAX_FILES]),
        num_files=len(found),
        problems=problems,
        still_reading=still_reading,
    )


def _file(found: FoundTrace, opening: Opening | None) -> api.TraceFile:
    return api.TraceFile(
        id=found.id,
        name=found.name,
        path=found.shown_path,
        worker=found.worker,
        rank=found.rank,
        cycle=found.cycle,
        num_bytes=float(found.num_bytes),
        timeline=found.is_timeline,
        recorded=found.origin == "recording",
        state="found" if opening is None else opening.state,
        problem=None if opening is None else opening.problem,
    )
