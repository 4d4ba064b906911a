"""Problems of a run's files, and of a logdir itself, as the page shows them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Literal

from memboard.collector.format.sizes import counted
from memboard.tb_plugin import storage
from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.formats.plain_files import WRITING_SECONDS
from memboard.tb_plugin.formats.recording.frames.parts import PartsReader
from memboard.tb_plugin.formats.recording.frames.scan import ends_cut_off
from memboard.tb_plugin.formats.recording.tail import named
from memboard.tb_plugin.formats.registry import fault_of
from memboard.tb_plugin.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memboard.collector.format.records import How
    from memboard.tb_plugin.api.findings import Severity
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.file_listing import FoundFiles
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.snapshots.files.listing import (
        FoundSnapshot,
        FoundSnapshots,
    )
    from memboard.tb_plugin.index.logdirs import Logdir
    from memboard.tb_plugin.worker.cache import FileKey

_MAX_PLACES: Final = 4

_SKEW_SECONDS: Final = 5.0
"""Clocks of hosts may differ by this without two attempts seeming to overlap."""
_MAX_PROBLEMS: Final = 200
_WORST_FIRST: Final[tuple[Severity, ...]] = ("error", "warning", "info")
_ENDS: Final[dict[How, str]] = {
    "closed": "ended in order",
    "exception": "ended by an exception",
    "signal": "was ended by a signal",
}


def problems_of(file: RankFile, *, live: bool, now: float) -> Iterator[Problem]:
    """Everything wrong with one file."""
    fresh = now < settled_at(file)
    if file.num_bytes == 0:
        if not fresh:
            yield _problem(
                file,
                "The file is empty.",
                remedy="The process died, or the disk was full, before anything was"
                " written. The file may be deleted.",
            )
        return
    if not (file.has_records or file.is_foreign or file.unfinished or fresh):
        yield _problem(
            file,
            "The file holds no MemBoard records.",
            severity="error",
            remedy="Something else has this name: move it out of the directory.",
        )
        return
    equal: dict[tuple[Severity, str, str], list[str]] = {}
    for fault in file.faults:
        key = fault.severity, fault.what, fault.remedy
        equal.setdefault(key, []).append(fault.where)
    for (severity, sentence, remedy), places in equal.items():
        yield _problem(
            file,
            sentence
            if len(places) == 1
            else f"{sentence.removesuffix('.')} ({counted(len(places), 'time')}).",
            severity=severity,
            where=_places(places),
            remedy=remedy,
        )
    if file.has_records and file.written_header is None:
        yield _problem(
            file,
            "The header is lost; rank and start time are taken from the file's name.",
            where="header",
            remedy="Host, device and settings of this rank are not known.",
        )
    if file.close is not None and not (file.is_complete or live or file.unfinished):
        yield _problem(
            file,
            f"The program {_ENDS[file.close.how]}, and its recording was cut before all"
            " that waited was written.",
            where=f"byte {file.read_to} of {file.layout.size_bytes}",
            remedy="The machine was overloaded, or its disk was slow, full or did not"
            " answer: a program's end waits for it some seconds only."
            " Everything before that is shown.",
        )
        return
    if file.is_torn and not live:
        yield _torn_problem(file)
    cut_off = file.behind.captures.unfinished
    if cut_off is not None and not (live or file.is_torn or file.unfinished):
        yield _problem(
            file,
            f"The file ends in the middle of {named(cut_off)}.",
            severity="info",
            where=f"byte {cut_off.offset} of {file.layout.size_bytes}",
            remedy="The process ended, or the disk was full, while it was being written."
            " Everything before that is shown.",
        )
    if file.unfinished and not file.faults:
        yield _problem(
            file,
            "The file has not been read to its end yet.",
            where=f"byte {file.read_to} of {file.layout.size_bytes}",
            remedy="Wait a moment: each refresh of the page reads on.",
            kind="unread",
        )


def _torn_problem(file: RankFile) -> Problem:
    """Of the end of a file: a kill cuts it off, everything else is damage."""
    size_bytes = file.layout.size_bytes
    try:
        with PartsReader(file.layout) as reader:
            is_cut_off = ends_cut_off(reader, file.read_to)
    except OSError:
        is_cut_off = True  # the store is away, which is said of the logdir
    if is_cut_off:
        return _problem(
            file,
            "The file ends in the middle of a record.",
            severity="info",
            where=f"byte {file.read_to} of {size_bytes}",
            remedy="The process ended, or the disk was full, while it was being written."
            " Everything before that is shown.",
        )
    return _problem(
        file,
        "The end of the file is damaged.",
        where=f"bytes {file.read_to} to {size_bytes}",
        remedy="It cannot be recovered; check the disk if this keeps happening."
        " Everything before that is shown.",
    )


def _places(places: list[str]) -> str:
    named = "; ".join(places[:_MAX_PLACES])
    more = len(places) - _MAX_PLACES
    return f"{named} and {counted(more, 'more place')}" if more > 0 else named


def worst_first(problems: list[Problem], folder: str) -> tuple[Problem, ...]:
    """All problems of the run in `folder`, or as many as a page lists."""
    problems.sort(key=lambda problem: _WORST_FIRST.index(problem.severity))
    if len(problems) > _MAX_PROBLEMS:
        more = counted(len(problems) - _MAX_PROBLEMS + 1, "more problem")
        sentence = f"Not listed: {more}."
        remedy = "Choose one rank to see its own."
        last = Problem("warning", folder, sentence, remedy=remedy)
        problems = [*problems[: _MAX_PROBLEMS - 1], last]
    return tuple(problems)


def settled_at(file: RankFile) -> float:
    """When a file is no longer one that was created just now."""
    newest = max((part.mtime_ns for part in file.parts), default=0) / 1e9
    return newest + WRITING_SECONDS


def being_simulated(files: Sequence[RankFile], since: float) -> bool:
    """Whether ranks of a simulated run are missing, and one was written since then."""
    # Asked at every poll: of runs that nobody writes any more, times of files tell.
    written_ns = max((p.mtime_ns for file in files for p in file.parts), default=0)
    if written_ns / 1e9 < since:
        return False
    headers = [file.header for file in files if file.has_records]
    return any(header.simulated for header in headers) and len(files) < max(
        header.world_size for header in headers
    )


def overlapping(
    before: dict[int, RankFile], after: dict[int, RankFile]
) -> tuple[RankFile, RankFile] | None:
    """Two files of one rank that were written at the same time, if there are any."""
    for rank, later in after.items():
        earlier = before.get(rank)
        if earlier is not None:
            started = later.header.started.wall_ns
            if earlier.newest_ns > started + _SKEW_SECONDS * 1e9:
                return earlier, later
    return None


def overlap_problem(earlier: RankFile, later: RankFile) -> Problem:
    """Two jobs wrote into one run at the same time."""
    return _problem(
        later,
        "Two jobs wrote into this run at the same time: the first on"
        f" {_writer_of(earlier)}, the second on {_writer_of(later)}.",
        remedy="Give each job its own directory. On the step axis the later job is"
        " shown; the time axes show both.",
    )


def _writer_of(file: RankFile) -> str:
    host = file.header.host or "an unknown host"
    return f"{host} (process {file.header.pid})"


def _problem(
    file: RankFile,
    sentence: str,
    *,
    severity: Severity = "warning",
    where: str = "",
    remedy: str,
    kind: Literal["fault", "unread"] = "fault",
) -> Problem:
    return Problem(
        severity,
        file.shown_path,
        sentence,
        remedy=remedy,
        where=where,
        salvaged=_salvaged(file),
        rank=file.rank,
        kind=kind,
    )


def _salvaged(file: RankFile) -> str:
    rows = {}
    if file.digest is not None:
        rows = {key: table.num_rows for key, table in file.digest.tables.items()}
    for key, refs in file.behind.chunks.items():
        rows[key] = rows.get(key, 0) + sum(ref.num_rows for ref in refs)
    total = sum(rows.values())
    return counted(total, "row") if total else "nothing"


def problems_at(logdir: Logdir) -> Iterator[Problem]:
    """Problems of one logdir that belong to none of its runs."""
    if logdir.path is None:
        yield Problem(
            "error",
            logdir.shown,
            "Logdirs at such an address are not read.",
            remedy="Check how it is written, and name the store itself:"
            " --logdir s3://bucket/runs, or a local directory.",
        )
    elif storage.is_remote(logdir.path):
        yield from _at_store(logdir.path)
    elif not storage.LOCAL.isdir(logdir.path):
        yield Problem(
            "warning",
            logdir.shown,
            "There is no such directory (yet).",
            remedy="Check --logdir; the page updates automatically once the directory exists.",
        )


def _at_store(root: str) -> Iterator[Problem]:
    remote = storage.remote_at(root)
    refused = remote.refusal()
    if refused is not None:
        path, error = refused
        yield Problem("error", path, f"{error.strerror}.", remedy=error.remedy)
    listing = remote.progress()
    if listing:
        yield Problem(
            "warning",
            root,
            listing,
            remedy="Wait a moment: the page updates automatically.",
        )
    if remote.num_refused_names:
        yield Problem(
            "warning",
            root,
            f"{counted(remote.num_refused_names, 'key')} with a name that no file can have,"
            " such as `..`: not shown.",
            remedy="Ignore this if they are not yours.",
        )


class FileProblems:
    """Problems of a run's other files, and of captures, as far as anybody read them.

    Whatever reads one notes what is wrong with it here, through `Run.note_read`: the page
    and the report show these, and nothing else about a file that is not whole.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._problems: tuple[Problem, ...] | None = ()
        """None: they are to be collected again."""
        self._clock = clock
        self._listings: tuple[FoundFiles[Any], ...] = ()
        self._listed: dict[str, FileKey] = {}
        """By path: the content that the last listing saw."""
        self._noted: dict[str, tuple[FileKey | None, tuple[Problem, ...]]] = {}
        """By name: of which content, and what was wrong."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        if self._problems is None:
            self._problems = tuple(
                problem for _, problems in self._noted.values() for problem in problems
            )
        return self._problems

    def keep(self, listings: tuple[FoundFiles[Any], ...]) -> None:
        """Forget what was said of listed files that are gone, or not as they were."""
        if [*map(id, listings)] == [*map(id, self._listings)]:
            return
        self._listings = listings
        self._listed = {
            file.path: file.key for listing in listings for file in listing.files
        }
        self._noted = {
            name: noted
            for name, noted in self._noted.items()
            if noted[0] in (None, self._listed.get(name))
        }
        self._problems = None

    def note(
        self, path_text: str, problems: Sequence[Problem], listed: FileKey | None
    ) -> bool:
        """Whether that is news; see `Run.note_read`."""
        if listed is not None and self._listed.get(path_text) != listed:
            return False  # it was read too late
        _, before = self._noted.get(path_text, (None, ()))
        self._noted[path_text] = listed, tuple(problems)
        if before == tuple(problems):
            return False
        self._problems = None
        return True

    def check(self, snapshots: FoundSnapshots, budget: Budget) -> bool:
        """Look at the ends of snapshots; True when all are done."""
        done = True
        for file in snapshots.files:
            if file.path in self._noted:
                continue
            if not budget.allows():
                done = False
                break
            if self._clock() - file.key.mtime_ns / 1e9 < WRITING_SECONDS:
                done = False
                continue
            try:
                self._noted[file.path] = file.key, tuple(_faults(file))
            except StorageError:
                done = False
        self._problems = None
        return done


def _faults(file: FoundSnapshot) -> Iterator[Problem]:
    fault = fault_of(file.path)
    if fault is not None:
        sentence, remedy = fault
        yield Problem(
            "error",
            file.path_text,
            sentence,
            salvaged="nothing",
            remedy=remedy,
            rank=file.rank,
        )
