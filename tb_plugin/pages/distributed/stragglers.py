"""Route `/stragglers`: which ranks are waited for, and what slows the steps down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.facts.steps.stragglers import stragglers_of
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from memboard.tb_plugin.api.time.steps import StragglersResponse
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.facts.view import View


@of_run(
    "stragglers",
    RanksQuery,
    reads=lambda readers: (readers.facts,),
    prefetches="series",
)
def stragglers(view: View[RanksQuery], facts: FactsReader) -> StragglersResponse:
    # Answer `/stragglers`
    return stragglers_of(view, facts)
