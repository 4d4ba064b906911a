"""The route of a trace's kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tb_plugin.analysis.time.slice_roles import Role
from tb_plugin.api.kernels import KernelsResponse
from tb_plugin.contract.wire import i32, u8
from tb_plugin.pages.operators.table import Number, Table
from tb_plugin.pages.profile.asked import MS, US, TableQuery, of_profile

if TYPE_CHECKING:
    from tb_plugin.analysis.trace.profile import TraceProfile
    from tb_plugin.api.base import RunSummary
    from tb_plugin.api.profile import ProfileChoice

_KERNELS: Final = Table(
    texts=("name", "operator", "grid", "block"),
    searched=("name", "operator"),
    max_text=1_000,
    numbers=(
        Number("registers", wire=i32, negative_is_unknown=True),
        Number("shared_memory_bytes", negative_is_unknown=True),
        Number("num_calls"),
        Number("total_ms", "total_ns", MS),
        Number("min_us", "min_ns", US),
        Number("mean_us", "mean_ns", US),
        Number("max_us", "max_ns", US),
        Number("blocks_per_sm"),
        Number("occupancy"),
        Number("uses_tensor_cores", wire=u8),
    ),
)


class KernelsQuery(TableQuery, frozen=True):
    """Kernels by name, or apart by their properties of launch."""

    by: Literal["name", "properties"] = "name"


@of_profile("kernels", KernelsQuery)
def kernels(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: KernelsQuery
) -> KernelsResponse:
    """The table of a trace."""
    every, strings = profile.kernels, profile.trace.strings
    table = profile.kernels_by_properties if query.by == "properties" else every
    rows, num_rows = _KERNELS.rows(
        table, strings, query, "total_ms", np.arange(len(table))
    )
    on_cores_ns = every.total_ns[every.uses_tensor_cores]
    return KernelsResponse(
        run=run,
        choice=choice,
        by=query.by,
        **_KERNELS.sent(table, strings, rows),
        is_communication=u8(profile.roles[table.example[rows]] == Role.COMMUNICATION),
        num_rows=num_rows,
        total_all_ms=int(every.total_ns.sum()) / MS,
        tensor_core_ms=int(on_cores_ns.sum()) / MS,
        has_kernels=len(table) > 0,
    )
