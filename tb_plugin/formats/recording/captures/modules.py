"""Captures of module memory: which a run has, and each opened once.

A `RankWindow` is one tracked call on one rank, recorded by us or reported by another
tool; opening it gives a `RankModules`, which a bounded cache keeps by the file's identity
and the capture's place in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from memboard.collector.format.errors import FormatError
from memboard.collector.format.sizes import capitalized
from memboard.tb_plugin.analysis.modules.capture import NEEDED, LogError, module_log
from memboard.tb_plugin.formats.recording.captures.meta import Meta
from memboard.tb_plugin.formats.recording.captures.reading import (
    captures_of,
    read_capture,
)
from memboard.tb_plugin.formats.recording.tail import named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

    from memboard.collector.format.records import CaptureEntry
    from memboard.tb_plugin.analysis.modules.log import ModuleMemory
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.formats.memprofiler.imports import Imports, Window
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.run import Run

Source: TypeAlias = Literal["recorded", "simulated", "imported"]

KIND: Final = "modules"

_MAX_REASONS: Final = 20


class WindowKey(NamedTuple):
    """One tracked call, on all ranks."""

    attempt: int
    function: str
    phase: str
    iteration: int

    @property
    def id(self) -> str:
        """For addresses; the first attempt's are shorter."""
        again = "" if self.attempt == 1 else f"@{self.attempt}"
        return f"{self.function}/{self.phase}/{self.iteration}{again}"


@dataclass(frozen=True, slots=True)
class CaptureFacts:
    """What a capture says of itself besides its tables."""

    source: Source
    backend: str = ""
    world: str = ""
    root: str = ""
    estimate: str = ""
    incomplete: bool = False
    inputs: str = ""
    num_optimizers: int | None = None
    rounding_bytes: int | None = None
    torch_version: str = ""
    num_events: int | None = None
    num_events_dropped: int = 0
    reasons: tuple[str, ...] = ()
    num_repaired: int = 0
    """Values in the file that mean nothing."""
    num_negative: int = 0
    """Moments at which more memory was freed than had been allocated."""

    @property
    def has_held(self) -> bool:
        """Whether it says which module holds what: reports have the rank's totals."""
        return self.num_events is not None


@dataclass(frozen=True, slots=True, eq=False)
class RankModules:
    """One rank's memory by module through one window."""

    memory: ModuleMemory
    facts: CaptureFacts


class ModulesError(Exception):
    """A capture that cannot be shown; nothing else is lost by it."""

    def __init__(self, sentence: str, where: str, remedy: str) -> None:
        super().__init__(sentence)
        self.what = sentence
        self.where = where
        self.remedy = remedy


@dataclass(frozen=True, slots=True, eq=False)
class RankWindow:
    """One tracked call on one rank."""

    rank: int
    key: WindowKey
    step: int | None
    time_ns: int
    path: str
    """Of the file, as people know it."""
    identity: Hashable
    open: Callable[[], RankModules]


Windows: TypeAlias = "Mapping[WindowKey, Mapping[int, RankWindow]]"


class ModulesReader:
    """The windows of runs, opened once and kept while there is room."""

    def __init__(self, cache: Cache) -> None:
        self.cache: Final = cache
        self._listed: WeakKeyDictionary[Run, tuple[int, Windows]] = WeakKeyDictionary()
        """By run: its version, and what was listed then."""

    def windows(self, run: Run, budget: Budget) -> Windows:
        """By call and rank, in order of time; of equal ones the newest.

        Where the budget does not reach all captures, the newest of the files it reaches;
        the next call goes on from there.
        """
        listed = self._listed.get(run)
        if listed is not None and listed[0] == run.version:
            return listed[1]
        windows = self._list(run, budget)
        if not budget.exhausted:
            self._listed[run] = run.version, windows
        return windows

    def has_listed(self, run: Run) -> bool:
        """Whether `windows` has reached all captures of all files."""
        listed = self._listed.get(run)
        return not run.unfinished and listed is not None and listed[0] == run.version

    def _list(self, run: Run, budget: Budget) -> Windows:
        windows: dict[WindowKey, dict[int, RankWindow]] = {}
        for attempt in run.attempts:
            for file in attempt.files.values():
                for window in _of_file(file, attempt.index, budget):
                    windows.setdefault(window.key, {})[window.rank] = window
        if run.imported is not None:
            for window in _imported(run.imported):
                windows.setdefault(window.key, {})[window.rank] = window
        return dict(sorted(windows.items(), key=lambda item: _newest_ns(item[1])))

    def open(self, window: RankWindow, *, keep: bool = True) -> RankModules:
        """A window's memory; kept unless it is one of many that are read in turn.

        Raises:
            ModulesError: it cannot be read.
        """
        cached = self.cache.get(window.identity)
        if cached is None:
            cached = window.open()
            if keep:
                self.cache.put(window.identity, cached, cached.memory.num_bytes)
        opened: RankModules = cached
        return opened


def _of_file(file: RankFile, attempt: int, budget: Budget) -> Iterator[RankWindow]:
    for entry in captures_of(file, budget):
        if entry.kind != KIND:
            continue
        yield RankWindow(
            rank=file.rank,
            key=WindowKey(attempt, entry.function, entry.phase, entry.iteration),
            step=entry.step,
            time_ns=entry.time_ns,
            path=file.shown_path,
            identity=(file.identity, "modules", entry.offset),
            open=partial(_recorded, file, entry),
        )


def _imported(imports: Imports) -> Iterator[RankWindow]:
    for window, files in imports.windows.items():
        for rank, file in files.items():
            yield RankWindow(
                rank=rank,
                key=WindowKey(1, window.function, window.phase, window.iteration),
                step=None,
                time_ns=file.key.mtime_ns,
                path=file.shown_path,
                identity=(file, "modules", window),  # a file may hold many
                open=partial(_reported, imports, window, rank),
            )


def _recorded(file: RankFile, entry: CaptureEntry) -> RankModules:
    """One capture of a rank's file."""
    try:
        capture = read_capture(file, entry, NEEDED)
        log = module_log(capture.tables, capture.meta.get("devices"))
    except (FormatError, LogError, OSError) as error:
        reason = str(error)
        if isinstance(error, LogError):
            reason = f"{named(entry)} cannot be shown: {reason}"
        raise ModulesError(
            f"{capitalized(reason)}.",
            f"byte {entry.offset} of the file",
            "The disk was full or the process died while it was written. All other"
            " windows are shown.",
        ) from error
    meta = Meta(capture.meta)
    facts = CaptureFacts(
        source="simulated" if file.header.simulated else "recorded",
        backend=meta.text("backend"),
        world=meta.text("world"),
        root=meta.text("root"),
        estimate=meta.text("estimate"),
        incomplete=meta.flag("incomplete") is True,
        inputs=meta.text("inputs"),
        num_optimizers=meta.count("optimizers"),
        rounding_bytes=meta.count("rounding_bytes"),
        torch_version=meta.text("torch"),
        num_events=len(log.delta_bytes),
        num_events_dropped=meta.count("num_events_dropped") or 0,
        reasons=tuple(meta.texts("reasons", _MAX_REASONS)),
        num_repaired=log.num_repaired,
        num_negative=log.num_negative,
    )
    return RankModules(log, facts)


def _reported(imports: Imports, window: Window, rank: int) -> RankModules:
    """One report of another tool."""
    report = imports.report(window, rank)
    if report is None:
        raise ModulesError(
            "The report of this rank cannot be read.",
            "",
            "The problems of the run say why. All other ranks are shown.",
        )
    facts = CaptureFacts(source="imported", reasons=report.reasons)
    return RankModules(report.states, facts)


def _newest_ns(ranks: Mapping[int, RankWindow]) -> int:
    return max(window.time_ns for window in ranks.values())
