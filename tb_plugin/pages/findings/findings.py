"""Route `/findings`: all that is wrong with a run, from all sources, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from memboard.tb_plugin.analysis.findings.render import with_markdown
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.facts.traces.cycle_ranks import straggler_in_traces
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.findings.stragglers import RunStraggler
    from memboard.tb_plugin.api.findings import FindingsResponse
    from memboard.tb_plugin.facts.findings.errors import ErrorsReader
    from memboard.tb_plugin.facts.findings.run_findings import RunFindings
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.captures.modules import ModulesReader


@of_run(
    "findings",
    RanksQuery,
    reads=lambda readers: (readers.findings, readers.errors, readers.modules),
    first=lambda readers, query: straggler_in_traces(readers, query.run),
    prefetches="facts",
    version=lambda readers: readers.errors.judge.version,
)
def findings(
    view: View[RanksQuery],
    straggler: RunStraggler,
    reader: RunFindings,
    errors: ErrorsReader,
    modules: ModulesReader,
) -> FindingsResponse:
    """Answer `/findings`; hold the run's lock."""
    response = reader.of(view, errors, modules, straggler)
    return structs.replace(response, findings=with_markdown(response.findings))
