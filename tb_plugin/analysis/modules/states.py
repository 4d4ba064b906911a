"""A rank's memory at module states, in the one shape that event logs and reports share.

`ModuleStates` is a table of states as an imported report has it; `log.ModuleLog` computes
the states shown from a recorded event log. Both answer the same questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import picked

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.modules.tree import ModuleTree

MODULE_STATES: Final = (
    "before_pre_forward",
    "after_pre_forward",
    "before_post_forward",
    "after_post_forward",
    "peak_forward",
    "before_pre_backward",
    "after_pre_backward",
    "before_post_backward",
    "after_post_backward",
    "peak_backward",
    "pre_forward_ac",
    "post_forward_ac",
)
"""Each module's own moments, in the order they come."""

WINDOW_STATES: Final = (
    "window_start",
    "window_peak",
    "before_optimizer",
    "after_optimizer",
    "window_end",
)
"""One moment for all modules."""

ALL_STATES: Final = (*MODULE_STATES, *WINDOW_STATES)

_SHOWN_FIRST: Final = (
    "peak_forward",
    "peak_backward",
    "window_peak",
    "after_post_forward",
)
"""Of states with equal totals."""

MAX_CALLS_LISTED: Final = 64
"""Calls of one module whose moments are listed."""


@dataclass(frozen=True, slots=True, eq=False)
class StateTable:
    """One state of every module; all arrays have a value per module of the tree."""

    num_calls: Ints
    """Calls with this state; 0: the module has none."""
    call: Ints
    """The one shown, from 0; -1 for none."""
    time_us: Floats
    """Since the window began; NaN where unknown."""
    total_bytes: Floats
    """All that was tracked on the rank then, NaN where there is no such state."""
    totals: Floats
    """By (category, module): of `total_bytes`, in the order of the source's categories."""
    event: Ints
    """In event logs: number of events before that moment, -1 for none; else empty."""


@dataclass(frozen=True, slots=True, eq=False)
class ModuleMoments:
    """States and calls of one module on one rank, a row each."""

    state: Ints
    """Index into `ALL_STATES`, by row."""
    call: Ints
    time_us: Floats
    """Since the window began; NaN where unknown."""
    total_bytes: Floats
    held_bytes: Floats
    num_left_out: int
    """Rows of further calls that are not listed."""


@dataclass(frozen=True, slots=True, eq=False)
class ModuleStates:
    """States as a report lists them: one row per (module, state, call, device)."""

    tree: ModuleTree
    devices: tuple[str, ...]
    categories: tuple[str, ...]
    """Fine names (memboard.collector.format.memory.CATEGORIES), one per column of `bytes`."""
    module: Ints
    """Row of the tree; whatever, for one of `WINDOW_STATES`."""
    state: Ints  # Index into `ALL_STATES`
    call: Ints  # From 0
    device: Ints  # Index into `devices`
    bytes: Floats
    """By (row, category); NaN where the report has no number."""
    total_bytes: Floats
    """By row, as the report has it."""
    rounding_bytes: float = 0.0
    """Half of the last printed digit: how far a number may be off."""

    @property
    def num_bytes(self) -> int:
        """What it holds, for a cache's accounts."""
        return self.bytes.nbytes + 5 * self.total_bytes.nbytes + self.tree.num_bytes

    def peak(self, device: int) -> tuple[float, float]:
        """The highest total listed for a device; a report does not say when."""
        totals = self.total_bytes[self.device == device]
        present = totals[~np.isnan(totals)]
        return (float(present.max()) if len(present) else np.nan), np.nan

    def states(self, device: int) -> tuple[str, ...]:
        """Of `ALL_STATES`, those that the report lists for a device."""
        present = set(self.state[self.device == device].tolist())
        return tuple(s for index, s in enumerate(ALL_STATES) if index in present)

    def max_calls(self, state: str) -> int:
        """Most calls that any module has at a state."""
        calls = self.call[self.state == ALL_STATES.index(state)]
        return int(calls.max(initial=-1)) + 1

    def at(
        self, state: str, device: int, call: int | None, module: int | None = None
    ) -> StateTable:
        """A state of every module, or of one; see `ModuleLog.at`."""
        chosen = (self.state == ALL_STATES.index(state)) & (self.device == device)
        if module is not None and state not in WINDOW_STATES:
            chosen &= self.module == module
        rows = np.flatnonzero(chosen)
        num = len(self.tree)
        whole_window = state in WINDOW_STATES
        modules = np.zeros(len(rows), np.int64) if whole_window else self.module[rows]
        inside = (modules >= 0) & (modules < num)
        rows, modules = rows[inside], modules[inside]
        num_calls = np.bincount(modules, minlength=num).astype(np.int64)
        if call is not None:
            kept = self.call[rows] == call
            rows, modules = rows[kept], modules[kept]
        # Ascending by total, the first call last among equals: the last write stays.
        order = np.lexsort((-self.call[rows], self.total_bytes[rows]))
        row_of = np.full(num, -1, np.int64)
        row_of[modules[order]] = rows[order]
        if whole_window and num:
            row_of[:], num_calls[:] = row_of[0], num_calls[0]
        return self._table(row_of, num_calls)

    def default_state(self, device: int) -> str:
        """The one with the highest total: the moment that decides whether memory suffices.

        Where a module's own peak is that of the call, a peak of modules: at the call's, all
        have one number.
        """
        here = self.device == device
        totals = np.nan_to_num(self.total_bytes[here], nan=-np.inf)
        least = totals.max(initial=-np.inf) - 2 * self.rounding_bytes
        highest = set(self.state[here][totals >= least].tolist())
        order = (*_SHOWN_FIRST, *ALL_STATES)
        states = (state for state in order if ALL_STATES.index(state) in highest)
        return next(states, "window_peak")

    def own(self, table: StateTable, device: int) -> None:
        """Reports hold the rank's totals alone."""

    def held(self, table: StateTable, device: int) -> None:
        """Reports hold the rank's totals alone."""

    def moments(self, module: int, device: int) -> ModuleMoments:
        """Every state and call of one module, in the order of `ALL_STATES`."""
        mine = (self.module == module) & (self.device == device)
        mine &= self.state < len(MODULE_STATES)
        rows = np.flatnonzero(mine)
        kept = rows[self.call[rows] < MAX_CALLS_LISTED]
        kept = kept[np.lexsort((self.state[kept], self.call[kept]))]
        unknown = np.full(len(kept), np.nan)
        return ModuleMoments(
            state=self.state[kept],
            call=self.call[kept],
            time_us=unknown,
            total_bytes=self.total_bytes[kept],
            held_bytes=unknown,
            num_left_out=len(rows) - len(kept),
        )

    def _table(self, row_of: Ints, num_calls: Ints) -> StateTable:
        has_row = row_of >= 0
        totals = np.full((len(self.categories), len(row_of)), np.nan)
        totals[:, has_row] = self.bytes[row_of[has_row]].T
        return StateTable(
            num_calls=num_calls,
            call=picked(self.call, row_of),
            time_us=np.full(len(row_of), np.nan),
            total_bytes=picked(self.total_bytes, row_of, np.nan),
            totals=totals,
            event=np.empty(0, np.int64),
        )
