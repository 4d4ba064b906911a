"""The places of a trace's memory events: what the slices around each of them say.

From the innermost slice of an event's thread outwards, to the last: marks, the module,
FSDP2's annotation, the operator that brings everything about.

The unit of FSDP2 under way is told from its annotations: `FSDP::pre_forward (layers.0)`
begins what `FSDP::post_forward (layers.0)` ends on the same thread, `FSDP::pre_backward`
what `FSDP::post_backward_reduce` does; units inside others come before them. An annotation
inside a prefetch names its unit itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.marks import (
    COPY,
    DATA,
    OPTIMIZER,
    OPTIMIZER_STATE,
)
from memboard.tb_plugin.analysis.categories.phases import NONE, OPTIMIZER_PHASE, PHASES
from memboard.tb_plugin.analysis.operators.module_times import arrows, module_names
from memboard.tb_plugin.analysis.trace.texts import texts_in
from memboard.tb_plugin.analysis.trace_memory.marks import (
    ZERO_GRAD,
    trace_marks,
    trace_phases,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes
    from memboard.tb_plugin.analysis.trace.trace import Trace


class EventPlaces:
    """What is around each memory event on its thread; columns of (events,)."""

    def __init__(self, times: OperatorTimes) -> None:
        self.times, self.trace = times, times.trace
        self._marks = trace_marks(times)
        self._rows, self._of_event = np.unique(times.memory_slices, return_inverse=True)
        self.phases, self.phase_begins_ns = trace_phases(
            self.trace, self._marks, self.trace.memory.time_ns
        )
        self._sharding = sharding_names(self.trace)
        self._modules = module_names(self.trace)
        self._walk()

    def _walk(self) -> None:
        """From each slice outwards: marks, and the nearest of what is looked for."""
        slices, rows = self.trace.slices, self._rows
        is_module = np.isin(slices.name, list(self._modules))
        is_sharding = np.isin(slices.name, list(self._sharding))
        # By slice, the forward operator that an arrow `fwdbwd` to it leaves.
        forward = np.full(len(slices), NOTHING, dtype=np.int64)
        backward, made_by = arrows(self.trace)
        forward[backward] = made_by
        self._bits = np.zeros(len(rows), dtype=np.int64)
        self._kind = np.full(len(rows), NONE)
        self._module = np.full(len(rows), NOTHING, dtype=np.int64)
        self._annotation = self._module.copy()
        self._forward = self._module.copy()
        self._operator = self._module.copy()
        index, row = np.arange(len(rows)), rows
        inner = row != NOTHING
        index, row = index[inner], row[inner]
        self._kind[index] = self._marks.kind[row]
        while len(index):
            self._bits[index] |= self._marks.own[row]
            for nearest, candidate in (
                (self._module, np.where(is_module[row], row, NOTHING)),
                (self._annotation, np.where(is_sharding[row], row, NOTHING)),
                (self._forward, forward[row]),
            ):
                new = (nearest[index] == NOTHING) & (candidate != NOTHING)
                nearest[index[new]] = candidate[new]
            # The last one met is the outermost.
            outer = self.times.is_operator[row]
            self._operator[index[outer]] = row[outer]
            row = slices.parent[row].astype(np.int64)
            inner = row != NOTHING
            index, row = index[inner], row[inner]
        # What an optimizer's closure runs is none of the optimizer's.
        self._bits[self._kind != OPTIMIZER_PHASE] &= ~(OPTIMIZER | OPTIMIZER_STATE)
        # What another operator copies on its way is no copy that the program made.
        outermost = self._marks.own[self._operator] if len(slices) else self._bits
        self._bits[(self._operator == NOTHING) | (outermost & COPY == 0)] &= ~COPY

    @property
    def marks(self) -> Ints:
        """Of all slices around it."""
        return self._bits[self._of_event]

    @property
    def slice_marks(self) -> Ints:
        """(slices,): of the name of each slice."""
        return self._marks.own

    @property
    def kinds(self) -> Ints:
        """Kind of the phase of the slices around it; NONE where those say nothing."""
        return self._kind[self._of_event]

    @property
    def operator_end_ns(self) -> Ints:
        """When the outermost operator around it ended; its own time where none is."""
        slices, row = self.trace.slices, self._operator[self._of_event]
        time_ns = self.trace.memory.time_ns.astype(np.int64)
        if not len(slices):
            return time_ns
        return np.where(row == NOTHING, time_ns, slices.ends(row))

    def module_names(self) -> list[str]:
        """The module of each event; empty where none is known."""
        trace, memory = self.trace, self.trace.memory
        names = trace.slices.name
        units = units_under_way(trace, self._sharding, memory.track, memory.time_ns)
        in_forward = _modules_around(trace, list(self._modules), self._forward)
        names_of_events = []
        for place, unit in zip(self._of_event.tolist(), units.tolist(), strict=True):
            row, annotation = int(self._module[place]), int(self._annotation[place])
            if row == NOTHING:
                row = int(in_forward[place])
            if row != NOTHING:
                names_of_events.append(self._modules[int(names[row])])
            elif annotation != NOTHING and self._sharding[int(names[annotation])][1]:
                names_of_events.append(self._sharding[int(names[annotation])][1])
            else:
                names_of_events.append(
                    "" if unit == NOTHING else self._sharding[unit][1]
                )
        return names_of_events

    def phase_names(self) -> list[str]:
        """The phase of each event, in words; empty where it is in none."""
        names = self.trace.slices.name
        phases = []
        for bits, kind, annotation in zip(
            self._bits.tolist(),
            self._kind.tolist(),
            self._annotation.tolist(),
            strict=True,
        ):
            if annotation != NOTHING:
                phases.append(self._sharding[int(names[annotation])][0])
            elif bits & ZERO_GRAD:
                phases.append("zero_grad")
            elif bits & DATA and kind == NONE:
                phases.append("dataloader")
            else:
                phases.append(PHASES[kind])
        return [phases[place] for place in self._of_event.tolist()]


def _modules_around(trace: Trace, names: list[int], rows: Ints) -> Ints:
    """The innermost module around each of some slices, or NOTHING."""
    module_rows = np.full(len(rows), NOTHING, dtype=np.int64)
    is_module = np.isin(trace.slices.name, names)
    index = np.flatnonzero(rows != NOTHING)
    row = rows[index]
    while len(index):
        hit = is_module[row]
        module_rows[index[hit]] = row[hit]
        index, row = index[~hit], trace.slices.parent[row[~hit]].astype(np.int64)
        inner = row != NOTHING
        index, row = index[inner], row[inner]
    return module_rows


_NAME: Final = re.compile(r"(FSDP::\w+)(?: for ([^()]+)| \((.+)\))?", re.DOTALL)
_ENDS: Final = {
    "FSDP::pre_forward": "FSDP::post_forward",
    "FSDP::pre_backward": "FSDP::post_backward_reduce",
}


def sharding_names(trace: Trace) -> dict[int, tuple[str, str]]:
    """By row of `Trace.strings`: the annotation's phase, and its unit or nothing."""
    return {
        row: (match[1], match[2] or match[3] or "")
        for row, text in texts_in(trace.strings, trace.slices.name)
        if (match := _NAME.fullmatch(text))
    }


def units_under_way(
    trace: Trace, names: dict[int, tuple[str, str]], track: Ints, time_ns: Ints
) -> Ints:
    """By track and time, the annotation (row of `Trace.strings`) of the unit under way.

    NOTHING: it is outside of all.
    """
    units = np.full(len(time_ns), NOTHING, dtype=np.int64)
    slices = trace.slices
    rows = np.flatnonzero(np.isin(slices.name, list(names)))
    for index in np.unique(slices.track[rows]).tolist():
        times, unit = _changes(trace, names, rows[slices.track[rows] == index])
        chosen = np.flatnonzero(track == index)
        if len(times):
            place = np.searchsorted(times, time_ns[chosen], "right") - 1
            units[chosen] = np.where(place >= 0, unit[np.maximum(place, 0)], NOTHING)
    return units


def _changes(
    trace: Trace, names: dict[int, tuple[str, str]], rows: Ints
) -> tuple[Ints, Ints]:
    """When another unit is under way on a thread, and which; ascending."""
    slices = trace.slices
    rows = rows[np.argsort(slices.start_ns[rows], kind="stable")]
    times: list[int] = []
    units: list[int] = []
    under_way: list[tuple[str, str, int]] = []
    for row in rows.tolist():
        name = int(slices.name[row])
        phase, unit = names[name]
        start = int(slices.start_ns[row])
        if phase in _ENDS:
            under_way.append((_ENDS[phase], unit, name))
            times.append(start)
        elif (phase, unit) in {(end, of) for end, of, _ in under_way}:
            while under_way.pop()[:2] != (phase, unit):
                pass
            times.append(start + int(slices.duration_ns[row]))
        else:
            continue
        units.append(under_way[-1][2] if under_way else NOTHING)
    return np.array(times, np.int64), np.array(units, np.int64)
