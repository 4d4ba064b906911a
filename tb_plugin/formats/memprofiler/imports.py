"""The contents of MemProfiler's files in one directory: read when a page needs it, then cached.

Not thread-safe: its run's lock is held by whoever asks. Nothing here raises for what a
file holds: what is wrong with it becomes a problem, and the others are read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.formats.file_listing import FoundFiles
from memboard.tb_plugin.formats.memprofiler.contents import (
    Window,
    call_in,
    calls_in,
    read_file,
    report_in,
    size_of_report,
    size_of_tables,
    snaps_in,
)
from memboard.tb_plugin.formats.memprofiler.modules_yaml import MAX_MODULES_BYTES
from memboard.tb_plugin.formats.memprofiler.names import split_phase
from memboard.tb_plugin.formats.memprofiler.report import MAX_REPORT_BYTES
from memboard.tb_plugin.formats.memprofiler.stats import MAX_STATS_BYTES
from memboard.tb_plugin.formats.snapshots.files.listing import (
    FoundSnapshots,
    snapshot_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from memboard.tb_plugin.analysis.series.functions import SnapTable
    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.memprofiler.listing import FoundDump
    from memboard.tb_plugin.formats.memprofiler.modules_yaml import Call
    from memboard.tb_plugin.formats.memprofiler.names import FunctionKey
    from memboard.tb_plugin.formats.memprofiler.rows import Report

__all__ = ("Imports", "Window")


class _Part(NamedTuple):
    """What is read at once: a file, or of a file of many calls one."""

    file: FoundDump
    window: Window | None = None


class Imports:
    """The files of one directory by what they hold."""

    def __init__(self) -> None:
        self.found: FoundFiles[FoundDump] = FoundFiles()
        self._stats: dict[int, list[FoundDump]] = {}
        """By rank; YAML before pickle: where the first is whole, the other is a copy."""
        self._reports: dict[Window, dict[int, FoundDump]] = {}
        self._modules: dict[int, FoundDump] = {}
        """By rank: many calls in one file."""
        self._calls: dict[FoundDump, dict[Window, Call]] = {}
        """Of such files as were looked into."""
        self._windows: dict[Window, dict[int, FoundDump]] | None = None
        self.snapshots = FoundSnapshots()
        """The captures of the allocator of all ranks: named, not opened."""
        self._cache = Cache()
        self._problems: dict[_Part, tuple[Problem, ...]] = {}
        """Of what was read so far."""

    def update(self, listing: FoundFiles[FoundDump]) -> bool:
        """Take a new listing; whether it differs from the last."""
        if listing is self.found:
            return False
        self.found = listing
        self._stats, self._reports, self._modules = {}, {}, {}
        self._windows = None
        for file in listing.files:
            file_name = file.said
            if file_name.kind == "report":
                function, phase = split_phase(file_name.function)
                window = Window(function, phase, file_name.iteration)
                self._reports.setdefault(window, {})[file_name.rank] = file
            elif file_name.kind == "modules":
                self._modules[file_name.rank] = file
            elif file_name.kind != "history":
                self._stats.setdefault(file_name.rank, []).append(file)
        self.snapshots = FoundSnapshots(
            snapshot_at(file) for file in listing.files if file.said.kind == "history"
        )
        for of_rank in self._stats.values():
            of_rank.sort(key=lambda file: file.said.kind, reverse=True)
        kept = set(listing.files)
        self._problems = {p: w for p, w in self._problems.items() if p.file in kept}
        self._calls = {f: c for f, c in self._calls.items() if f in kept}
        return True

    @property
    def problems(self) -> Iterator[Problem]:
        """What is wrong with the files read so far."""
        for problems in self._problems.values():
            yield from problems

    @property
    def num_problems(self) -> int:
        """How many `problems` there are."""
        return sum(map(len, self._problems.values()))

    @property
    def windows(self) -> Mapping[Window, Mapping[int, FoundDump]]:
        """Calls whose modules' memory was reported, and by rank the file that has it.

        The file of many calls, which is exact and of all depths, and whose calls the first
        question finds; where it lacks one, the report of that call, as its name says.
        """
        if self._windows is None:
            windows: dict[Window, dict[int, FoundDump]] = {}
            for rank, file in self._modules.items():
                for window in self._calls_of(file):
                    windows.setdefault(window, {})[rank] = file
            for window, ranks in self._reports.items():
                for rank, file in ranks.items():
                    windows.setdefault(window, {}).setdefault(rank, file)
            self._windows = windows
        return self._windows

    def snaps(self, rank: int) -> Mapping[FunctionKey, SnapTable]:
        """A rank's snaps by function and phase, in order of their iterations."""
        for file in self._stats.get(rank, ()):
            tables = self._once(_Part(file), MAX_STATS_BYTES, snaps_in, size_of_tables)
            if tables:
                return dict(tables)
        return {}

    def report(self, window: Window, rank: int) -> Report | None:
        """The memory by module of one call on one rank; None where it is not readable."""
        report: Report | None = None
        if rank in self._modules:
            report = self._of_many(self._modules[rank], window)
        file = self._reports.get(window, {}).get(rank)
        if report is None and file is not None:
            report = self._once(
                _Part(file), MAX_REPORT_BYTES, report_in, size_of_report
            )
        return report

    def _of_many(self, file: FoundDump, window: Window) -> Report | None:
        call = self._calls_of(file).get(window)
        if call is None:
            return None
        report: Report | None = self._once(
            _Part(file, window),
            MAX_MODULES_BYTES,
            partial(call_in, call),
            size_of_report,
        )
        return report

    def _calls_of(self, file: FoundDump) -> Mapping[Window, Call]:
        """The calls of a file of many: kept, as there is no listing without them."""
        calls = self._calls.get(file)
        if calls is None:
            read = read_file(file, MAX_MODULES_BYTES, calls_in)
            self._problems[_Part(file)] = read.problems
            calls = self._calls[file] = read.value or {}
        return calls

    def check(self, budget: Budget) -> bool:
        """Read what no page has needed yet, so that damage is named; True when done."""
        for file in self.found.files:
            if file.said.kind == "history":
                continue
            for part in self._parts(file):
                if part in self._problems:
                    continue
                if not budget.allows():
                    return False
                if file.said.kind == "report":
                    self._once(part, MAX_REPORT_BYTES, report_in, size_of_report)
                elif part.window is not None:
                    self._of_many(file, part.window)
                elif file.said.kind != "modules":  # else it was looked into just now
                    self._once(part, MAX_STATS_BYTES, snaps_in, size_of_tables)
        return True

    def _parts(self, file: FoundDump) -> Iterator[_Part]:
        """What of a file is read by itself: of a file of many calls, each that it is for."""
        yield _Part(file)
        if file.said.kind == "modules":
            for window in self._calls_of(file):
                if self.windows[window][file.said.rank] is file:
                    yield _Part(file, window)

    def _once(
        self,
        part: _Part,
        most_bytes: int,
        read: Callable[[FoundDump, bytes], tuple[Any, list[Problem]]],
        size_of: Callable[[Any], int],
    ) -> Any:
        """What `read` makes of a file's bytes: kept while there is room for it."""
        contents = self._cache.get(part)
        if contents is None:
            contents = read_file(part.file, most_bytes, read)
            size = 0 if contents.value is None else size_of(contents.value)
            self._cache.put(part, contents, size)
        self._problems[part] = contents.problems
        return contents.value
