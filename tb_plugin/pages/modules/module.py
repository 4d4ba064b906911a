"""Route `/module`: one module at all its states, over windows and over ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from memboard.tb_plugin.api.memory.modules import (
    ModuleResponse,
    ModuleState,
)
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.contract.parameters import Text
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.modules.choice import (
    WindowQuery,
    absent_of,
    choose,
    chosen_state,
    problems_of,
)
from memboard.tb_plugin.facts.modules.one_module import OneModule, moment_table, row_of
from memboard.tb_plugin.formats.recording.captures.modules import KIND
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from memboard.tb_plugin.facts.modules.choice import Choice
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.captures.modules import (
        ModulesReader,
    )
    from memboard.tb_plugin.index.run import Run

MODULE_SECONDS: Final = 1.0
"""Time for the picture over windows and ranks: each poll returns more of it."""
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
    row = row_of(memory, query.module)
    if row is None:
        raise NotFoundError(
            "There is no such module in this tracked step.",
            f"module={query.module[:200]}",
            "Choose another tracked step or rank: they may have other modules.",
        )
    tree = memory.tree
    state = chosen_state(memory, choice.device, query.state)
    shown_module = OneModule(reader, choice, tree.fqn[row], state, query.call)
    over_windows = shown_module.over_windows(half := Budget(WINDOWS_SECONDS))
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
        moments=moment_table(memory.moments(row, choice.device)),
        over_windows=over_windows,
        over_ranks=shown_module.over_ranks(budget),
        problems=problems_of(run, choice),
    )


def _nothing_to_show(
    reader: ModulesReader, run: Run, choice: Choice | None
) -> NotFoundError:
    if choice is not None and choice.problems:
        problem = choice.problems[0]
        return NotFoundError(problem.what, problem.where, problem.remedy)
    status = absent_of(reader, run, choice)[0]
    return NotFoundError(
        status.reason or "This run has no module memory.", KIND, status.remedy
    )
