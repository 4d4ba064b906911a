"""Route `/module`: one module at all its states, over windows and over ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import numpy as np
from msgspec import Meta

from memboard.tb_plugin.analysis.modules.states import ALL_STATES, MomentTable
from memboard.tb_plugin.api.modules import (
    ModuleMoments,
    ModuleOverRanks,
    ModuleOverWindows,
    ModuleResponse,
    ModuleState,
)
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.contract.parameters import Text
from memboard.tb_plugin.contract.wire import f64, finite, i32
from memboard.tb_plugin.facts.modules.choice import (
    WindowQuery,
    absent_of,
    choose,
    chosen_state,
    device_of,
    problems_of,
)
from memboard.tb_plugin.facts.modules.columns import spread
from memboard.tb_plugin.facts.view import of_run
from memboard.tb_plugin.formats.recording.captures.modules import KIND, ModulesError

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.modules.log import ModuleMemory
    from memboard.tb_plugin.facts.modules.choice import Choice
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.captures.modules import (
        ModulesReader,
        RankModules,
        RankWindow,
        WindowKey,
    )
    from memboard.tb_plugin.index.run import Run

MODULE_SECONDS: Final = 1.0
"""Time for the picture over windows and ranks: each poll returns more of it."""
MAX_WINDOWS_LISTED: Final = 200
WINDOWS_SECONDS: Final = 0.4
"""Time of an answer for other windows before it reads other ranks."""


class ModuleQuery(WindowQuery, frozen=True):
    """One module by its fqn, one of its states and calls."""

    module: Text = ""
    state: ModuleState | None = None
    call: Annotated[int, Meta(ge=0, le=10**9)] | None = None


@of_run(
    "module",
    ModuleQuery,
    reads=lambda readers: (readers.modules,),
    seconds=lambda: MODULE_SECONDS,
)
def module(view: View[ModuleQuery], reader: ModulesReader) -> ModuleResponse:
    """Answer `/module`.

    Raises:
        NotFoundError: the run has no module memory, or no such module.
    """
    run, query, budget = view.run, view.query, view.budget
    choice = choose(reader, view)
    if choice is None or choice.opened is None:
        raise _nothing_to_show(reader, run, choice)
    memory = choice.opened.memory
    row = _row_of(memory, query.module)
    if row is None:
        raise NotFoundError(
            "There is no such module in this tracked step.",
            f"module={query.module[:200]}",
            "Choose another tracked step or rank: they may have other modules.",
        )
    tree = memory.tree
    state = chosen_state(memory, choice.device, query.state)
    one = _OneModule(reader, choice, tree.fqn[row], state, query.call)
    over_windows = one.over_windows(half := Budget(WINDOWS_SECONDS))
    budget.exhausted |= half.exhausted
    return ModuleResponse(
        run=view.summary,
        module=tree.fqn[row],
        path=tree.path[row],
        type=tree.type[row],
        is_fsdp=bool(tree.is_fsdp[row]),
        param_bytes=finite(float(tree.param_bytes[row])),
        buffer_bytes=finite(float(tree.buffer_bytes[row])),
        window=choice.key.id,
        rank=choice.rank,
        state=state,  # type: ignore[arg-type]  # one of the contract's words
        call=query.call,
        device=choice.device_name,
        moments=_moments(memory.moments(row, choice.device)),
        over_windows=over_windows,
        over_ranks=one.over_ranks(budget),
        problems=problems_of(run, choice),
    )


class _Point(NamedTuple):
    """One module at one state in one window on one rank; NaN where it has none."""

    total: float = np.nan
    held: float = np.nan


@dataclass(frozen=True, slots=True, eq=False)
class _OneModule:
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
        found: list[tuple[WindowKey, RankWindow, _Point]] = []
        for key, window in reversed(every[-MAX_WINDOWS_LISTED:]):
            if found and not budget.allows():
                break
            found.append((key, window, self._point(window)))
        found.reverse()
        points = [point for _, _, point in found]
        return ModuleOverWindows(
            windows=tuple(key.id for key, _, _ in found),
            step=f64([np.nan if w.step is None else w.step for _, w, _ in found]),
            time_ms=f64([window.time_ns / 1e6 for _, window, _ in found]),
            total_bytes=f64([point.total for point in points]),
            held_bytes=f64([point.held for point in points]),
            of_windows=len(every),
        )

    def over_ranks(self, budget: Budget) -> ModuleOverRanks:
        """Every rank of the window, spread evenly where time does not allow all."""
        ranks = self.choice.ranks
        found = {self.choice.rank: self._point(ranks[self.choice.rank])}
        for window in spread(list(ranks.values())):
            if not budget.allows():
                break
            if window.rank not in found:
                found[window.rank] = self._point(window)
        order = sorted(found)
        points = [found[rank] for rank in order]
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
        row = _row_of(memory, self.fqn)
        device = device_of(memory, self.choice.device_name)
        if row is None:
            return _Point()
        table = memory.at(self.state, device, self.call, row)
        held = memory.held(table, device)
        of_module = np.nan if held is None else float(held[:, row].sum())
        return _Point(float(table.total_bytes[row]), of_module)


def _moments(found: MomentTable) -> ModuleMoments:
    held = found.held
    nothing = np.full(len(found.state), np.nan)
    states, index = np.unique(found.state, return_inverse=True)
    return ModuleMoments(
        state_names=tuple(ALL_STATES[state] for state in states.tolist()),
        state=i32(index),
        call=i32(found.call),
        time_us=f64(found.time_us),
        total_bytes=f64(found.total_bytes),
        held_bytes=f64(nothing if held is None else held.sum(axis=0)),
        num_left_out=found.num_left_out,
    )


def _row_of(memory: ModuleMemory, fqn: str) -> int | None:
    try:
        return memory.tree.fqn.index(fqn)
    except ValueError:
        return None


def _nothing_to_show(
    reader: ModulesReader, run: Run, choice: Choice | None
) -> NotFoundError:
    if choice is not None and choice.problems:
        problem = choice.problems[0]
        return NotFoundError(problem.what, problem.where, problem.remedy)
    said = absent_of(reader, run, choice)[0]
    return NotFoundError(
        said.reason or "This run has no module memory.", KIND, said.remedy
    )
