"""A recorded event log, and what follows from it: bytes by category at module states.

The log says what was allocated and freed (`events`), and at which of these moments
modules began and ended (`boundaries`). Everything else is sums over it, computed when a
state is shown: the total and its categories at every module's boundary, the highest
total between two of them, and what each module owns (a block's owner is the module that
was running when it came to be, or whose parameter it is).

Made by `module_capture.module_log`, which sets right what a file claims.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from memboard.collector.format.memory import STATES
from memboard.tb_plugin.analysis.arrays import picked
from memboard.tb_plugin.analysis.modules.event_sums import (
    descendants,
    held_at,
    highest_between,
    own_at,
    owned_events,
    running_total,
    sums_at,
)
from memboard.tb_plugin.analysis.modules.states import (
    ALL_STATES,
    MAX_CALLS_LISTED,
    WINDOW_STATES,
    ModuleMoments,
    ModuleStates,
    StateTable,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.analysis.modules.event_sums import OwnedEvents
    from memboard.tb_plugin.analysis.modules.tree import ModuleTree

_BOUNDS: Final = {
    "peak_forward": ("before_pre_forward", "after_post_forward"),
    "peak_backward": ("before_pre_backward", "after_post_backward"),
}
"""Between which boundaries a module's forward and backward lie."""


@dataclass(frozen=True, slots=True, eq=False)
class Boundaries:
    """Equal-length columns, in order of time."""

    time_us: Ints
    event: Ints
    """The moment: number of events before it."""
    module: Ints
    """Row of the tree; -1 for the whole window."""
    state: Ints
    call: Ints


@dataclass(frozen=True, slots=True, eq=False)
class ModuleLog:
    """One rank's memory through one window, by event."""

    tree: ModuleTree
    devices: tuple[str, ...]
    categories: tuple[str, ...]
    """Those that occur, in their fixed order."""
    time_us: Ints
    """Of each event, since the window began."""
    delta_bytes: Ints
    category: npt.NDArray[np.uint8]  # Index into `categories`
    device: npt.NDArray[np.uint8] | None
    """Index into `devices`; None where all events are of the first."""
    owner: npt.NDArray[np.int32]
    """Row of the tree; -1 for none."""
    boundaries: Boundaries
    peaks: tuple[tuple[int, int], ...]
    """By device: the highest total, and its moment."""
    num_repaired: int
    """Values that meant nothing and were left out or set right."""
    num_negative: int
    """Moments at which more memory was freed than had been allocated."""
    _totals: dict[int, Ints] = field(default_factory=dict)
    """By device; one at a time, as it is as large as the log. So are `_grouped`."""
    _grouped: dict[int, OwnedEvents] = field(default_factory=dict)

    @property
    def num_bytes(self) -> int:
        """What it holds, for a cache's accounts."""
        # The columns, the running total and the groups.
        per_event = 8 + 8 + 1 + 4 + (self.device is not None) + 8 + 12
        return (
            per_event * (len(self.delta_bytes) + 1)
            + 5 * 8 * len(self.boundaries.event)
            + self.tree.num_bytes
        )

    def total(self, device: int) -> Ints:
        """Bytes on a device at every moment."""
        running = self._totals.get(device)
        if running is None:
            self._totals.clear()
            running = self._totals[device] = running_total(self._on(device))
        return running

    def peak(self, device: int) -> tuple[float, float]:
        """The highest total of the window and when it was."""
        total, moment = self.peaks[device]
        return float(total), float(self.time_at(np.array([moment]))[0])

    def states(self, device: int) -> tuple[str, ...]:  # noqa: ARG002 - all share them
        """Of `ALL_STATES`, those that the window has."""
        bounds = self.boundaries
        present = {STATES[index] for index in np.unique(bounds.state).tolist()}
        for peak, (first, _) in _BOUNDS.items():
            if first in present:
                present.add(peak)
        present |= {"window_start", "window_peak", "window_end"}
        return tuple(state for state in ALL_STATES if state in present)

    def max_calls(self, state: str) -> int:
        """Most calls that any module has at a state."""
        if state in WINDOW_STATES and state not in STATES:
            return 1
        rows = self._rows(_BOUNDS[state][0] if state in _BOUNDS else state)
        modules = self.boundaries.module[rows] + 1
        return int(np.bincount(modules, minlength=1).max()) if len(rows) else 0

    def at(
        self, state: str, device: int, call: int | None, module: int | None = None
    ) -> StateTable:
        """A state of every module; without `call`, of each the call that held most.

        Of one `module` alone that is cheaper, and the others have no values.
        """
        if state in WINDOW_STATES:
            return self._window_table(state, device, call, module)
        modules, calls, moments, times = self._moments_of(state, device, module)
        num = len(self.tree)
        num_calls = np.bincount(modules, minlength=num).astype(np.int64)
        shown = np.arange(len(modules))
        if call is not None:
            shown = np.flatnonzero(calls == call)
        elif (num_calls > 1).any():
            totals = self.total(device)[moments]
            shown = np.lexsort((-calls, totals))  # the last write is the highest call
        row_of = np.full(num, -1, np.int64)
        row_of[modules[shown]] = shown
        return self._table(row_of, num_calls, calls, moments, times, device)

    def default_state(self, device: int) -> str:  # noqa: ARG002 - all share it
        """The peak: the moment that decides whether memory suffices."""
        return "window_peak"

    def own(self, table: StateTable, device: int) -> Floats:
        """By (category, module): what each held by itself; NaN where it has no state."""
        groups, num = self._groups(device), len(self.categories)
        own = own_at(table.event, self.tree.parent, groups, num)
        own[:, table.event < 0] = np.nan
        return own

    def held(self, table: StateTable, device: int) -> Floats:
        """By (category, module): what each module and those below it held."""
        rows = np.flatnonzero(table.event >= 0)
        if len(rows) == 1:
            module_bytes = np.full((len(self.categories), len(self.tree)), np.nan)
            module_bytes[:, rows] = self._held_at(
                int(rows[0]), table.event[rows], device
            )
            return module_bytes
        groups, num = self._groups(device), len(self.categories)
        module_bytes = held_at(table.event, self.tree.parent, groups, num)
        module_bytes[:, table.event < 0] = np.nan
        return module_bytes

    def moments(self, module: int, device: int) -> ModuleMoments:
        """Every state and call of one module, in order of time."""
        bounds = self.boundaries
        rows = np.flatnonzero(bounds.module == module)
        kept = rows[bounds.call[rows] < MAX_CALLS_LISTED]
        names = [ALL_STATES.index(STATES[s]) for s in bounds.state[kept].tolist()]
        parts = [
            (np.array(names, np.int64), bounds.call[kept], bounds.event[kept]),
        ]
        times = [bounds.time_us[kept].astype(np.float64)]
        for peak in _BOUNDS:
            calls, moments, at_us = self._peaks_of(peak, device, module)
            parts.append((np.full(len(calls), ALL_STATES.index(peak)), calls, moments))
            times.append(at_us)
        state, call, moment = (
            np.concatenate(column) for column in zip(*parts, strict=False)
        )
        time_us = np.concatenate(times)
        order = np.lexsort((state, moment, time_us))
        moment = moment[order]
        return ModuleMoments(
            state=state[order],
            call=call[order],
            time_us=time_us[order],
            total_bytes=self.total(device)[moment].astype(np.float64),
            held_bytes=self._held_at(module, moment, device).sum(axis=0),
            num_left_out=len(rows) - len(kept),
        )

    def totals_at(self, moments: Ints, device: int) -> Floats:
        """By (category, moment): bytes on a device."""
        return sums_at(
            moments, None, self.category, self._on(device), len(self.categories)
        )

    def time_at(self, moments: Ints) -> Floats:
        """When the last event before each moment happened; 0 before the first."""
        if not len(self.time_us):
            return np.zeros(len(moments))
        times = self.time_us[np.maximum(moments - 1, 0)]
        return np.where(moments > 0, times, 0).astype(np.float64)

    def whole_window(self, state: str) -> tuple[Ints, Floats]:
        """(moment, time) of every boundary with a state of the whole window."""
        rows = self._rows(state)
        times = self.boundaries.time_us[rows].astype(np.float64)
        return self.boundaries.event[rows], times

    def intervals(self, first: str, last: str) -> tuple[Ints, Ints]:
        """Boundaries that begin and end the same call of a module, as rows.

        A call whose end was not recorded lasts to the window's end: its second row is
        the number of boundaries.
        """
        bounds = self.boundaries
        begin, end = self._rows(first), self._rows(last)
        keys = (bounds.module << 32) + bounds.call
        ordered = end[np.argsort(keys[end], kind="stable")]
        place = np.searchsorted(keys[ordered], keys[begin])
        matching_end = np.append(ordered, len(keys))[place]
        same = np.append(keys, -(2**62))[matching_end] == keys[begin]
        return begin, np.where(same & (matching_end >= begin), matching_end, len(keys))

    def _on(self, device: int) -> Ints:
        """Deltas on a device, 0 where an event is another's."""
        if self.device is None:
            return self.delta_bytes if device == 0 else np.zeros_like(self.delta_bytes)
        return np.where(self.device == device, self.delta_bytes, 0)

    def _owned(self, device: int) -> Ints:
        """Events of a device that some module owns."""
        owned: Flags = self.owner >= 0
        if self.device is not None:
            owned &= self.device == device
        elif device != 0:
            return np.empty(0, np.int64)
        return np.flatnonzero(owned)

    def _held_at(self, module: int, moments: Ints, device: int) -> Floats:
        """By (category, moment): what one module and those below it hold."""
        event = self._owned(device)
        below = descendants(self.tree.parent, module)
        event = event[below[self.owner[event]]]
        delta, category = self.delta_bytes[event], self.category[event]
        return sums_at(moments, event, category, delta, len(self.categories))

    def _groups(self, device: int) -> OwnedEvents:
        groups = self._grouped.get(device)
        if groups is None:
            event = self._owned(device)
            self._grouped.clear()
            groups = self._grouped[device] = owned_events(
                event, self.owner[event], self.category[event], self.delta_bytes[event]
            )
        return groups

    def _rows(self, state: str) -> Ints:
        return np.flatnonzero(self.boundaries.state == STATES.index(state))

    def _moments_of(
        self, state: str, device: int, module: int | None
    ) -> tuple[Ints, Ints, Ints, Floats]:
        """(module, call, moment, time) of every call that has a state."""
        bounds = self.boundaries
        if state in _BOUNDS:
            begin, end = self.intervals(*_BOUNDS[state])
            if module is not None:
                mine = bounds.module[begin] == module
                begin, end = begin[mine], end[mine]
            moments = self._highest(begin, end, device)
            times = self.time_at(moments)
            return bounds.module[begin], bounds.call[begin], moments, times
        rows = self._rows(state)
        if module is not None:
            rows = rows[bounds.module[rows] == module]
        times = bounds.time_us[rows].astype(np.float64)
        return bounds.module[rows], bounds.call[rows], bounds.event[rows], times

    def _peaks_of(
        self, peak: str, device: int, module: int
    ) -> tuple[Ints, Ints, Floats]:
        """(call, moment, time) of one module's peaks."""
        bounds = self.boundaries
        begin, end = self.intervals(*_BOUNDS[peak])
        mine = (bounds.module[begin] == module) & (
            bounds.call[begin] < MAX_CALLS_LISTED
        )
        begin, end = begin[mine], end[mine]
        moments = self._highest(begin, end, device)
        return bounds.call[begin], moments, self.time_at(moments)

    def _highest(self, begin: Ints, end: Ints, device: int) -> Ints:
        moment = np.append(self.boundaries.event, len(self.delta_bytes))
        return highest_between(self.total(device), moment[begin], moment[end])

    def _window_table(
        self, state: str, device: int, call: int | None, module: int | None
    ) -> StateTable:
        """The same moment for every module."""
        num = len(self.tree)
        total = self.total(device)
        if state in STATES:
            moments, times = self.whole_window(state)
        else:
            moment = {
                "window_start": int(np.searchsorted(self.time_us, 0, "right")),
                "window_peak": self.peaks[device][1],
                "window_end": len(self.delta_bytes),
            }[state]
            moments = np.array([moment])
            times = self.time_at(moments)
        calls = np.arange(len(moments))
        best_call = -1
        if call is None and len(moments):
            best_call = int(np.argmax(total[moments]))
        elif call is not None and call < len(moments):
            best_call = call
        row_of = np.full(num, best_call if module is None else -1, np.int64)
        if module is not None:
            row_of[module] = best_call
        num_calls = np.full(num, len(moments), np.int64)
        return self._table(row_of, num_calls, calls, moments, times, device)

    def _table(
        self,
        row_of: Ints,
        num_calls: Ints,
        calls: Ints,
        moments: Ints,
        times: Floats,
        device: int,
    ) -> StateTable:
        """Columns over the modules; `row_of` says which of the moments is each one's."""
        event = picked(moments, row_of)
        has_event = event >= 0
        totals = np.full((len(self.categories), len(row_of)), np.nan)
        totals[:, has_event] = self.totals_at(event[has_event], device)
        return StateTable(
            num_calls=num_calls,
            call=picked(calls, row_of),
            time_us=picked(times, row_of, np.nan),
            total_bytes=np.where(has_event, self.total(device)[event], np.nan),
            totals=totals,
            event=event,
        )


ModuleMemory: TypeAlias = ModuleLog | ModuleStates
"""One rank's memory by module through one window."""
