"""The table of kernels: by name, or by name, launching operator and launch properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tb_plugin.analysis.time.slice_roles import Role
from tb_plugin.analysis.trace.trace import NOTHING

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.time.operator_times import OperatorTimes

    Ints: TypeAlias = npt.NDArray[Any]
    Floats: TypeAlias = npt.NDArray[np.float64]
    Bools: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class KernelTable:
    """One row per kernel, or per kernel, operator and properties; in no order.

    Texts are rows of `Trace.strings`. Where kernels are grouped by name alone, the
    properties are -1.
    """

    name: Ints
    operator: Ints
    """Name of the operator that launched it; -1 where none is known."""
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
    uses_tensor_cores: Bools
    example: Ints
    """Slice of the longest call."""

    def __len__(self) -> int:
        return len(self.name)

    @property
    def mean_ns(self) -> Floats:
        """Of one call."""
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
    columns = [trace.slices.name[rows].astype(np.int64)]
    if by_properties:
        owner = times.owner[chosen]
        launched_by = trace.slices.name[np.maximum(owner, 0)].astype(np.int64)
        columns += [
            np.where(owner == NOTHING, -1, launched_by),
            work.grid[chosen],
            work.block[chosen],
            work.registers[chosen],
            work.shared_memory_bytes[chosen],
        ]
    keys = np.stack(columns, axis=1)
    known, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    num = len(known)
    if not by_properties:
        known = np.concatenate((known, np.full((num, 5), -1)), axis=1)
    total = np.zeros(num, dtype=np.int64)
    np.add.at(total, group, duration)
    least = np.full(num, np.iinfo(np.int64).max)
    np.minimum.at(least, group, duration)
    most = np.zeros(num, dtype=np.int64)
    np.maximum.at(most, group, duration)
    longest = np.lexsort((-duration, group))
    example = longest[np.searchsorted(group[longest], np.arange(num))]
    return KernelTable(
        name=known[:, 0],
        operator=known[:, 1],
        grid=known[:, 2],
        block=known[:, 3],
        registers=known[:, 4],
        shared_memory_bytes=known[:, 5],
        num_calls=np.bincount(group, minlength=num),
        total_ns=total,
        min_ns=least,
        max_ns=most,
        blocks_per_sm=_mean(work.blocks_per_sm[chosen], duration, group, num),
        occupancy=_mean(work.occupancy_pct[chosen] / 100, duration, group, num),
        uses_tensor_cores=times.uses_tensor_cores[chosen][example],
        example=rows[example],
    )


def _mean(values: Floats, weights: Ints, group: Ints, num: int) -> Floats:
    """Weighted means by group; what is not known has no weight."""
    known = ~np.isnan(values)
    weight = np.bincount(group[known], weights[known], num)
    summed = np.bincount(group[known], values[known] * weights[known], num)
    mean: Floats = np.divide(summed, weight, np.full(num, np.nan), where=weight > 0)
    return mean
