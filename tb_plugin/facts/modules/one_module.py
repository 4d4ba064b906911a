"""One module at one state: over the tracked steps of a rank, and over ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.modules.states import ALL_STATES
from memboard.tb_plugin.api.base import f64, i32
from memboard.tb_plugin.api.memory.modules import (
    ModuleOverRanks,
    ModuleOverWindows,
)
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.facts.modules.choice import device_of
from memboard.tb_plugin.facts.modules.columns import spread
from memboard.tb_plugin.facts.modules.sentences import state_words
from memboard.tb_plugin.formats.recording.captures.modules import ModulesError

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.modules.log import ModuleMemory
    from memboard.tb_plugin.analysis.modules.states import ModuleMoments
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.modules.choice import Choice
    from memboard.tb_plugin.formats.recording.captures.modules import (
        ModulesReader,
        RankModules,
        RankWindow,
        WindowKey,
    )

MAX_WINDOWS_LISTED: Final = 200


class _Point(NamedTuple):
    """One module at one state in one window on one rank; NaN where it has none."""

    total: float = np.nan
    held: float = np.nan


@dataclass(frozen=True, slots=True, eq=False)
class OneModule:
    """One module at one state, wherever it was recorded."""

    reader: ModulesReader
    choice: Choice
    fqn: str
    state: str
    call: int | None

    def over_windows(self, budget: Budget) -> ModuleOverWindows:
        """Every window of the rank: the newest first, as far as time allows."""
        rank = self.choice.rank
        every = [(k, w[rank]) for k, w in self.choice.windows.items() if rank in w]
        points_of_windows: list[tuple[WindowKey, RankWindow, _Point]] = []
        for key, window in reversed(every[-MAX_WINDOWS_LISTED:]):
            if points_of_windows and not budget.allows():
                break
            points_of_windows.append((key, window, self._point(window)))
        points_of_windows.reverse()
        points = [point for _, _, point in points_of_windows]
        return ModuleOverWindows(
            windows=tuple(key.id for key, _, _ in points_of_windows),
            step=f64(
                [np.nan if w.step is None else w.step for _, w, _ in points_of_windows]
            ),
            time_ms=f64([window.time_ns / 1e6 for _, window, _ in points_of_windows]),
            total_bytes=f64([point.total for point in points]),
            held_bytes=f64([point.held for point in points]),
            of_windows=len(every),
        )

    def over_ranks(self, budget: Budget) -> ModuleOverRanks:
        """Every rank of the window, spread evenly where time does not allow all."""
        ranks = self.choice.ranks
        point_by_rank = {self.choice.rank: self._point(ranks[self.choice.rank])}
        for window in spread(list(ranks.values())):
            if not budget.allows():
                break
            if window.rank not in point_by_rank:
                point_by_rank[window.rank] = self._point(window)
        order = sorted(point_by_rank)
        points = [point_by_rank[rank] for rank in order]
        return ModuleOverRanks(
            rank=i32(order),
            total_bytes=f64([point.total for point in points]),
            held_bytes=f64([point.held for point in points]),
            of_ranks=len(ranks),
        )

    def _point(self, window: RankWindow) -> _Point:
        """Small and kept, so that the next question reads on where this one stopped."""
        choice = self.choice
        key = (window.identity, self.fqn, choice.device_name, self.state, self.call)
        point: _Point | None = self.reader.cache.get(key)
        if point is None:
            try:
                point = self._computed(self.reader.open(window, keep=False))
            except ModulesError:  # named where it is shown; here it is a gap
                point = _Point()
            self.reader.cache.put(key, point, 300)
        return point

    def _computed(self, opened: RankModules) -> _Point:
        memory = opened.memory
        row = row_of(memory, self.fqn)
        device = device_of(memory, self.choice.device_name)
        if row is None:
            return _Point()
        table = memory.at(self.state, device, self.call, row)
        held_bytes = memory.held(table, device)
        of_module = np.nan if held_bytes is None else float(held_bytes[:, row].sum())
        return _Point(float(table.total_bytes[row]), of_module)


_MOMENTS: Final = (
    Column("state", "State", unit="text", help="A click shows all modules at it"),
    Column(
        "at_us", "At", unit="us", help="Since tracking began", absent="Not recorded"
    ),
    Column(
        "rank_total_bytes",
        "Rank total",
        unit="bytes",
        help="All that the rank held then",
        absent="Not recorded",
    ),
    Column(
        "held_bytes",
        "Module",
        unit="bytes",
        help="What the module and those below it held of it",
        absent="Not recorded",
    ),
    Column("state_name", unit="text"),
    Column("call"),
)


def moment_table(moments: ModuleMoments) -> TableRows:
    """States and calls of one module, in order of time."""
    states = [ALL_STATES[state] for state in moments.state.tolist()]
    num_rows = len(states)
    rows = table_of(
        _MOMENTS,
        {
            "state": [
                f"{state_words(state)} · call {call + 1:,}"
                if call
                else state_words(state)
                for state, call in zip(states, moments.call.tolist(), strict=True)
            ],
            "at_us": 1e3 * moments.time_us,
            "rank_total_bytes": moments.total_bytes,
            "held_bytes": moments.held_bytes,
            "state_name": states,
            "call": moments.call,
        },
        usual="",
        num_all=num_rows + moments.num_left_out,
    )
    return titled(rows, "Through this step")


def row_of(memory: ModuleMemory, fqn: str) -> int | None:
    """A module's row of the tree; None: there is no such module."""
    try:
        return memory.tree.fqn.index(fqn)
    except ValueError:
        return None
