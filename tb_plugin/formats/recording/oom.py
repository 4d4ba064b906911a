"""Reports of out-of-memory errors, and of other ends, in a rank's file.

The recorder writes a small capture of kind `oom` first, then a capture of kind
`history`, then a note; any of them may be missing, because the process may be killed in
between. Here is the report, or what the note's message says where there is none, with
the place of the history that belongs to it. Files may hold anything: what is not of its
type is taken as not known, and texts are cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.errors import FormatError
from collector.format.memory import CATEGORIES
from collector.format.oom import KIND, ORIGINS, REPORT
from collector.format.oom_message import sizes_in
from tb_plugin.analysis.categories.frames import frame_label, kind_of
from tb_plugin.analysis.categories.marks import python_marks
from tb_plugin.analysis.categories.phases import asked_in
from tb_plugin.analysis.oom.error import OomFacts, filled
from tb_plugin.analysis.oom.holders import MAX_HOLDERS, Holder
from tb_plugin.analysis.snapshots.snapshot import NOTHING
from tb_plugin.formats.recording.captures import captures_of, read_capture

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.format.oom import Origin
    from collector.format.records import Capture, CaptureEntry, CaptureTable
    from tb_plugin.budget import Budget
    from tb_plugin.cache import Cache
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.notes import Event

MAX_BYTES: Final = 1 << 53
MAX_STACK: Final = 80
_MAX_TEXT: Final = 4000
_MAX_NAME: Final = 500
_MAX_PARTS: Final = 20
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
    is_out_of_memory: bool
    time_ns: int
    step: int | None
    phase: str
    during: str
    """Spans and functions under way, outermost first."""
    device: int | None
    message: str
    facts: OomFacts
    parsed: bool
    """Numbers were read from the exception's text, and are rounded."""
    stack: tuple[str, ...] = ()
    """Of what asked for the memory, innermost frame first."""
    asked_at: str = ""
    """The line of the user's own that asked."""
    asked_in: str = ""
    """`forward`, `backward`, `optimizer`, as the stack tells; empty: none."""
    holders: tuple[Holder, ...] = ()
    held_why_not: str = ""
    live_bytes: int | None = None
    """What the holders are shares of."""
    categories: tuple[tuple[int, int], ...] = ()
    """Index of the category and bytes, of the tensors that the recorder knows."""
    settings: str = ""
    expandable: bool | None = None
    backend: str = ""
    simulated: bool = False
    history: CaptureEntry | None = None
    """The history taken with it."""
    history_why_not: str = ""
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


@dataclass(slots=True)
class _Told:
    """What a capture's meta says, each part of its type or not known."""

    meta: Mapping[str, Any]
    tables: Mapping[str, CaptureTable] = field(default_factory=dict)

    def size(self, key: str) -> int | None:
        value = self.meta.get(key)
        return value if type(value) is int and 0 <= value <= MAX_BYTES else None

    def text(self, key: str, most: int = _MAX_NAME) -> str:
        value = self.meta.get(key)
        return value[:most] if isinstance(value, str) else ""

    def part(self, key: str) -> _Told:
        value = self.meta.get(key)
        return _Told(value if isinstance(value, dict) else {})

    def texts(self, key: str) -> list[str]:
        value = self.meta.get(key)
        parts = value[:_MAX_PARTS] if isinstance(value, (list, tuple)) else []
        return [part[:_MAX_NAME] for part in parts if isinstance(part, str)]


def endings_of(
    file: RankFile, notes: Iterable[Event], budget: Budget | None = None
) -> list[Ending]:
    """The ends that a rank's file tells of, in the order they were written.

    `notes`: those of kinds `oom` and `oom_message` of this file.
    """
    entries = captures_of(file, budget)
    reports = [entry for entry in entries if entry.kind == KIND]
    behind: list[CaptureEntry | None] = [*reports[1:], None]
    found = [
        Ending(file, entry, None, entry.time_ns, _history_of(entries, entry, following))
        for entry, following in zip(reports, behind, strict=False)
    ]
    return found + [
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
    found = {}
    for note in sorted(notes, key=lambda note: note.kind == "oom_message"):
        number, text = note.data.get(REPORT), note.data.get("message")
        if type(number) is int and isinstance(text, str):
            found[number] = text[:_MAX_TEXT]
    return found


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
    said = sizes_in(message)
    return OomReport(
        id=f"{file.rank}-{file.attempt}-n{note.time_ns}",
        file=file.shown_path,
        rank=file.rank,
        attempt=file.attempt,
        origin="oom",
        is_out_of_memory=True,
        time_ns=note.time_ns,
        step=note.step,
        phase="",
        during="",
        device=said.get("device"),
        message=message,
        facts=_facts_in(said),
        parsed=bool(said),
        history_why_not="this version of the recorder wrote the message alone",
    )


def _of_capture(
    ending: Ending, entry: CaptureEntry, capture: Capture, messages: Mapping[int, str]
) -> OomReport:
    told = _Told(capture.meta, capture.tables)
    origin = told.text("origin")
    number = told.size(REPORT) or 0
    message = told.part("exception").text("message", _MAX_TEXT)
    message = message or messages.get(number, "")
    facts = _facts(told)
    said = sizes_in(message)
    facts = filled(facts, _facts_in(said))
    is_oom = told.meta.get("is_out_of_memory") is True or origin == "oom"
    holders, live = _holders(told)
    allocator = told.part("allocator")
    expandable = allocator.meta.get("expandable_segments")
    device, frames = told.size("device"), _stack(told)
    return OomReport(
        id=f"{ending.file.rank}-{ending.file.attempt}-{entry.offset}",
        file=ending.file.shown_path,
        rank=ending.file.rank,
        attempt=ending.file.attempt,
        origin=origin if origin in ORIGINS else "exception",
        is_out_of_memory=is_oom,
        time_ns=entry.time_ns,
        step=entry.step,
        phase=entry.phase[:_MAX_NAME],
        during=_during(told, entry),
        device=device,
        message=message or _ended_by(told),
        facts=facts,
        parsed=bool(told.texts("parsed")),
        stack=tuple(frame_label(*frame) for frame in frames),
        asked_at=_label(frames),
        asked_in=asked_in(_marks(frames)),
        holders=holders,
        held_why_not=told.part("holders").text("why_not"),
        live_bytes=live,
        categories=_categories(told),
        settings=allocator.text("settings"),
        expandable=expandable if isinstance(expandable, bool) else None,
        backend=allocator.text("backend"),
        simulated=told.meta.get("simulated") is True,
        history=ending.history,
        history_why_not=told.part("history").text("why_not"),
        num_not_reported=told.size("num_not_reported") or 0,
    )


def _facts_in(said: Mapping[str, int]) -> OomFacts:
    """What an exception's text says."""
    return OomFacts(
        requested_bytes=said.get("requested_bytes"),
        device_free_bytes=said.get("device_free_bytes"),
        capacity_bytes=said.get("device_total_bytes"),
        limit_bytes=said.get("device_limit_bytes"),
        reserved_bytes=said.get("reserved_bytes"),
        allocated_bytes=said.get("allocated_bytes"),
    )


def _facts(told: _Told) -> OomFacts:
    memory = told.part("memory")
    return OomFacts(
        requested_bytes=told.size("requested_bytes"),
        device_free_bytes=told.size("device_free_bytes"),
        capacity_bytes=told.size("device_total_bytes"),
        limit_bytes=told.size("device_limit_bytes"),
        reserved_bytes=memory.size("reserved_bytes"),
        allocated_bytes=memory.size("allocated_bytes"),
        active_bytes=memory.size("active_bytes"),
        most_reserved_bytes=memory.size("reserved_peak_bytes"),
    )


def _during(told: _Told, entry: CaptureEntry) -> str:
    """What was under way: the innermost span, and the function where it says more."""
    spans, functions = told.texts("spans"), told.texts("functions")
    words = spans[-1:] + [name for name in functions[-1:] if name not in spans]
    return " in ".join(words) if words else entry.function[:_MAX_NAME]


def _ended_by(told: _Told) -> str:
    exception = told.part("exception")
    return exception.text("type") or told.text("signal")


def _stack(told: _Told) -> list[tuple[str, str, int]]:
    """Frames of the failing thread, innermost first."""
    rows = [row for row in _rows(told, "stack") if row[0] == 0]
    return [(name, filename, line) for _, name, filename, line in rows[:MAX_STACK]]


def _rows(told: _Told, table: str) -> list[tuple[int, str, str, int]]:
    """A table of frames: whose it is, function, file and line."""
    columns = told.tables.get(table, {})
    names, files = columns.get("name"), columns.get("filename")
    whose = _ints(columns, "thread" if table == "stack" else "holder")
    lines = _ints(columns, "line")
    if not (isinstance(names, tuple) and isinstance(files, tuple)):
        return []
    if not len(names) == len(files) == len(whose) == len(lines):
        return []
    return [
        (int(owner), name[:_MAX_NAME], file[:_MAX_NAME], int(line))
        for owner, name, file, line in zip(whose, names, files, lines, strict=True)
    ]


def _holders(told: _Told) -> tuple[tuple[Holder, ...], int | None]:
    """Lines that held most, stacks of one line together, and what they are shares of."""
    columns = told.tables.get("holders", {})
    sizes, counts = _ints(columns, "num_bytes"), _ints(columns, "num_blocks")
    category = _ints(columns, "category")
    live = told.part("holders").size("live_bytes")
    if not len(sizes) == len(counts) == len(category) or not live:
        return (), live
    frames: dict[int, list[tuple[str, str, int]]] = {}
    for row, name, filename, line in _rows(told, "holder_frames"):
        frames.setdefault(row, []).append((name, filename, line))
    by_label: dict[str, list[int]] = {}
    for row in range(len(sizes)):
        by_label.setdefault(_label(frames.get(row, [])), []).append(row)
    found = [
        Holder(
            label=label,
            num_bytes=int(sizes[rows].sum()),
            share=min(1.0, float(sizes[rows].sum()) / live),
            num_blocks=int(counts[rows].sum()),
            stack=NOTHING,
            category=_known(int(category[rows[0]])),
        )
        for label, rows in by_label.items()
    ]
    found.sort(key=lambda holder: -holder.num_bytes)
    return tuple(found[:MAX_HOLDERS]), live


def _label(frames: list[tuple[str, str, int]]) -> str:
    """The frame that stands for a stack, as `analysis.frames.user_frames` chooses it."""
    if not frames:
        return ""
    kinds = [kind_of(filename) for _, filename, _ in frames]
    return frame_label(*frames[min(range(len(frames)), key=kinds.__getitem__)])


def _marks(frames: list[tuple[str, str, int]]) -> int:
    """The marks of a stack of Python."""
    marks = 0
    for name, filename, _ in frames:
        marks |= python_marks(name, filename)
    return marks


def _categories(told: _Told) -> tuple[tuple[int, int], ...]:
    columns = told.tables.get("categories", {})
    category, sizes = _ints(columns, "category"), _ints(columns, "num_bytes")
    if len(category) != len(sizes):
        return ()
    return tuple(
        (_known(int(which)), int(size))
        for which, size in zip(category, sizes, strict=True)
        if 0 <= size <= MAX_BYTES
    )


def _known(category: int) -> int:
    return category if 0 <= category < len(CATEGORIES) else NOTHING


def _ints(columns: CaptureTable, name: str) -> Any:
    values = columns.get(name)
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return np.clip(values, -1, MAX_BYTES)
    return np.empty(0, np.int64)
