"""Pages' answers about a run, read to the end: all that a report says."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import nullcontext
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from memboard.tb_plugin.analysis.findings.render import with_markdown
from memboard.tb_plugin.cli.opening import no_deadline, read_whole
from memboard.tb_plugin.cli.report.trace_answers import TraceAnswers, trace_answers
from memboard.tb_plugin.cli.report.traces import trace_rows
from memboard.tb_plugin.contract.errors import NotReadyError
from memboard.tb_plugin.facts.findings.judge import MAX_WAITING, size_of
from memboard.tb_plugin.facts.functions.choice import FunctionsQuery
from memboard.tb_plugin.facts.histories.description import settings_of
from memboard.tb_plugin.facts.histories.figures import (
    DeviceFigures,
    figures_of,
    pinned_figures_of,
)
from memboard.tb_plugin.facts.modules.values import ModulesQuery
from memboard.tb_plugin.facts.overview.run_overview import overview_of
from memboard.tb_plugin.facts.ranks.run_summary import summary_of
from memboard.tb_plugin.facts.readers import RunReaders
from memboard.tb_plugin.facts.series.selection import RanksQuery
from memboard.tb_plugin.facts.traces.cycle_ranks import (
    named_cycle,
    newest_cycle,
    straggler_of,
)
from memboard.tb_plugin.facts.traces.profiled import profiler_traces
from memboard.tb_plugin.facts.view import View
from memboard.tb_plugin.formats.recording.rank_summaries import (
    one_each,
    rank_summary_of,
)
from memboard.tb_plugin.index.history_list import OwnCapture, listed, of_rank
from memboard.tb_plugin.pages.calls.calls import functions
from memboard.tb_plugin.pages.modules.modules import modules
from memboard.tb_plugin.pages.steps.steps import StepsQuery, steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.base import Problem, RunSummary
    from memboard.tb_plugin.api.findings import FindingsResponse
    from memboard.tb_plugin.api.memory.calls import FunctionsResponse, HistoryReference
    from memboard.tb_plugin.api.memory.histories import HistoryOrigin
    from memboard.tb_plugin.api.memory.modules import ModulesResponse
    from memboard.tb_plugin.api.overview import OverviewResponse
    from memboard.tb_plugin.api.time.steps import StepsResponse, StragglersResponse
    from memboard.tb_plugin.formats.recording.rank_summaries import RankSummary
    from memboard.tb_plugin.formats.traces.files.listing import FoundTrace
    from memboard.tb_plugin.index.history_list import FoundHistory
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.index.store import Store
    from memboard.tb_plugin.jobs.histories import HistoryJob
    from memboard.tb_plugin.jobs.open_history import OpenHistory
    from memboard.tb_plugin.server.routes import Q

MAX_CAPTURES: Final = 20
"""Captures of a recording that are opened, the newest; files of other tools all are."""

_RECORDED: Final = ("recording", "memprofiler")
"""Formats of runs that hold more than files which are opened one by one."""
_MAX_PASSED_OVER: Final = 20
"""Windows that ended early, before the very last one is reported as it is."""
_JUDGING_SECONDS: Final = 600.0
"""Of one history, opening included."""
_POLL_SECONDS: Final = 0.5
_LARGE_BYTES: Final = 32 << 20

SHOWN_STATS: Final = (
    "allocated_bytes.all.current",
    "allocated_bytes.all.peak",
    "reserved_bytes.all.current",
    "rss_bytes",
)
"""Shown of a call, where it has them."""


class Snapshot(Struct, frozen=True, kw_only=True):
    """A snapshot of the allocator, and its figures."""

    history: HistoryReference
    origin: HistoryOrigin
    problem: Problem | None
    """Why it cannot be read."""
    settings: dict[str, str] = {}
    devices: tuple[DeviceFigures, ...] = ()
    pinned_host_memory: DeviceFigures | None = None
    """Host memory, no part of any device's; None: it was not recorded."""
    not_read: tuple[str, ...] = ()
    """Keys of the file that this version does not know, as `segments[].weight`."""


class RunReport(Struct, frozen=True, kw_only=True):
    """Answers of the pages about one run; of one rank alone where that is chosen."""

    run: RunSummary
    overview: OverviewResponse
    findings: FindingsResponse
    steps: StepsResponse | None
    """None where no step's time was recorded; likewise the next."""
    stragglers: StragglersResponse | None
    modules: ModulesResponse | None
    """The last complete window; None where none was recorded."""
    passed_over: tuple[str, ...]
    """Ids of later windows, which ended early."""
    functions: tuple[FunctionsResponse, ...]
    """One for each function in each phase."""
    snapshots: tuple[Snapshot, ...]
    """Files, and the newest captures."""
    traces: tuple[dict[str, Any], ...]
    """Recorded ones, then other files; each file once."""
    trace: TraceAnswers | None
    """The one that the pages show first; None where none can be opened."""
    problems: tuple[Problem, ...]

    @property
    def is_readable(self) -> bool:
        """Whether there is more than problems."""
        files = [snapshot.problem for snapshot in self.snapshots]
        files += [trace["problem"] for trace in self.traces]
        return self.run.made_of in _RECORDED or None in files

    @property
    def histories(self) -> list[HistoryReference]:
        """Captures of the allocator that were recorded, each once."""
        history_by_id = {
            history.id: history
            for answer in self.functions
            for history in answer.histories
        }
        return list(history_by_id.values())


class Reader:
    """Reads reports through the pages."""

    def __init__(self, store: Store, capacity_bytes: int | None = None) -> None:
        """`capacity_bytes`: of devices of unknown size."""
        self._readers = RunReaders(store, capacity_bytes)
        self._large = threading.Semaphore(1)

    def run(self, run: Run, rank: int | None) -> RunReport:
        """One run, or one rank of it."""
        read_whole(run, rank)
        # Files first: what is wrong with them is said by every answer about the run.
        snapshots = tuple(self._snapshots(run, rank))
        readers = self._readers
        with run.lock:
            sources = profiler_traces(readers.traces.files(run, no_deadline()))
        newest = newest_cycle(sources) if rank is None else []
        cycle = {source.id: source for source in newest}
        summaries: dict[str, RankSummary] = {}

        def note(trace: FoundTrace, profile: TraceProfile) -> None:
            source = cycle.get(trace.id)
            if source is not None:
                rank_summary = rank_summary_of(profile, trace.rank)
                summaries[trace.id] = rank_summary
                readers.rank_summaries.add(run.found.id, source, rank_summary)

        traces = tuple(trace_rows(run, rank, note))
        series = readers.store.series
        summary = summary_of(series, run)
        ranks = RanksQuery(rank=rank)

        def view(query: Q) -> View[Q]:
            return View(series, run, summary, query, no_deadline())

        first = overview_of(
            view(ranks), readers.facts, readers.losses, readers.store.problems()
        )
        by_module, passed_over = self._by_module(run, summary, rank)
        by_function = self._by_function(run, summary, rank)
        readers.errors.judge_all(run, rank, no_deadline(), _JUDGING_SECONDS)
        in_order = (summaries[trace] for trace in cycle if trace in summaries)
        straggler = straggler_of(
            readers,
            summary,
            one_each(in_order),
            named_cycle(sources, sources[-1].cycle) if sources else None,
            no_deadline(),
        )
        with run.lock:
            findings = readers.findings.of(
                view(ranks), readers.errors, readers.modules, straggler
            )
        course = steps(view(StepsQuery(rank=rank)))
        beside = readers.stragglers.of(view(ranks)) if course.rank is not None else None
        problems = [problem for problem in run.problems if rank in (None, problem.rank)]
        problems += [
            problem for problem in by_module.problems if problem not in problems
        ]
        return RunReport(
            run=summary_of(series, run),
            overview=first,
            findings=structs.replace(
                findings, findings=with_markdown(findings.findings)
            ),
            steps=None if beside is None else course,
            stragglers=None
            if beside is None
            else structs.replace(beside, findings=with_markdown(beside.findings)),
            modules=None if by_module.window is None else by_module,
            passed_over=tuple(passed_over),
            functions=tuple(by_function),
            snapshots=snapshots,
            traces=traces,
            trace=trace_answers(readers, summary.id, rank) if sources else None,
            problems=tuple(problems),
        )

    def _by_module(
        self, run: Run, summary: RunSummary, rank: int | None
    ) -> tuple[ModulesResponse, Sequence[str]]:
        """The last complete window, and later ones that an error cut short.

        Where none of the last is complete, the very last one.
        """

        def ask(window: str | None = None) -> ModulesResponse:
            query = ModulesQuery(rank=rank, window=window)
            view = View(self._readers.store.series, run, summary, query, no_deadline())
            return modules(view, self._readers.modules)

        def is_cut_short(answer: ModulesResponse) -> bool:
            return answer.facts is not None and answer.facts.incomplete

        last = by_module = ask()
        passed_over = []
        earlier = (
            window.id for window in reversed(last.windows) if window.id != last.window
        )
        for window in islice(earlier, _MAX_PASSED_OVER):
            if by_module.window is None or not is_cut_short(by_module):
                break
            passed_over.append(by_module.window)
            by_module = ask(window)
        return (last, ()) if is_cut_short(by_module) else (by_module, passed_over)

    def _by_function(
        self, run: Run, summary: RunSummary, rank: int | None
    ) -> list[FunctionsResponse]:
        def ask(
            function: str | None = None, phase: str | None = None
        ) -> FunctionsResponse:
            query = FunctionsQuery(
                rank=rank, function=function, phase=phase, stats=",".join(SHOWN_STATS)
            )
            view = View(self._readers.store.series, run, summary, query, no_deadline())
            return functions(view, self._readers.functions)

        first = ask()
        return [
            ask(function.function, function.phase) for function in first.functions
        ] or [first]

    def _snapshots(self, run: Run, rank: int | None) -> Iterator[Snapshot]:
        """Every snapshot by time; judged while it is open, so that it is opened once."""
        with run.lock:
            histories = of_rank(listed(run, no_deadline()), rank)
        captures = [
            history for history in histories if isinstance(history.source, OwnCapture)
        ]
        left_out = {capture.reference.id for capture in captures[:-MAX_CAPTURES]}
        histories = [
            history for history in histories if history.reference.id not in left_out
        ]
        # Small ones first, and several at once: none waits for one that takes long.
        with ThreadPoolExecutor(MAX_WAITING) as pool:
            by_size = sorted(histories, key=size_of)
            told = {
                history.reference.id: pool.submit(self._snapshot, run, history)
                for history in by_size
            }
            shown = sys.stderr.isatty()
            for history in histories:
                yield self._awaited(
                    history, told.pop(history.reference.id), shown=shown
                )

    def _snapshot(self, run: Run, history: FoundHistory) -> Snapshot:
        """One of them; of large ones one at a time is held in memory."""
        is_large = size_of(history) > _LARGE_BYTES
        with self._large if is_large else nullcontext():
            opening = self._opened(run, history)
            self._readers.errors.judge.judge(run, opening)
            return opening.derived(partial(_snapshot, history)) or Snapshot(
                history=history.reference,
                origin=history.origin,
                problem=opening.problem,
            )

    def _opened(self, run: Run, history: FoundHistory) -> HistoryJob:
        """Wait until it is open, or failed."""
        while True:
            try:
                opening = self._readers.histories.open(run, history)
                break
            except NotReadyError:
                time.sleep(_POLL_SECONDS)
        opening.wait(threading.TIMEOUT_MAX)
        return opening

    def _awaited(
        self, history: FoundHistory, told: Future[Snapshot], *, shown: bool
    ) -> Snapshot:
        """Wait for one; `shown`: a terminal shows how far it is."""
        while True:
            try:
                snapshot = told.result(_POLL_SECONDS if shown else None)
                break
            except FutureTimeoutError:
                opening = self._readers.histories.known(history.key)
                history_name = history.reference.path or history.reference.id
                far = (
                    ""
                    if opening is None
                    else f"{opening.progress:4.0%} {opening.doing}"
                )
                print(f"\r{history_name}: {far}\033[K", end="", file=sys.stderr)
        if shown:
            print("\r\033[K", end="", file=sys.stderr)
        return snapshot


def _snapshot(found_history: FoundHistory, history: OpenHistory) -> Snapshot:
    return Snapshot(
        history=found_history.reference,
        origin=found_history.origin,
        problem=None,
        settings={setting.name: setting.value for setting in settings_of(history)},
        devices=figures_of(history),
        pinned_host_memory=pinned_figures_of(history),
        not_read=tuple(history.snapshot.unread),
    )
