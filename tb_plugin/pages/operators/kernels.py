"""The route of a trace's kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.api.kernels import KernelsResponse
from memboard.tb_plugin.contract.table import Column, Table, titled
from memboard.tb_plugin.facts.traces.profiled import TableQuery, of_profile

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.profile import ProfileChoice

_UNSAID: Final = "Not in the trace"
_KERNELS: Final = Table(
    (
        Column(
            "name",
            "Kernel",
            unit="name",
            help="The kernel as the profiler names it; pointed at, with its template arguments",
        ),
        Column(
            "operator",
            "Operator",
            unit="name",
            help="The innermost operator around the launch, by the launch's correlation id",
        ),
        Column(
            "grid",
            "Grid",
            unit="text",
            help="Blocks of a launch, in x, y and z",
            sorts=False,
        ),
        Column(
            "block",
            "Block",
            unit="text",
            help="Threads of a block, in x, y and z",
            sorts=False,
        ),
        Column(
            "num_calls",
            "Calls",
            unit="count",
            help="How often it ran while the profiler did",
        ),
        Column(
            "total_ms",
            "Total",
            unit="ms",
            help="Sum of the durations of its runs. Kernels that run at the same time on "
            "several streams count each, so it may exceed the time that passed.",
            bar="row",
            share_of="of the kernels' time",
        ),
        Column("mean_us", "Mean", unit="us", help="Total ÷ calls"),
        Column("min_us", "Min", unit="us", help="The shortest run"),
        Column(
            "max_us",
            "Max",
            unit="us",
            help="The longest run; far above the mean, something delayed it at times",
        ),
        Column(
            "blocks_per_sm",
            "Blocks/SM",
            unit="ratio",
            help="Blocks of a launch ÷ the device's SMs, mean of the runs weighted by their "
            "time. Below 1 some SMs have nothing to do: 64 blocks on 80 SMs are 0.8.",
            absent=_UNSAID,
        ),
        Column(
            "occupancy",
            "Occupancy",
            unit="share",
            help="Est. achieved occupancy: active warps of an SM ÷ those it could have, mean of "
            "the runs weighted by their time. The profiler estimates it from the launch "
            "configuration, it is not measured; 15 to 30 % may be as good as it gets.",
            absent=_UNSAID,
        ),
        Column(
            "uses_tensor_cores",
            "TC",
            unit="yes",
            help="Whether it uses tensor cores, judged by its name alone (Volta to Blackwell): "
            "a kernel with another name counts as not using them",
        ),
        Column(
            "registers",
            "Registers",
            unit="count",
            help="Registers of a thread. Many leave room for fewer warps on an SM.",
            absent=_UNSAID,
        ),
        Column(
            "shared_memory_bytes",
            "Shared B",
            unit="count",
            help="Bytes of shared memory of a block, static and dynamic. Much leaves room for "
            "fewer blocks on an SM.",
            absent=_UNSAID,
        ),
    ),
    searched=("name", "operator"),
    max_text=1_000,
)
_OF_LAUNCHES: Final = ("operator", "grid", "block", "registers", "shared_memory_bytes")

_NOTHING: Final = (
    "Nothing ran on a device while it was recorded, or the profiler did not record "
    "devices: ProfilerActivity.CUDA does (automatic)."
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
    asked = _KERNELS.rows(table, strings, query, "total_ms", np.arange(len(table)))
    roles = profile.roles[table.example[asked[0]]]
    on_cores_ns = int(every.total_ns[every.uses_tensor_cores].sum())
    share = 100 * on_cores_ns / max(int(every.total_ns.sum()), 1)
    found = _KERNELS.sent(
        table,
        strings,
        asked,
        "total_ms",
        without=() if query.by == "properties" else _OF_LAUNCHES,
        colours=tuple(
            "communication" if role == Role.COMMUNICATION else "kernel"
            for role in roles.tolist()
        ),
    )
    words = f"{counted(asked[1], 'row')}, {share:.1f} % of the time with tensor cores"
    return KernelsResponse(
        run=run,
        choice=choice,
        by=query.by,
        table=titled(found, "Kernels", words, _NOTHING),
    )
