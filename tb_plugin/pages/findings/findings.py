"""Route `/findings`: all that is wrong with a run, from all sources, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.tb_plugin.facts.findings.run_findings import findings_of
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.facts.traces.cycle_ranks import straggler_in_traces
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.findings.stragglers import RunStraggler
    from memboard.tb_plugin.api.findings import FindingsResponse
    from memboard.tb_plugin.facts.findings.errors import ErrorsReader
    from memboard.tb_plugin.facts.findings.run_findings import Verdicts
    from memboard.tb_plugin.facts.ranks.losses import LossReader
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.captures.modules import ModulesReader


@of_run(
    "findings",
    RanksQuery,
    reads=lambda readers: (
        readers.errors,
        readers.losses,
        readers.modules,
        readers.verdicts,
    ),
    first=lambda readers, query: straggler_in_traces(readers, query.run),
    prefetches="facts",
    version=lambda readers: readers.errors.judge.version,
)
def findings(
    view: View[RanksQuery],
    straggler: RunStraggler,
    reader: ErrorsReader,
    losses: LossReader,
    modules: ModulesReader,
    verdicts: Verdicts,
) -> FindingsResponse:
    """Answer `/findings`; hold the run's lock."""
    return findings_of(view, reader, losses, modules, straggler, verdicts)
