"""Route `/peak_composition`: what the memory at the peak of a run is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.tb_plugin.contract.parameters import Query, Rank
from memboard.tb_plugin.facts.overview.peak_composition import peak_composition
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from memboard.tb_plugin.api.overview import PeakCompositionResponse


class PeakQuery(Query, frozen=True):
    """The peak of a run, or of one rank."""

    rank: Rank | None = None


@route("peak_composition", PeakQuery)
def answer(asked: RouteRequest[PeakQuery]) -> PeakCompositionResponse:
    made = peak_composition(asked.state, asked.query.run, asked.query.rank)
    asked.decided_by(made)
    return made
