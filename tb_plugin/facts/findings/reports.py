"""Reports of the recorder about ends of processes, before they become findings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.tb_plugin.formats.recording.captures.oom import (
    Ending,
    OomReport,
    endings_of,
    messages_by_report,
    read_report,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.index.notes import Event
    from memboard.tb_plugin.index.run import AttemptFiles, Run

MAX_REPORTS: Final = 60
"""Ends whose reports are read: those of out-of-memory errors first."""

FileNotes = dict[tuple[int, str], list["Event"]]


class ErrorReport(NamedTuple):
    """A report, and the start of the job it is of."""

    attempt: AttemptFiles
    report: OomReport
    num_earlier: int
    """Errors of the same process before it."""
    is_last: bool
    """Of the errors of its process."""

    @property
    def is_out_of_memory(self) -> bool:
        """Otherwise it is another end."""
        return self.report.case.is_out_of_memory

    @property
    def is_closed(self) -> bool:
        """Whether the process closed its recording in order: it survived its errors."""
        file = self.attempt.files.get(self.report.rank)
        close = None if file is None else file.close
        return close is not None and close.how == "closed"


def error_reports(
    run: Run, rank: int | None, budget: Budget, cache: Cache
) -> Iterator[ErrorReport]:
    """Reports of all ranks, of which those of out-of-memory errors are read first."""
    notes = _notes_by_file(run)
    endings: list[tuple[AttemptFiles, Ending]] = []
    for attempt in run.attempts:
        for of_rank, file in attempt.files.items():
            if rank in (None, of_rank):
                own = notes.get((of_rank, file.attempt), [])
                endings += [
                    (attempt, ending) for ending in endings_of(file, own, budget)
                ]
    endings.sort(key=lambda ending: (not _is_likely(ending[1]), ending[1].time_ns))
    # The last one of each process is the one that may have ended it.
    last = {id(ending.file): ending for _, ending in endings if _is_likely(ending)}
    endings.sort(key=lambda ending: last.get(id(ending[1].file)) is not ending[1])
    reports: list[tuple[AttemptFiles, OomReport]] = []
    for attempt, ending in endings[:MAX_REPORTS]:
        own = notes.get((ending.file.rank, ending.file.attempt), [])
        messages = messages_by_report(own)
        report = read_report(ending, messages, cache)
        if report is not None and _tells_of_memory(report):
            reports.append((attempt, report))
    num_errors = Counter(
        ending.file.shown_path for _, ending in endings if _is_likely(ending)
    )
    return _numbered(reports, num_errors)


def _numbered(
    reports: Iterable[tuple[AttemptFiles, OomReport]], num_errors: Mapping[str, int]
) -> Iterator[ErrorReport]:
    """Reports with their place among the errors of their process.

    `num_errors`: by file, of which some may not have been read.
    """
    by_file: dict[str, list[OomReport]] = {}
    told = sorted(reports, key=lambda report: report[1].time_ns)
    for _, report in told:
        if report.case.is_out_of_memory:
            by_file.setdefault(report.file, []).append(report)
    for attempt, report in told:
        errors = by_file.get(report.file, [])
        if not report.case.is_out_of_memory:
            yield ErrorReport(attempt, report, 0, is_last=True)
        elif report is errors[-1]:
            earlier = max(len(errors), num_errors[report.file]) - 1
            yield ErrorReport(attempt, report, earlier, is_last=True)
        else:
            yield ErrorReport(attempt, report, errors.index(report), is_last=False)


def _is_likely(ending: Ending) -> bool:
    """Whether it is of memory: known before its report is read."""
    return ending.entry is None or ending.entry.label == "oom"


def _tells_of_memory(report: OomReport) -> bool:
    """An exception on a machine without a device says nothing of memory."""
    has_memory = report.case.facts.held_bytes is not None or bool(report.case.holders)
    return report.case.is_out_of_memory or has_memory


def _notes_by_file(run: Run) -> FileNotes:
    notes: FileNotes = {}
    for event in (*run.notes.events("oom"), *run.notes.events("oom_message")):
        notes.setdefault((event.rank, event.attempt), []).append(event)
    return notes
