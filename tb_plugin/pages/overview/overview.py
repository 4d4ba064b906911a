"""Route `/overview`: the run at a glance, and tabs that it has no data for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.api.overview import EmptyTab
from memboard.tb_plugin.facts.overview.run_overview import overview_of
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.facts.view import setup_of
from memboard.tb_plugin.formats.recording.captures.reading import TRACE, captures_of
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.api.overview import OverviewResponse
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.ranks.losses import LossReader
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.functions import FunctionsReader
    from memboard.tb_plugin.index.run import Run

_HISTORY: Final = ("No allocator history", "")
"""How to get one depends on the run, see `Setup.no_history_remedy`."""
_TRACE: Final = (
    "No profiler trace",
    (
        "Pass torch_profiler=True to mb.record, or put a *.pt.trace.json file of"
        " torch.profiler into the log directory."
    ),
)
_WORDS: Final = {
    "timeline": (
        "No measurements",
        "Record the training with mb.record: it measures memory at each step.",
    ),
    "blocks": _HISTORY,
    "segments": _HISTORY,
    "modules": (
        "No module memory",
        "Pass modules=True, model and optimizer to mb.record.",
    ),
    "calls": (
        "No profiled calls",
        (
            "Decorate a function with @mb.profiled, or open"
            ' rec.span("eval", memory=True) around it.'
        ),
    ),
    "steps": ("No steps", "Call rec.step() at the end of each training step."),
    "trace": _TRACE,
    "operators": _TRACE,
    "kernels": _TRACE,
    "distributed": _TRACE,
    "compare": (
        "Nothing to compare with",
        (
            "Record a second run into this log directory: MemBoard compares it with the one"
            " before."
        ),
    ),
}


@of_run(
    "overview",
    RanksQuery,
    reads=lambda readers: (
        readers.facts,
        readers.losses,
        readers.functions,
        len(readers.store.runs()),
        readers.store.problems(),
    ),
    prefetches="facts",
    version=lambda readers: (len(readers.store.runs()), readers.store.problems()),
)
def overview(
    view: View[RanksQuery],
    facts: FactsReader,
    losses: LossReader,
    calls: FunctionsReader,
    num_runs: int,
    logdir_problems: tuple[Problem, ...],
) -> OverviewResponse:
    # Answer `/overview`
    shown = overview_of(view, facts, losses, logdir_problems)
    return replace(shown, empty=empty_tabs(view.run, calls, num_runs, view.budget))


def empty_tabs(
    run: Run, calls: FunctionsReader, num_runs: int, budget: Budget
) -> tuple[EmptyTab, ...]:
    """The tabs that stay empty; none while that is not certain. Hold the run's lock."""
    if run.unfinished or run.is_live():
        return ()
    kinds = {
        entry.kind for file in run.files.values() for entry in captures_of(file, budget)
    }
    has_series = bool(run.catalogue.series)
    has_history = bool(run.histories.all(run, budget))
    has_trace = bool(run.traces.files) or TRACE in kinds
    is_imported = run.imported is not None
    full = {
        "timeline": has_series,
        "blocks": has_history,
        "segments": has_history,
        "modules": "modules" in kinds or has_trace or is_imported,
        "calls": bool(calls.collected(run, budget)) or is_imported,
        "steps": any(
            series.key.startswith(f"{STEP_TABLE}/") for series in run.catalogue.series
        ),
        "trace": has_series or has_trace,
        "operators": has_trace,
        "kernels": has_trace,
        "distributed": has_trace,
        "compare": num_runs > 1
        or len(run.ranks) > 1
        or has_history
        or len(run.traces.files) > 1,
    }
    if budget.exhausted:
        return ()
    remedy = setup_of(run).no_history_remedy
    return tuple(
        EmptyTab(tab, f"{_WORDS[tab][0]} in this run", _WORDS[tab][1] or remedy)
        for tab, is_full in full.items()
        if not is_full
    )
