"""The route of a trace's kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.api.time.kernels import KernelsResponse
from memboard.tb_plugin.api.time.profile import ColumnSet  # noqa: TC001 - msgspec reads it
from memboard.tb_plugin.contract.table import titled
from memboard.tb_plugin.facts.traces.core_columns import (
    in_vendor_words,
    kernels_on_cores,
)
from memboard.tb_plugin.facts.traces.profiled import TableQuery
from memboard.tb_plugin.facts.traces.time_tables import KernelsBy, kernel_rows
from memboard.tb_plugin.facts.traces.work_columns import NO_DEVICE, work_summary
from memboard.tb_plugin.server.views.trace import of_profile

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.time.profile import ProfileChoice


class KernelsQuery(TableQuery, frozen=True):
    """Kernels by name, or apart by their properties of launch."""

    by: KernelsBy = "name"
    columns: ColumnSet = "times"


@of_profile("kernels", KernelsQuery)
def kernels(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: KernelsQuery
) -> KernelsResponse:
    """The table of a trace."""
    rows = kernel_rows(profile, query, query.by, query.columns)
    every = profile.kernels
    parts = (counted(rows.num_all, "row"), kernels_on_cores(every))
    summary = ", ".join(filter(None, parts))
    if query.columns == "efficiency":
        summary += work_summary(profile)
    return KernelsResponse(
        run=run,
        choice=choice,
        by=query.by,
        table=in_vendor_words(
            titled(rows, "Kernels", summary, NO_DEVICE), profile.trace
        ),
    )
