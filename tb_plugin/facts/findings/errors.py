"""Errors and other ends of a run that left a report about memory, as findings.

What the recorder reported is read at once. The histories taken with it, and snapshots
that other tools wrote, imported or as they lie there, are judged in the background: the
first one on its own, the others once somebody opens them.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from memboard.collector.format.names import IMPORT_JOB
from memboard.tb_plugin.analysis.findings.growth import RetainedMemory
from memboard.tb_plugin.analysis.oom.case import MANY_POOLS
from memboard.tb_plugin.api.findings import Place
from memboard.tb_plugin.contract.errors import NotFoundError, NotReadyError
from memboard.tb_plugin.facts.findings.error_finding import (
    PeerContext,
    PeerRanks,
    error_in_file,
    of_snapshots,
    reported_error,
)
from memboard.tb_plugin.facts.findings.judge import HistoryJudge, processes
from memboard.tb_plugin.facts.findings.reports import ErrorReport, error_reports
from memboard.tb_plugin.facts.steps.collections import DEVICE_MEMORY, memory_in_cycles
from memboard.tb_plugin.index.history_list import OwnCapture, history_of, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.tb_plugin.analysis.findings.cycles import Sawtooth
    from memboard.tb_plugin.analysis.oom.errors import HistoryErrors, OomError
    from memboard.tb_plugin.analysis.oom.holders import Holder
    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.api.findings import Finding
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.facts.findings.judge import HistoryVerdict
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.formats.recording.captures.oom import OomReport
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.history_list import FoundHistory
    from memboard.tb_plugin.index.run import AttemptFiles, Run
    from memboard.tb_plugin.jobs.histories import Histories

MAX_ERRORS: Final = 20
MAX_UNASKED: Final = 4
"""Files of other tools that are opened though no page shows them."""


class _ErrorSortKey(NamedTuple):
    """Where an error stands among the others: the lowest comes first."""

    is_other_end: bool
    was_survived: bool
    """Errors follow that are of the same process: this one did not end it."""
    starts_after: int
    """Starts of the job that came after."""
    time_ms: float


class Errors(NamedTuple):
    """Errors and other ends of a run that left a report about memory."""

    found: tuple[Finding, ...]
    """The error that ended a rank first, of several ranks the earliest; errors that a
    program survived follow, and other ends last. At most `MAX_ERRORS`."""
    num_errors: int
    is_reading: bool
    """Histories are being read: more will be known."""
    problems: tuple[Problem, ...]


class ErrorsReader:
    """Everything that findings about errors are made of, kept from request to request."""

    def __init__(
        self,
        facts: FactsReader,
        histories: Histories,
        cache: Cache,
        capacity_bytes: int | None = None,
    ) -> None:
        """`capacity_bytes`: size of the devices, where nothing recorded it."""
        self.capacity_bytes: Final = capacity_bytes
        self.judge: Final = HistoryJudge(histories)
        self.facts: Final = facts
        self.cache: Final = cache

    def errors(self, run: Run, rank: int | None, budget: Budget) -> Errors:
        """What is known now; hold the run's lock."""
        return _ErrorFindings(self, run, budget).errors(rank)

    def judge_all(
        self, run: Run, rank: int | None, budget: Budget, seconds: float
    ) -> None:
        """Judge every history that counts; do not hold the run's lock."""
        with run.lock:
            wanted = _ErrorFindings(self, run, budget).wanted(rank)
        for history in wanted:
            with contextlib.suppress(NotReadyError):
                self.judge.ask(run, history, open_it=True, seconds=seconds)

    def retained(
        self, run: Run, rank: int, budget: Budget
    ) -> tuple[RetainedMemory | None, bool]:
        """What the latest history of a rank says of its growth; hold the run's lock.

        Also whether that is being read: until then no line is known, but the place is.
        None where it tells no line.
        """
        histories = listed(run, budget, rank)
        if not histories:
            return None, False
        last = histories[-1]
        before = next(
            (history for history in histories[:-1] if _is_alike(history, last)), last
        )
        place = Place(
            "blocks", "Open what is retained", rank=rank, history=last.reference.id
        )
        unread = RetainedMemory((), place), True
        ends: list[OomError] = []
        for history in (before, last):
            try:
                judged = self.judge.ask(run, history, open_it=True)
            except NotReadyError:
                return unread
            if judged is None and self.judge.is_under_way(history):
                return unread
            judged = judged or self.judge.known(history)  # it may have ended in between
            if judged is None or judged.at_end is None:
                return None, False
            ends.append(judged.at_end)
        facts = ends[1].case.facts
        growth, captured = facts.growth, facts.captured
        lines = () if growth is None else growth.lines
        lines = lines or _risen(*(end.case.holders for end in ends))
        if not lines:
            return None, False
        place = replace(place, device=ends[1].device, moment=ends[1].event)
        in_pools = captured is not None and captured.num >= MANY_POOLS
        if growth is not None:
            in_pools = growth.in_pools
        trains = ends[1].case.trains is True
        return RetainedMemory(lines, place, in_pools, trains), False


def _is_alike(history: FoundHistory, other: FoundHistory) -> bool:
    """Whether they were captured at one point of the program, in one attempt."""
    keys = ("attempt", "function", "phase", "context", "label")
    return all(
        getattr(history.reference, k) == getattr(other.reference, k) for k in keys
    )


def _risen(before: Sequence[Holder], after: Sequence[Holder]) -> tuple[str, ...]:
    """Lines that hold more, those with at least half as much more as the first."""
    bytes_by_label = {holder.label: holder.num_bytes for holder in before}
    rises = {
        holder.label: holder.num_bytes - bytes_by_label.get(holder.label, 0)
        for holder in after
    }
    most = max(rises.values(), default=0)
    if most <= 0:
        return ()
    largest_rises = [label for label, rise in rises.items() if 2 * rise >= most]
    return tuple(sorted(largest_rises, key=lambda label: -rises[label]))


class _ErrorFindings:
    def __init__(self, reader: ErrorsReader, run: Run, budget: Budget) -> None:
        self._reader = reader
        self._run = run
        self._budget = budget
        self._peers: dict[int, PeerRanks] = {}
        self._problems: dict[str, Problem] = {}
        self._waits = False

    def errors(self, rank: int | None) -> Errors:
        told = self._reports(rank)
        ran_out = {error.report.rank for error in told if error.is_out_of_memory}
        keyed_findings = [
            (self._place(error), self._of_report(error, ran_out, first=place == 0))
            for place, error in enumerate(told[:MAX_ERRORS])
        ]
        files = self._of_files(rank)
        keyed_findings += files
        keyed_findings.sort(key=lambda keyed: keyed[0])
        return Errors(
            found=tuple(finding for _, finding in keyed_findings[:MAX_ERRORS]),
            num_errors=sum(error.is_out_of_memory for error in told) + len(files),
            is_reading=self._waits or self._budget.exhausted,
            problems=tuple(self._problems.values()),
        )

    def wanted(self, rank: int | None) -> list[FoundHistory]:
        """Histories that a finding may rest on."""
        histories = [
            history
            for error in self._reports(rank)[:MAX_ERRORS]
            if (history := self._history_of(error.report)) is not None
        ]
        return histories + self._files()

    def _reports(self, rank: int | None) -> list[ErrorReport]:
        """Reports of all ranks, those first that ended one by running out of memory."""
        cache = self._reader.cache
        told = error_reports(self._run, rank, self._budget, cache)
        return sorted(told, key=self._place)

    def _place(self, told: ErrorReport) -> _ErrorSortKey:
        return _ErrorSortKey(
            is_other_end=not told.is_out_of_memory,
            was_survived=not told.is_last or told.is_closed,
            starts_after=len(self._run.attempts) - told.attempt.index,
            time_ms=told.report.time_ns / 1e6,
        )

    def _of_report(
        self, told: ErrorReport, ran_out: set[int], *, first: bool
    ) -> Finding:
        report, attempt = told.report, told.attempt
        history = self._history_of(report)
        error = None
        if history is not None:
            judged = self._judged(history, open_it=first)
            error = _matching(judged, report)
        peers = self._peers.get(attempt.index)
        if peers is None:
            reader = self._reader.facts
            peers = PeerRanks(self._run, reader, attempt, self._budget)
            self._peers[attempt.index] = peers
        others = peers.others(report.rank)
        around = PeerContext(
            attempt=attempt.index,
            peers=others,
            ran_out=ran_out,
            world_size=max(len(others) + 1, self._world_size(attempt)),
            usual_non_torch_bytes=peers.usual_non_torch_bytes(report.rank),
            growth=peers.growth(report.rank),
            cycles=self._cycles(told),
            num_full_collections=peers.num_full_collections(report.rank),
            capacity_bytes=self._reader.capacity_bytes,
            num_earlier=told.num_earlier,
        )
        return reported_error(report, around, history, error)

    def _cycles(self, told: ErrorReport) -> Sawtooth | None:
        """Of device memory, in the steps of the process that had the error."""
        file = told.attempt.files.get(told.report.rank)
        if file is None or not told.is_out_of_memory:
            return None
        cycles = memory_in_cycles(file, self._reader.facts.series, self._budget)
        is_of_device = cycles is not None and cycles.memory == DEVICE_MEMORY
        return cycles.teeth if cycles is not None and is_of_device else None

    def _of_files(self, rank: int | None) -> list[tuple[_ErrorSortKey, Finding]]:
        """Errors inside files of other tools; all ranks are asked, as peers."""
        judged: list[tuple[FoundHistory, HistoryErrors]] = []
        for place, history in enumerate(self._files()):
            of_file = self._judged(history, open_it=place < MAX_UNASKED)
            if of_file is not None and of_file.found is not None:
                judged.append((history, of_file.found))
        peaks: dict[int, int] = {}
        ran_out: set[int] = set()
        for history, errors in judged:
            of_rank = history.reference.rank
            if of_rank is not None:
                peak = max(errors.peak_active_bytes.values(), default=0)
                peaks[of_rank] = max(peaks.get(of_rank, 0), peak)
                if errors.errors:
                    ran_out.add(of_rank)
        sizes = map(self._world_size, self._run.attempts)
        world_size = max(self._run.snapshots.world_size, len(peaks), 1, *sizes)
        keyed_findings = []
        for process in processes(judged):
            for place, error in enumerate(process.errors):
                of_rank = error.history.reference.rank
                if rank not in (None, of_rank):
                    continue
                is_last = place == len(process.errors) - 1
                around = PeerContext(
                    attempt=error.history.reference.attempt,
                    peers=of_snapshots(peaks, of_rank),
                    ran_out=ran_out,
                    world_size=world_size,
                    capacity_bytes=self._reader.capacity_bytes,
                    num_earlier=process.num_errors - 1 if is_last else place,
                )
                entry = error_in_file(error.history, error.error, around)
                # Of files that tell no rank, the latest is likely the end of them all.
                sign = -1 if is_last and of_rank is None else 1
                time_ms = sign * (entry.time_ms or 0.0)
                keyed_findings.append(
                    (_ErrorSortKey(False, not is_last, 0, time_ms), entry)
                )
        return keyed_findings

    def _files(self) -> list[FoundHistory]:
        """Snapshots of other tools, those first whose name tells of an error."""
        imported = any(
            _is_import(file)
            for attempt in self._run.attempts
            for file in attempt.files.values()
        )
        if not (imported or self._run.snapshots):
            return []
        histories = [
            history
            for history in listed(self._run, self._budget)
            if not isinstance(history.source, OwnCapture)
            or _is_import(history.source.file)
        ]
        return sorted(
            histories, key=lambda history: "oom" not in history.reference.label.lower()
        )

    def _history_of(self, report: OomReport) -> FoundHistory | None:
        if report.history is None:
            return None
        history_id = f"{report.rank}-{report.attempt}-{report.history.offset}"
        try:
            return history_of(self._run, history_id, self._budget)
        except NotFoundError:
            return None

    def _judged(self, history: FoundHistory, *, open_it: bool) -> HistoryVerdict | None:
        judge = self._reader.judge
        try:
            judged = judge.ask(self._run, history, open_it=open_it)
        except NotReadyError:
            self._waits = True
            return None
        if judged is None:
            self._waits |= judge.is_under_way(history)
            judged = judge.known(history)  # it may have ended in between
        if judged is not None and judged.problem is not None:
            self._problems.setdefault(judged.problem.path, judged.problem)
        return judged

    def _world_size(self, attempt: AttemptFiles) -> int:
        sizes = [file.header.world_size for file in attempt.files.values()]
        return max(sizes, default=1)


def _is_import(file: RankFile) -> bool:
    """Whether a rank's file holds snapshots that other tools wrote."""
    return file.header.job.startswith(IMPORT_JOB)


def _matching(judged: HistoryVerdict | None, report: OomReport) -> OomError | None:
    """What a history says of the error it was taken at: the last one of the device.

    Of another end, what was held at the last event.
    """
    if judged is None or judged.found is None:
        return None
    errors: Iterable[OomError] = judged.found.errors
    own: Sequence[OomError] = [
        error for error in errors if report.case.device in (None, error.device)
    ]
    if report.case.is_out_of_memory and own:
        return max(own, key=lambda error: (error.time_us or 0, error.event))
    return None if report.case.is_out_of_memory else judged.at_end
