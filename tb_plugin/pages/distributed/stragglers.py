"""Route `/stragglers`: which ranks are waited for, and what slows the steps down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from memboard.tb_plugin.analysis.findings.render import with_markdown
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from memboard.tb_plugin.api.time.steps import StragglersResponse
    from memboard.tb_plugin.facts.steps.stragglers import StragglersReader
    from memboard.tb_plugin.facts.view import View


@of_run(
    "stragglers",
    RanksQuery,
    reads=lambda readers: (readers.stragglers,),
    prefetches="series",
)
def stragglers(view: View[RanksQuery], reader: StragglersReader) -> StragglersResponse:
    # Answer `/stragglers`
    response = reader.of(view)
    return structs.replace(response, findings=with_markdown(response.findings))
