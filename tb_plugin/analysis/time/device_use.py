"""The use of each device while it was profiled, by torch-tb-profiler's formulas.

Over the span from the first step's start to the last step's end:

- utilization: share of the span in which at least one kernel ran. A kernel of a single
  thread counts as much as one that fills the device.
- est. SM efficiency: mean over the span of min(1, blocks per SM of the kernels that run).
  64 blocks on 80 SMs are 0.8.
- est. achieved occupancy: of the kernels, weighted by time. 15 to 30 % can be as good as
  it gets: it is no goal by itself.
- tensor core share: time of kernels that use them, of those of which that is known: of all,
  where all are; not given where less than 80 % of the kernels' time are known.

The same of each step alone (`device_steps`), with what of kernels lies within it: so the
steps' figures, weighted, are those of the whole as far as no kernel lies outside of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import numpy as np

from memboard.tb_plugin.analysis.arrays import ratio
from memboard.tb_plugin.analysis.kernel_names.matrix_cores import known_ratio
from memboard.tb_plugin.analysis.time.intervals import covered_ns, integral, union
from memboard.tb_plugin.analysis.time.slice_roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.analysis.kernel_names.matrix_cores import MatrixCores
    from memboard.tb_plugin.analysis.time.intervals import Ranges
    from memboard.tb_plugin.analysis.time.profiled_steps import ProfiledSteps
    from memboard.tb_plugin.analysis.trace.trace import Trace


Whole = TypeVar("Whole")
Share = TypeVar("Share")


@dataclass(frozen=True, slots=True, eq=False)
class DeviceUse(Generic[Whole, Share]):
    """What kernels made of one device, in all or by step; shares are from 0 to 1."""

    device: int
    num_kernels: Whole
    kernel_ns: Whole
    """Sum over kernels; those that ran at once count each."""
    busy_ns: Whole
    """Time in which any kernel ran, within the span."""
    span_ns: Whole
    utilization: Share
    sm_efficiency: Share
    occupancy: Share
    tensor_core_share: Share
    tensor_core_known_share: Share
    """Of the kernels' time, that of kernels of which it is known."""


UseInAll: TypeAlias = "DeviceUse[int, float | None]"
"""None where nothing says it."""
UseByStep: TypeAlias = "DeviceUse[Ints, Floats]"
"""Columns of (steps,), NaN where nothing says it."""


def use_at(uses: UseByStep, step: int) -> UseInAll:
    """Of one step, by its index in `ProfiledSteps`."""
    return DeviceUse(
        device=uses.device,
        num_kernels=int(uses.num_kernels[step]),
        kernel_ns=int(uses.kernel_ns[step]),
        busy_ns=int(uses.busy_ns[step]),
        span_ns=int(uses.span_ns[step]),
        utilization=_known(uses.utilization[step]),
        sm_efficiency=_known(uses.sm_efficiency[step]),
        occupancy=_known(uses.occupancy[step]),
        tensor_core_share=_known(uses.tensor_core_share[step]),
        tensor_core_known_share=_known(uses.tensor_core_known_share[step]),
    )


def device_use(
    trace: Trace, roles: Ints, steps: ProfiledSteps, cores: MatrixCores
) -> tuple[UseInAll, ...]:
    """Every device that ran kernels, by its index.

    All of its kernels count for their number, time and tensor cores, as at the peer; for
    the rest what lies within the steps' span.
    """
    return tuple(_use(kernel, steps) for kernel in _kernels(trace, roles, cores))


def device_steps(
    trace: Trace, roles: Ints, steps: ProfiledSteps, cores: MatrixCores
) -> tuple[UseByStep, ...]:
    """The same devices, by step."""
    return tuple(_by_step(kernel, steps) for kernel in _kernels(trace, roles, cores))


class _Kernels:
    """The kernels of one device."""

    def __init__(
        self, trace: Trace, device: int, chosen: Flags, cores: MatrixCores
    ) -> None:
        """`chosen`: of the device work, its kernels."""
        work, slices = trace.device_work, trace.slices
        rows = work.row[chosen]
        self.device = device
        self.ranges = slices.ranges(rows)
        self.duration_ns = slices.duration_ns[rows].astype(np.int64)
        self.on_cores = cores.is_used[chosen]
        self.is_known = cores.is_known[chosen]
        self._blocks = work.blocks_per_sm[chosen]
        self._occupancy = work.occupancy_pct[chosen] / 100

    @cached_property
    def _union(self) -> Ranges:
        return union(self.ranges)

    @cached_property
    def _filled(self) -> tuple[Ints, Floats] | None:
        has_blocks = ~np.isnan(self._blocks)
        if not has_blocks.any():
            return None
        return filled_levels(self.ranges[has_blocks], self._blocks[has_blocks])

    def busy_ns(self, starts: Ints, ends: Ints) -> Ints:
        """How long any of them ran within each range of time."""
        return covered_ns(self._union, ends) - covered_ns(self._union, starts)

    def run_ns(self, starts: Ints, ends: Ints, chosen: Flags | None = None) -> Ints:
        """The sum of what of them, or of some, lies within each range."""
        ranges = self.ranges if chosen is None else self.ranges[chosen]
        level = stacked_levels(ranges, np.ones(len(ranges), np.int64))
        return integral(*level, ends) - integral(*level, starts)

    def sm_efficiency(self, starts: Ints, ends: Ints) -> Floats:
        """Of each range; NaN where no kernel says how it fills the device."""
        if self._filled is None:
            return np.full(len(starts), np.nan)
        filled = integral(*self._filled, ends) - integral(*self._filled, starts)
        return ratio(filled, ends - starts)

    def occupancy(self, starts: Ints, ends: Ints) -> Floats:
        """Of each range; NaN where no kernel in it says its own."""
        has_occupancy = np.isfinite(self._occupancy)
        weighted = stacked_levels(
            self.ranges[has_occupancy], self._occupancy[has_occupancy]
        )
        inside = integral(*weighted, ends) - integral(*weighted, starts)
        return ratio(inside, self.run_ns(starts, ends, has_occupancy))


def _kernels(trace: Trace, roles: Ints, cores: MatrixCores) -> Iterator[_Kernels]:
    """Of every device that ran any, by its index."""
    rows = trace.device_work.row
    is_kernel = (roles[rows] == Role.KERNEL) | (roles[rows] == Role.COMMUNICATION)
    devices = trace.device_work.device
    for device in np.unique(devices[is_kernel]).tolist():
        chosen = is_kernel & (devices == device)
        yield _Kernels(trace, device, chosen, cores)


def _use(kernels: _Kernels, steps: ProfiledSteps) -> UseInAll:
    start, end = (np.array([time], np.int64) for time in steps.span_ns)
    num, took = np.array([len(kernels.ranges)]), kernels.duration_ns
    kernel_ns, on_cores_ns, known_ns = (
        np.array([duration_ns.sum()])
        for duration_ns in (took, took[kernels.on_cores], took[kernels.is_known])
    )
    by_range = _by_range(kernels, start, end, num, kernel_ns, on_cores_ns, known_ns)
    return use_at(by_range, 0)


def _by_step(kernels: _Kernels, steps: ProfiledSteps) -> UseByStep:
    start, end = steps.start_ns, steps.end_ns
    of = steps.of(kernels.ranges[:, 0]) if len(steps) else np.empty(0, np.int64)
    num = np.bincount(of[of >= 0], minlength=len(steps))
    on_cores_ns = kernels.run_ns(start, end, kernels.on_cores)
    known_ns = kernels.run_ns(start, end, kernels.is_known)
    kernel_ns = kernels.run_ns(start, end)
    return _by_range(kernels, start, end, num, kernel_ns, on_cores_ns, known_ns)


def _by_range(
    kernels: _Kernels,
    start: Ints,
    end: Ints,
    num_kernels: Ints,
    kernel_ns: Ints,
    on_cores_ns: Ints,
    known_ns: Ints,
) -> UseByStep:
    busy_ns = kernels.busy_ns(start, end)
    return DeviceUse(
        device=kernels.device,
        num_kernels=num_kernels,
        kernel_ns=kernel_ns,
        busy_ns=busy_ns,
        span_ns=end - start,
        utilization=ratio(busy_ns, end - start),
        sm_efficiency=kernels.sm_efficiency(start, end),
        occupancy=kernels.occupancy(start, end),
        tensor_core_share=known_ratio(on_cores_ns, known_ns, kernel_ns),
        tensor_core_known_share=ratio(known_ns, kernel_ns),
    )


def filled_levels(ranges: Ranges, blocks: Floats) -> tuple[Ints, Floats]:
    """Times, ascending, and from each on min(1, blocks per SM of all that run then)."""
    # One that fills the device alone (a profiler may write Infinity) fills it.
    times, level = stacked_levels(ranges, np.clip(blocks, 0, 1))
    return times, np.clip(level, 0, 1)


def stacked_levels(ranges: Ranges, weights: Ints) -> tuple[Ints, Ints]:
    """Times, ascending, and from each on the sum of the weights of what runs then."""
    times = np.concatenate((ranges[:, 0], ranges[:, 1]))
    changes = np.concatenate((weights, -weights))
    order = np.argsort(times, kind="stable")
    times, level = times[order], np.cumsum(changes[order])
    # Of changes at one time the last says what holds from then on.
    last = np.append(np.diff(times) > 0, True)[: len(times)]
    return times[last], level[last]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
