"""What a run's timeline is made of, found by id and opened on threads of its own.

A source is one profiler's file, or the spans of one rank's recordings. Opening never
holds a run's lock and no request waits for it longer than it wants to. Where the content
behind an id has grown, the older one is shown until the newer is there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from tb_plugin import api
from tb_plugin.analysis.spans.events import events_of
from tb_plugin.analysis.spans.tracks import SpanFile, span_trace
from tb_plugin.analysis.time.device_counters import with_device_use
from tb_plugin.analysis.trace.steps import Steps, steps_of
from tb_plugin.analysis.trace.tiles import TraceTiles
from tb_plugin.analysis.trace_memory.totals import with_memory
from tb_plugin.formats.recording.captures import capture_of, captures_of
from tb_plugin.server.errors import NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from collector.format.records import Capture, CaptureEntry
    from tb_plugin.analysis.spans.events import SpanEvent
    from tb_plugin.analysis.trace.trace import Trace
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.run import Run

    Note: TypeAlias = Callable[[float, str], None]

_logger = logging.getLogger("memboard")

MAX_OPEN: Final = 64
"""Sources that are kept open; those used last stay."""

MAX_BYTES: Final = 1 << 30
"""Of the columns of all that are open. What is derived of them may be as much again."""

_MIN_OPEN: Final = 16
"""These stay whatever their size: one picture may be of all of them."""

MAX_SPANS: Final = 2_000_000
"""Of one rank that are shown: the newest."""

_SPANS_PER_CAPTURE: Final = 4_096
_AT_ONCE: Final = 2
_RETRY_S: Final = 30.0


class Load(Protocol):
    """Makes the trace of a source; raises whatever is wrong with it."""

    def __call__(self, note: Note) -> Trace:
        """`note(progress, doing)` is told how far it is."""


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source that can be opened."""

    id: str
    kind: api.TraceSourceKind
    name: str
    rank: int | None
    cycle: int | None
    num_bytes: int
    key: tuple[object, ...]
    """Which content it has."""
    load: Load
    path: str | None = None
    """Of the file, where it is one by itself."""
    shown_path: str = ""
    time_ns: int = 0
    """About when it was recorded; 0: not known."""
    is_recorded: bool = False
    """Whether one of our recordings knows the file; then it is shown before others."""
    read: Callable[[Note], object] | None = None
    """Waits until another process has read the file: what `load` would wait for."""


class OpenSource:
    """A source that is open, with what is derived from it when it is first needed."""

    def __init__(self, found: FoundSource, trace: Trace) -> None:
        self.found = found
        self.trace = trace
        self.tiles = TraceTiles(trace)
        self._searched: tuple[str, npt.NDArray[Any]] | None = None

    @cached_property
    def steps(self) -> Steps:
        """Training steps that it names."""
        return steps_of(self.trace)

    def matching(self, text: str) -> npt.NDArray[Any]:
        """By string: whether it holds a text; the last text is remembered."""
        from tb_plugin.analysis.trace.totals import matching

        known = self._searched
        if known is None or known[0] != text:
            known = self._searched = (text, matching(self.trace.strings, text))
        return known[1]


class Opening:
    """A source on its way, or there, or failed."""

    def __init__(
        self, found: FoundSource, failed_before: api.Problem | None = None
    ) -> None:
        """`failed_before`: why it did not open when it was tried last."""
        self.found = found
        self.failed_before = failed_before
        self.progress = 0.0
        self.doing = "waiting"
        self.source: OpenSource | None = None
        self.problem: api.Problem | None = None
        self.ended_at = 0.0
        self._ended = threading.Event()

    @property
    def state(self) -> api.TraceState:
        """How far it is."""
        if not self._ended.is_set():
            return "opening"
        return "failed" if self.source is None else "ready"

    @property
    def failure(self) -> api.Problem | None:
        """Why it does not open, also while that is tried once more."""
        return self.problem if self._ended.is_set() else self.failed_before

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most so long; whether it came."""
        return self._ended.wait(seconds)

    def note(self, progress: float, doing: str) -> None:
        """How far it is."""
        self.progress, self.doing = max(self.progress, min(progress, 1.0)), doing

    def end(self, source: OpenSource | None, problem: api.Problem | None) -> None:
        """It is over."""
        self.source, self.problem = source, problem
        self.progress, self.doing = 1.0, ""
        self.ended_at = time.monotonic()
        self._ended.set()


class TraceSources:
    """All sources that are open, or being opened. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[object, ...], Opening] = OrderedDict()
        self._ready: dict[tuple[str, str], Opening] = {}
        """By run and id: the one that was ready last."""
        self._turn = threading.Semaphore(_AT_ONCE)
        self.num_ended = 0
        """How many were opened so far, or could not be."""

    def open(self, run_id: str, found: FoundSource) -> Opening:
        """A source, or how far it is; does not wait."""
        key = (run_id, found.id, *found.key)
        with self._lock:
            known = self._known.get(key)
            if known is not None and not _may_be_tried_again(known):
                self._known.move_to_end(key)
                return known
            before = None if known is None else known.problem
            opening = self._known[key] = Opening(found, before)
            self._let_go()
        threading.Thread(target=self._open, args=(run_id, opening), daemon=True).start()
        return opening

    def known(
        self, run_id: str, source_id: str, key: tuple[object, ...]
    ) -> Opening | None:
        """How far a source of some content is; None where nobody asked for it."""
        with self._lock:
            return self._known.get((run_id, source_id, *key))

    def ready(self, run_id: str, source_id: str) -> Opening | None:
        """The newest of that id that is open."""
        with self._lock:
            return self._ready.get((run_id, source_id))

    def _let_go(self) -> None:
        """Close what was used longest ago, if there is too much; hold the lock."""
        opened = [one.source for one in self._known.values() if one.source is not None]
        num_bytes = sum(source.trace.num_bytes for source in opened)
        while len(self._known) > MAX_OPEN or (
            len(self._known) > _MIN_OPEN and num_bytes > MAX_BYTES
        ):
            old = next(iter(self._known))
            gone = self._known.pop(old)
            num_bytes -= 0 if gone.source is None else gone.source.trace.num_bytes
            name = (str(old[0]), gone.found.id)
            if self._ready.get(name) is gone:
                del self._ready[name]

    def _open(self, run_id: str, opening: Opening) -> None:
        found = opening.found
        source, problem = None, None
        try:
            # Takes nobody's turn here; held, so that `load` finds it at once.
            held = None if found.read is None else found.read(opening.note)
            with self._turn:
                trace = with_memory(with_device_use(found.load(opening.note)))
                del held
                source = OpenSource(found, trace)
        except Exception as error:  # noqa: BLE001 - whatever it is, others are shown
            problem = _problem_of(found, error)
        with self._lock:
            if source is not None:
                # It may have been let go while it was opened.
                key = (run_id, found.id, *found.key)
                if self._known.setdefault(key, opening) is opening:
                    self._ready[run_id, found.id] = opening
            self.num_ended += 1
            opening.end(source, problem)
            self._let_go()


def _may_be_tried_again(known: Opening) -> bool:
    return known.state == "failed" and time.monotonic() - known.ended_at > _RETRY_S


def _problem_of(found: FoundSource, error: Exception) -> api.Problem:
    problem = getattr(error, "problem", None)
    if isinstance(problem, api.Problem):
        return problem
    what = str(getattr(error, "what", error)) or type(error).__name__
    if not isinstance(error, (OSError, ValueError)) and not hasattr(error, "what"):
        _logger.error("MemBoard failed to open %s", found.name, exc_info=error)
        what = f"MemBoard failed to open it: {type(error).__name__}"
    remedy = str(getattr(error, "remedy", "")) or "The other traces are shown."
    return api.Problem(
        severity="error",
        path=found.shown_path or found.name,
        what=what[:1000],
        where=str(getattr(error, "where", ""))[:500],
        salvaged="",
        remedy=remedy[:1000],
        rank=found.rank,
    )


def span_sources(run: Run, budget: Budget) -> Iterator[FoundSource]:
    """The spans of each rank; hold the run's lock."""
    for rank in run.ranks:
        files = [file for _, file in run.rank_files(rank)]
        captures = [
            (file, entry)
            for file in files
            for entry in captures_of(file, budget)
            if entry.kind == "spans"
        ]
        if not captures:
            continue
        captures = captures[-(MAX_SPANS // _SPANS_PER_CAPTURE) :]
        file, last = captures[-1]
        events = tuple(event for one in files for event in events_of(one.notes()))
        yield FoundSource(
            id=f"spans-{rank}",
            kind="spans",
            name="spans",
            rank=rank,
            cycle=None,
            num_bytes=sum(entry.num_bytes for _, entry in captures),
            key=(*file.identity, last.offset, len(captures), len(events)),
            load=_SpanLoad(_span_file(file), captures, events),
            shown_path=file.shown_path,
            time_ns=last.time_ns,
        )


def _span_file(file: RankFile) -> SpanFile:
    header = file.header
    pid = getattr(header, "pid", 0) or 0
    return SpanFile(file.rank, pid, f"spans of rank {file.rank}")


class _SpanLoad:
    """Decodes captures of spans and puts them together."""

    def __init__(
        self,
        of: SpanFile,
        captures: Sequence[tuple[RankFile, CaptureEntry]],
        events: Sequence[SpanEvent],
    ) -> None:
        self._of, self._captures, self._events = of, captures, events

    def __call__(self, note: Note) -> Trace:
        trace = span_trace(self._decoded(note), self._of, self._events)
        if trace is None:
            raise NotReadyError(
                "The recording's spans hold nothing that can be read.",
                f"rank {self._of.rank}",
                "Look at the problems of the run.",
            )
        return trace

    def _decoded(self, note: Note) -> Iterator[Capture]:
        for index, (file, entry) in enumerate(self._captures):
            note(index / len(self._captures), "reading spans")
            try:
                yield capture_of(file, entry)
            except (OSError, ValueError):
                _logger.info("spans at byte %d cannot be read", entry.offset)
