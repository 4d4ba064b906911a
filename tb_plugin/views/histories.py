"""The route of histories: every one of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin import api
from tb_plugin.readers.history_list import default_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tb_plugin.readers.histories import Opening
    from tb_plugin.readers.history_list import FoundHistory
    from tb_plugin.run import Run

MAX_HISTORIES: Final = 1000

_SOURCE: Final = "history"
_COST: Final = "2 us per allocation, 7 us per event kept for each capture"
_REMEDY: Final = (
    "Give `collector.record` history=True, call `rec.snapshot(name)`, or put what"
    " torch.cuda.memory._dump_snapshot wrote into the logdir."
)


def histories(
    run: Run,
    summary: api.RunSummary,
    found: Sequence[FoundHistory],
    wanted: Sequence[FoundHistory],
    look_up: Callable[[FoundHistory], Opening | None],
    *,
    still_reading: bool,
) -> api.HistoriesResponse:
    """The `wanted` ones, by time, of all that were `found`."""
    default = default_of(wanted)
    return api.HistoriesResponse(
        run=summary,
        histories=tuple(_choice(one, look_up(one)) for one in wanted[-MAX_HISTORIES:]),
        num_histories=len(wanted),
        ranks=tuple(
            sorted(
                {one.reference.rank for one in found if one.reference.rank is not None}
            )
        ),
        default=None if default is None else default.reference.id,
        still_reading=still_reading,
        absent=() if still_reading else _absent(run, found),
        problems=run.problems,
    )


def _choice(found: FoundHistory, opening: Opening | None) -> api.HistoryChoice:
    problem = None if opening is None else opening.problem
    return api.HistoryChoice(
        reference=found.reference,
        origin=found.origin,
        state="closed" if opening is None else opening.state,
        problem="" if problem is None else problem.what,
    )


def _absent(run: Run, found: Sequence[FoundHistory]) -> tuple[api.Recorded, ...]:
    """What was said about the history; where nothing was, that it was not recorded."""
    said = tuple(
        one
        for one in run.catalogue.recorded()
        if one.source.partition(".")[0] == _SOURCE and one.status != "recorded"
    )
    if said or found:
        return said
    return (
        api.Recorded(
            source=_SOURCE,
            status="off",
            num_ranks=len(run.ranks),
            reason="No allocator history was recorded in this run.",
            remedy=_REMEDY,
            cost=_COST,
        ),
    )
