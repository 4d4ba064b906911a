"""The route of a trace's kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.api.time.kernels import KernelsResponse
from memboard.tb_plugin.contract.table import titled
from memboard.tb_plugin.facts.traces.profiled import TableQuery
from memboard.tb_plugin.facts.traces.time_tables import KernelsBy, kernel_rows
from memboard.tb_plugin.server.views.trace import of_profile

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.time.profile import ProfileChoice

_NO_KERNEL: Final = (
    "Nothing ran on a device while it was recorded, or the profiler did not record "
    "devices: ProfilerActivity.CUDA does (automatic)."
)


class KernelsQuery(TableQuery, frozen=True):
    """Kernels by name, or apart by their properties of launch."""

    by: KernelsBy = "name"


@of_profile("kernels", KernelsQuery)
def kernels(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: KernelsQuery
) -> KernelsResponse:
    """The table of a trace."""
    rows, every = kernel_rows(profile, query, query.by), profile.kernels
    on_cores_ns = int(every.total_ns[every.uses_tensor_cores].sum())
    percent = 100 * on_cores_ns / max(int(every.total_ns.sum()), 1)
    summary = (
        f"{counted(rows.num_all, 'row')}, {percent:.1f} % of the time with tensor cores"
    )
    return KernelsResponse(
        run=run,
        choice=choice,
        by=query.by,
        table=titled(rows, "Kernels", summary, _NO_KERNEL),
    )
