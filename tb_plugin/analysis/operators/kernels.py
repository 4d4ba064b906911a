"""The table of kernels: by name, or by name, launching operator and launch properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    grouped,
    highest,
    longest_of,
    numbered,
    picked,
    ratio,
    sums,
)
from memboard.tb_plugin.analysis.efficiency.call_work import (
    WorkTable,
    kernel_work_columns,
)
from memboard.tb_plugin.analysis.kernel_names.kinds import kernel_kind
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KernelTable(WorkTable):
    """One row per kernel, or per kernel, operator and properties; in no order.

    Texts are rows of `Trace.strings`. Where kernels are grouped by name alone, the
    properties are -1.
    """

    name: Ints
    operator: Ints
    """Name of the operator that launched it, or outside operators of the call, as
    `cudaGraphLaunch`; -1 where none is known."""
    grid: Ints
    block: Ints
    registers: Ints
    shared_memory_bytes: Ints
    num_calls: Ints
    total_ns: Ints
    min_ns: Ints
    max_ns: Ints
    blocks_per_sm: Floats
    """Mean, weighted by time; NaN where the trace does not say it."""
    occupancy: Floats
    """Likewise, from 0 to 1."""
    uses_tensor_cores: Ints
    """1: yes; 0: no; -1: not known."""
    may_communicate: Flags
    """Counts as computation, and its name says that it moves data between ranks."""
    category: Ints
    """Of the longest call: see `work_categories`."""
    recomputed_ns: Ints
    example: Ints
    """Slice of the longest call."""

    @property
    def mean_ns(self) -> Floats:
        return self.total_ns / np.maximum(self.num_calls, 1)


def kernel_table(
    times: OperatorTimes, roles: Ints, *, by_properties: bool = False
) -> KernelTable:
    """All kernels of a trace, those of collectives included; `roles` by slice."""
    trace, work = times.trace, times.trace.device_work
    kernel_roles = (Role.KERNEL, Role.COMMUNICATION)
    chosen = np.isin(roles[work.row], kernel_roles)
    rows = work.row[chosen]
    duration = trace.slices.duration_ns[rows].astype(np.int64)
    columns = [trace.slices.name[rows]]
    if by_properties:
        columns += [
            picked(trace.slices.name, times.launched_by[chosen]),
            work.grid[chosen],
            work.block[chosen],
            work.registers[chosen],
            work.shared_memory_bytes[chosen],
        ]
    first, group = numbered(*columns)
    num = len(first)
    keys = [column[first].astype(np.int64) for column in columns]
    keys += [np.full(num, NOTHING)] * 5  # not all are used
    shortest = np.full(num, np.iinfo(np.int64).max)
    np.minimum.at(shortest, group, duration)
    example = longest_of(group, duration, num)
    may_communicate = (roles[rows[example]] == Role.KERNEL) & are(
        trace.strings, trace.slices.name[rows[example]], _is_asked_about
    )
    return KernelTable(
        name=keys[0],
        operator=keys[1],
        grid=keys[2],
        block=keys[3],
        registers=keys[4],
        shared_memory_bytes=keys[5],
        num_calls=np.bincount(group, minlength=num),
        total_ns=sums(group, duration, num),
        min_ns=shortest,
        max_ns=highest(group, duration, num),
        blocks_per_sm=_mean(work.blocks_per_sm[chosen], duration, group, num),
        occupancy=_mean(work.occupancy_pct[chosen] / 100, duration, group, num),
        uses_tensor_cores=times.matrix_cores.verdict[chosen][example],
        may_communicate=may_communicate & (trace.facts.world_size != 1),
        category=times.categories[chosen][example],
        recomputed_ns=sums(group, duration * times.is_recomputed[chosen], num),
        **kernel_work_columns(
            times.work, times.counted_calls[chosen], duration, group, num
        ),
        example=rows[example],
    )


def _is_asked_about(kernel_name: str) -> bool:
    return kernel_kind(kernel_name).communication == "asked"


def _mean(values: Floats, weights: Ints, group: Ints, num: int) -> Floats:
    """Weighted means by group; what is not known has no weight."""
    has_value = ~np.isnan(values)
    weight = np.bincount(group[has_value], weights[has_value], num)
    summed = np.bincount(group[has_value], values[has_value] * weights[has_value], num)
    return ratio(summed, weight)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CategoryTable(WorkTable):
    """One row per category that ran on a device, copies and fills among them."""

    name: Ints
    """The category, as a number of `work_categories.CATEGORIES`."""
    num_calls: Ints
    """How many kernels, copies and fills ran."""
    total_ns: Ints
    recomputed_ns: Ints


def category_table(times: OperatorTimes) -> CategoryTable:
    """All that ran on devices; whatever ran at the same time counts each."""
    duration = times.work_ns
    present, group = grouped(times.categories)
    num = len(present)
    return CategoryTable(
        name=present.astype(np.int64),
        num_calls=np.bincount(group, minlength=num),
        total_ns=sums(group, duration, num),
        recomputed_ns=sums(group, duration * times.is_recomputed, num),
        **kernel_work_columns(times.work, times.counted_calls, duration, group, num),
    )
