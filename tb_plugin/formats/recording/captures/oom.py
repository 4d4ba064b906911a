"""Reports of out-of-memory errors, and of other ends, in a rank's file.

The recorder writes a small capture of kind `oom` first, then a capture of kind
`history`, then a note; any of them may be missing, because the process may be killed in
between. Here is the report, or what the note's message says where there is none, with
the place of the history that belongs to it. Files may hold anything: what is not of its
type is taken as not known, and texts are cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from memboard.collector.format.errors import FormatError
from memboard.collector.format.memory import GRADIENTS
from memboard.collector.format.oom import KIND, ORIGINS, REPORT
from memboard.collector.format.sizes import sizes_in
from memboard.tb_plugin.analysis.categories.frames import frame_label
from memboard.tb_plugin.analysis.categories.phases import asked_in
from memboard.tb_plugin.analysis.findings.conditions import (
    is_rejected_in,
    memory_fraction_in,
    recorded_setup,
)
from memboard.tb_plugin.analysis.oom.case import Case, OomFacts, filled
from memboard.tb_plugin.formats.recording.captures.meta import Meta
from memboard.tb_plugin.formats.recording.captures.reading import (
    captures_of,
    read_capture,
)
from memboard.tb_plugin.formats.recording.captures.report_tables import (
    MAX_NAME,
    bytes_by_category,
    holders_of,
    label_of,
    marks_of,
    stack_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.collector.format.oom import Origin
    from memboard.collector.format.records import Capture, CaptureEntry
    from memboard.tb_plugin.analysis.findings.conditions import Setup
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.notes import Event


_TRAINS: Final = ("backward", "optimizer")
_OF_TRAINING: Final = (*GRADIENTS, "activation_grad", "optimizer")
"""Phases, and categories of memory, that only a training has."""
_MAX_TEXT: Final = 4000
_REPORT_BYTES: Final = 16 << 10
"""About what a decoded report takes."""


@dataclass(frozen=True, slots=True)
class OomReport:
    """One error, or another end, as one rank tells it."""

    id: str
    """`{rank}-{attempt}-{offset}`, or with the time of a note alone."""
    file: str
    """Of the rank's recording, relative to the logdir."""
    rank: int
    attempt: str
    """As in the file's name."""
    origin: Origin
    time_ns: int
    step: int | None
    phase: str
    during: str
    """Spans and functions under way, outermost first."""
    message: str
    case: Case
    held_why_not: str = ""
    history: CaptureEntry | None = None
    """The history taken with it."""
    history_why_not: str = ""
    rss_bytes: int | None = None
    """Resident memory of the process; None: not recorded."""
    num_not_reported: int = 0
    """Errors of this recording that have no report of their own."""


@dataclass(frozen=True, slots=True)
class Ending:
    """One end that is known of, before its report is read."""

    file: RankFile
    entry: CaptureEntry | None
    note: Event | None
    time_ns: int
    history: CaptureEntry | None = None


def endings_of(
    file: RankFile, notes: Iterable[Event], budget: Budget | None = None
) -> list[Ending]:
    """The ends that a rank's file tells of, in the order they were written.

    `notes`: those of kinds `oom` and `oom_message` of this file.
    """
    entries = captures_of(file, budget)
    reports = [entry for entry in entries if entry.kind == KIND]
    behind: list[CaptureEntry | None] = [*reports[1:], None]
    endings = [
        Ending(file, entry, None, entry.time_ns, _history_of(entries, entry, following))
        for entry, following in zip(reports, behind, strict=False)
    ]
    return endings + [
        Ending(file, None, note, note.time_ns)
        for note in notes
        if note.kind == "oom" and type(note.data.get(REPORT)) is not int
    ]


def read_report(
    ending: Ending, messages: Mapping[int, str], cache: Cache
) -> OomReport | None:
    """The report of an end; None where it is damaged, which is a fault of its file.

    `messages`: of this file's notes, by the number of the report they belong to.
    """
    if ending.entry is None:
        return None if ending.note is None else _of_note(ending.file, ending.note)
    key = (ending.file.identity, KIND, ending.entry.offset)
    capture: Capture | None = cache.get(key)
    if capture is None:
        try:
            capture = read_capture(ending.file, ending.entry)
        except (FormatError, OSError):
            return None
        cache.put(key, capture, _REPORT_BYTES)
    return _of_capture(ending, ending.entry, capture, messages)


def messages_by_report(notes: Iterable[Event]) -> dict[int, str]:
    """The texts of notes that belong to a report, by its number.

    The error's own, `oom_message`, comes later than what stands in its mark.
    """
    text_by_number = {}
    for note in sorted(notes, key=lambda note: note.kind == "oom_message"):
        number, text = note.data.get(REPORT), note.data.get("message")
        if type(number) is int and isinstance(text, str):
            text_by_number[number] = text[:_MAX_TEXT]
    return text_by_number


def _history_of(
    entries: Iterable[CaptureEntry],
    report: CaptureEntry,
    following: CaptureEntry | None,
) -> CaptureEntry | None:
    """The history written behind a report and before the next one."""
    for entry in entries:
        behind = entry.offset > report.offset
        before = following is None or entry.offset < following.offset
        # One by hand has no context, and a call's has its side.
        same = entry.context in ORIGINS and entry.context == report.label
        if entry.kind == "history" and behind and before and same:
            return entry
    return None


def _of_note(file: RankFile, note: Event) -> OomReport:
    text = note.data.get("message")
    message = text[:_MAX_TEXT] if isinstance(text, str) else ""
    sizes = sizes_in(message)
    return OomReport(
        id=f"{file.rank}-{file.attempt}-n{note.time_ns}",
        file=file.shown_path,
        rank=file.rank,
        attempt=file.attempt,
        origin="oom",
        time_ns=note.time_ns,
        step=note.step,
        phase="",
        during="",
        message=message,
        case=Case(
            facts=_facts_in(sizes),
            device=sizes.get("device"),
            parsed=bool(sizes),
            setup=_setup(file, Meta(None), message),
        ),
        history_why_not="this version of the recorder wrote the message alone",
    )


def _of_capture(
    ending: Ending, entry: CaptureEntry, capture: Capture, messages: Mapping[int, str]
) -> OomReport:
    told = Meta(capture.meta)
    origin = told.text("origin")
    number = told.count(REPORT) or 0
    message = told.part("exception").text("message", _MAX_TEXT)
    message = message or messages.get(number, "")
    sizes = sizes_in(message)
    facts = filled(_facts(told), _facts_in(sizes))
    live = told.part("holders").count("live_bytes")
    if live is not None and facts.active_bytes is not None:
        live = max(live, facts.active_bytes)
    frames = stack_of(capture.tables)
    by_category = bytes_by_category(capture.tables)
    return OomReport(
        id=f"{ending.file.rank}-{ending.file.attempt}-{entry.offset}",
        file=ending.file.shown_path,
        rank=ending.file.rank,
        attempt=ending.file.attempt,
        origin=origin if origin in ORIGINS else "exception",
        time_ns=entry.time_ns,
        step=entry.step,
        phase=entry.phase[:MAX_NAME],
        during=_during(told, entry),
        message=message or _ended_by(told),
        case=Case(
            facts=facts,
            device=told.count("device"),
            is_out_of_memory=told.flag("is_out_of_memory") is True or origin == "oom",
            parsed=bool(told.texts("parsed")),
            setup=_setup(ending.file, told.part("allocator"), message),
            holders=holders_of(capture.tables, live),
            live_bytes=live,
            by_category=by_category,
            stack=tuple(frame_label(*frame) for frame in frames),
            asked_at=label_of(frames),
            asked_in=asked_in(marks_of(frames)),
            trains=_trains(entry.phase, by_category, asked_in(marks_of(frames))),
        ),
        held_why_not=told.part("holders").text("why_not"),
        history=ending.history,
        history_why_not=told.part("history").text("why_not"),
        rss_bytes=told.part("host").count("rss_bytes"),
        num_not_reported=told.count("num_not_reported") or 0,
    )


def _setup(file: RankFile, allocator: Meta, message: str) -> Setup:
    """What the recording says of how the process ran; `allocator`: at the error."""
    header = file.header
    expandable, backend = (
        allocator.flag("expandable_segments"),
        allocator.text("backend"),
    )
    if expandable is None and backend:
        expandable = (
            False  # the settings were read, and do not name it: torch's default
        )
    return replace(
        recorded_setup(header.device_type, header.versions, header.config),
        expandable=expandable,
        other_allocator=True if backend not in ("", "native") else None,
        memory_fraction=memory_fraction_in([allocator.text("settings")]),
        is_rejected=is_rejected_in(message),
    )


def _trains(phase: str, by_category: Mapping[str, int], asked: str) -> bool | None:
    """True where a training shows: what is known without a history proves no absence."""
    is_training = asked in _TRAINS or phase in _TRAINS
    return (
        True if is_training or any(by_category.get(k) for k in _OF_TRAINING) else None
    )


def _facts_in(sizes: Mapping[str, int]) -> OomFacts:
    """What an exception's text says."""
    return OomFacts(
        requested_bytes=sizes.get("requested_bytes"),
        device_free_bytes=sizes.get("device_free_bytes"),
        capacity_bytes=sizes.get("device_total_bytes"),
        limit_bytes=sizes.get("device_limit_bytes"),
        reserved_bytes=sizes.get("reserved_bytes"),
        allocated_bytes=sizes.get("allocated_bytes"),
        private_free_bytes=sizes.get("private_free_bytes"),
    )


def _facts(told: Meta) -> OomFacts:
    memory = told.part("memory")
    return OomFacts(
        requested_bytes=told.count("requested_bytes"),
        device_free_bytes=told.count("device_free_bytes"),
        capacity_bytes=told.count("device_total_bytes"),
        limit_bytes=told.count("device_limit_bytes"),
        reserved_bytes=memory.count("reserved_bytes"),
        allocated_bytes=memory.count("allocated_bytes"),
        active_bytes=memory.count("active_bytes"),
        most_allocated_bytes=memory.count("allocated_peak_bytes"),
        most_reserved_bytes=memory.count("reserved_peak_bytes"),
    )


def _during(told: Meta, entry: CaptureEntry) -> str:
    """What was under way: the innermost span, and the function where it says more."""
    spans, functions = told.texts("spans"), told.texts("functions")
    innermost = spans[-1:] + [name for name in functions[-1:] if name not in spans]
    return " in ".join(innermost) if innermost else entry.function[:MAX_NAME]


def _ended_by(told: Meta) -> str:
    exception = told.part("exception")
    return exception.text("type") or told.text("signal")
