"""Everything derived from one trace, each made when it is first read and kept."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from memboard.collector.format.own.frames import DISPATCH_MODE, RECORDER, UNPROVED_MODE
from memboard.collector.format.own.slices import tracks_modules
from memboard.tb_plugin.analysis.arrays import ratio
from memboard.tb_plugin.analysis.operators.call_tree import CallTree, call_tree
from memboard.tb_plugin.analysis.operators.kernels import (
    CategoryTable,
    KernelTable,
    category_table,
    kernel_table,
)
from memboard.tb_plugin.analysis.operators.module_times import ModuleTimes, module_times
from memboard.tb_plugin.analysis.operators.operator_times import (
    OperatorTimes,
    operator_times,
)
from memboard.tb_plugin.analysis.operators.operators import (
    IN_NO_OPERATOR,
    OperatorTable,
    launching_table,
    operator_table,
)
from memboard.tb_plugin.analysis.operators.replayed import ReplayedTime, replayed_time
from memboard.tb_plugin.analysis.ranks.collectives import (
    RankCollectives,
    rank_collectives,
)
from memboard.tb_plugin.analysis.time.device_use import (
    UseByStep,
    UseInAll,
    device_steps,
    device_use,
)
from memboard.tb_plugin.analysis.time.profiled_steps import (
    ProfiledSteps,
    profiled_steps,
)
from memboard.tb_plugin.analysis.time.slice_roles import slice_roles
from memboard.tb_plugin.analysis.time.time_parts import (
    TimeParts,
    parts_within,
    time_parts,
)
from memboard.tb_plugin.analysis.trace.waiting.work_starts import WorkStarts
from memboard.tb_plugin.analysis.trace_memory.attribution import TraceLives, trace_lives
from memboard.tb_plugin.analysis.trace_memory.events import (
    MemoryDevices,
    MemoryPairs,
    memory_devices,
    memory_pairs,
)
from memboard.tb_plugin.analysis.trace_memory.operators import (
    Charge,
    OperatorMemory,
    operator_memory,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace


class TraceProfile:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._operator_memory: dict[Charge, OperatorMemory] = {}

    @cached_property
    def roles(self) -> Ints:
        """(slices,): the `Role` of each."""
        return slice_roles(self.trace)

    @cached_property
    def steps(self) -> ProfiledSteps:
        """With what their device work adds."""
        return profiled_steps(self.trace)

    @cached_property
    def parts(self) -> TimeParts:
        """Of each step, by `Role`."""
        return time_parts(self.trace, self.roles, self.steps)

    @cached_property
    def work_starts(self) -> WorkStarts:
        """What each piece of device work waited for."""
        return WorkStarts(self.trace)

    @property
    def has_devices(self) -> bool:
        """Whether anything ran on a device while it was recorded."""
        return len(self.trace.device_work.row) > 0

    @cached_property
    def shares(self) -> Floats:
        """(8,): of the steps' time, what each `Role` took; NaN without any time."""
        sums = self.parts.parts_ns.sum(axis=0)
        total = sums.sum()
        shares: Floats = sums / total if total else np.full(len(sums), np.nan)
        return shares

    @cached_property
    def late_shares(self) -> Floats:
        """(8,): the part of `shares` in which launched work was late for no recorded reason."""
        late = self.work_starts.late
        late_ns = parts_within(self.trace, self.roles, self.steps, late)
        return ratio(late_ns, np.full(len(late_ns), self.parts.parts_ns.sum()))

    @cached_property
    def devices(self) -> tuple[UseInAll, ...]:
        return device_use(self.trace, self.roles, self.steps, self.times.matrix_cores)

    @cached_property
    def device_steps(self) -> tuple[UseByStep, ...]:
        """Of each step alone; as `devices`."""
        return device_steps(self.trace, self.roles, self.steps, self.times.matrix_cores)

    @cached_property
    def times(self) -> OperatorTimes:
        return operator_times(self.trace, self.roles)

    @cached_property
    def operator_names(self) -> Sequence[str]:
        """`Trace.strings` and `IN_NO_OPERATOR`, the last one.

        A dispatch mode that may be the recorder's is named so.
        """
        strings = (*self.trace.strings, IN_NO_OPERATOR)
        is_proved = RECORDER in strings or tracks_modules(self.trace.facts.metadata)
        if DISPATCH_MODE not in strings or is_proved:
            return strings
        return tuple(
            UNPROVED_MODE if name == DISPATCH_MODE else name for name in strings
        )

    @cached_property
    def operators(self) -> OperatorTable:
        return operator_table(self.times)

    @cached_property
    def operators_by_shapes(self) -> OperatorTable:
        """By name and input shapes."""
        return operator_table(self.times, by_shapes=True)

    @cached_property
    def launching(self) -> OperatorTable:
        """Operators by name, and the calls that launched outside them."""
        return launching_table(self.times)

    @cached_property
    def launching_by_shapes(self) -> OperatorTable:
        """The same by name and input shapes."""
        return launching_table(self.times, by_shapes=True)

    @cached_property
    def replayed(self) -> ReplayedTime:
        """What graphs ran on devices."""
        return replayed_time(self.trace)

    @cached_property
    def kernels(self) -> KernelTable:
        return kernel_table(self.times, self.roles)

    @cached_property
    def kernels_by_properties(self) -> KernelTable:
        """By name, operator and launch properties."""
        return kernel_table(self.times, self.roles, by_properties=True)

    @cached_property
    def categories(self) -> CategoryTable:
        """What ran on devices, by kind of work."""
        return category_table(self.times)

    @cached_property
    def modules(self) -> ModuleTimes:
        return module_times(self.times)

    @cached_property
    def calls(self) -> CallTree:
        """Modules, annotations and operators by their place."""
        return call_tree(self.times)

    @cached_property
    def collectives(self) -> RankCollectives:
        return rank_collectives(self.trace, self.roles)

    @cached_property
    def memory_pairs(self) -> MemoryPairs:
        """Which event freed which allocation."""
        return memory_pairs(self.trace.memory)

    @cached_property
    def memory_devices(self) -> MemoryDevices:
        return memory_devices(self.trace.memory)

    @cached_property
    def lives(self) -> TraceLives:
        """Allocations with what they are for."""
        return trace_lives(self.times, self.memory_pairs, self.steps)

    def operator_memory(
        self, charge: Charge, range_ns: tuple[int, int] | None = None
    ) -> OperatorMemory:
        """By device and operator; kept where it is of the whole trace."""
        table = None if range_ns is not None else self._operator_memory.get(charge)
        if table is None:
            table = operator_memory(
                self.times,
                self.memory_pairs,
                self.memory_devices,
                range_ns=range_ns,
                charge=charge,
            )
            if range_ns is None:
                self._operator_memory[charge] = table
        return table
