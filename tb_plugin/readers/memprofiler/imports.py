"""What MemProfiler's files of one directory hold: opened when asked for, then kept.

Not thread-safe: its run's lock is held by whoever asks. Nothing here raises for what a
file holds: what is wrong with it becomes a problem, and the others are read.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tb_plugin import api
from tb_plugin.analysis.functions import CONTEXTS, Snap, SnapTable, table_of
from tb_plugin.cache import Cache
from tb_plugin.readers.memprofiler.errors import UnreadableError
from tb_plugin.readers.memprofiler.names import FunctionKey, split_phase
from tb_plugin.readers.memprofiler.report import MAX_REPORT_BYTES, read_report
from tb_plugin.readers.memprofiler.stat_names import our_name
from tb_plugin.readers.memprofiler.stats import MAX_STATS_BYTES
from tb_plugin.readers.memprofiler.stats_pickle import read_pickle
from tb_plugin.readers.memprofiler.stats_yaml import read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tb_plugin.budget import Budget
    from tb_plugin.readers.memprofiler.listing import ImportFile
    from tb_plugin.readers.memprofiler.names import SnapKey
    from tb_plugin.readers.memprofiler.report import Report
    from tb_plugin.readers.memprofiler.stats import Stats

_CACHE_BYTES: Final = 48 << 20
_cache: Final = Cache(_CACHE_BYTES)
"""Of all runs together."""


class Window(NamedTuple):
    """One call whose modules' memory was reported."""

    function: str
    phase: str
    iteration: int


class Imports:
    """The files of one directory by what they hold."""

    def __init__(self) -> None:
        self.files: tuple[ImportFile, ...] = ()
        self._stats: dict[int, list[ImportFile]] = {}
        """By rank; YAML before pickle: where the first is whole, the other is a copy."""
        self._reports: dict[Window, dict[int, ImportFile]] = {}
        self._histories: dict[int, list[ImportFile]] = {}
        self._problems: dict[ImportFile, tuple[api.Problem, ...]] = {}
        """Of the files read so far."""

    def update(self, files: tuple[ImportFile, ...]) -> bool:
        """Take a new listing; whether it differs from the last."""
        if files == self.files:
            return False
        self.files = files
        self._stats, self._reports, self._histories = {}, {}, {}
        for file in files:
            name = file.name
            if name.kind == "report":
                function, phase = split_phase(name.function)
                window = Window(function, phase, name.iteration)
                self._reports.setdefault(window, {})[name.rank] = file
            elif name.kind == "history":
                self._histories.setdefault(name.rank, []).append(file)
            else:
                self._stats.setdefault(name.rank, []).append(file)
        for of_rank in self._stats.values():
            of_rank.sort(key=lambda file: file.name.kind, reverse=True)
        kept = set(files)
        self._problems = {f: p for f, p in self._problems.items() if f in kept}
        return True

    @property
    def ranks(self) -> list[int]:
        """Ranks that any file is of, ascending."""
        return sorted({file.name.rank for file in self.files})

    @property
    def stats_ranks(self) -> list[int]:
        """Ranks that have a file of statistics, ascending."""
        return sorted(self._stats)

    @property
    def newest_ns(self) -> int:
        """When the newest file was written."""
        return max((file.mtime_ns for file in self.files), default=0)

    @property
    def oldest_ns(self) -> int:
        """When the oldest file was written."""
        return min((file.mtime_ns for file in self.files), default=0)

    @property
    def problems(self) -> Iterator[api.Problem]:
        """What is wrong with the files read so far."""
        for problems in self._problems.values():
            yield from problems

    @property
    def num_problems(self) -> int:
        """How many `problems` there are."""
        return sum(map(len, self._problems.values()))

    @property
    def windows(self) -> Mapping[Window, Mapping[int, ImportFile]]:
        """Reports by call and rank, as the files' names say."""
        return self._reports

    def histories(self, rank: int) -> Sequence[ImportFile]:
        """A rank's captures of the allocator: named, not opened."""
        return self._histories.get(rank, ())

    def snaps(self, rank: int) -> Mapping[FunctionKey, SnapTable]:
        """A rank's snaps by function and phase, in order of their iterations."""
        for file in self._stats.get(rank, ()):
            tables = self._once(file, MAX_STATS_BYTES, _snaps, _sizes_of_tables)
            if tables:
                return dict(tables)
        return {}

    def report(self, window: Window, rank: int) -> Report | None:
        """The memory by module of one call on one rank; None where it is not readable."""
        file = self._reports.get(window, {}).get(rank)
        if file is None:
            return None
        found: Report | None = self._once(
            file, MAX_REPORT_BYTES, _report, _size_of_report
        )
        return found

    def check(self, budget: Budget) -> bool:
        """Read what nobody has asked for yet, so that damage is named; True when done."""
        for file in self.files:
            if file in self._problems or file.name.kind == "history":
                continue
            if not budget.allows():
                return False
            if file.name.kind == "report":
                self._once(file, MAX_REPORT_BYTES, _report, _size_of_report)
            else:
                self._once(file, MAX_STATS_BYTES, _snaps, _sizes_of_tables)
        return True

    def _once(
        self,
        file: ImportFile,
        most_bytes: int,
        read: Callable[[ImportFile, bytes], tuple[Any, list[api.Problem]]],
        size_of: Callable[[Any], int],
    ) -> Any:
        """What `read` makes of a file's bytes: kept while there is room for it."""
        found = _cache.get(file)
        if found is None:
            found = _read(file, most_bytes, read)
            _cache.put(file, found, 0 if found.value is None else size_of(found.value))
        self._problems[file] = found.problems
        return found.value


class _Found(NamedTuple):
    """What reading a file gave; no value where nothing of it can be used."""

    value: Any
    problems: tuple[api.Problem, ...]


def _read(
    file: ImportFile,
    most_bytes: int,
    read: Callable[[ImportFile, bytes], tuple[Any, list[api.Problem]]],
) -> _Found:
    try:
        value, problems = read(file, _bytes_of(file, most_bytes))
    except UnreadableError as error:
        return _Found(None, (_problem(file, error, severity="error"),))
    except OSError as error:
        what = f"The file cannot be read: {error.strerror or error}."
        fault = UnreadableError(what, "", "Check its permissions and the disk.")
        return _Found(None, (_problem(file, fault, severity="error"),))
    return _Found(value, tuple(problems))


def _bytes_of(file: ImportFile, most: int) -> bytes:
    # It was a plain file when it was listed; a pipe in its place must not hold us up.
    descriptor = os.open(file.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        data = opened.read(most + 1) or b""
    if len(data) > most:
        raise UnreadableError(
            f"The file is too large: {size:,} bytes of at most {most:,}.",
            "",
            "Remove what does not belong to it, or collect fewer iterations.",
        )
    return data


def _snaps(
    file: ImportFile, data: bytes
) -> tuple[dict[FunctionKey, SnapTable], list[api.Problem]]:
    stats = read_yaml(data) if file.name.kind == "yaml" else read_pickle(data)
    by_function: dict[FunctionKey, list[Snap]] = {}
    for key in sorted(stats.snaps, key=_order):
        if key.rank != file.name.rank:
            stats.leave_out(f"{key.text} is of another rank than the file's name")
            continue
        function, phase = split_phase(key.function)
        snap = Snap(
            rank=key.rank,
            function=function,
            phase=phase,
            iteration=key.iteration,
            context=key.context,
            time_ns=None,
            values={our_name(name): v for name, v in stats.snaps[key].items()},
        )
        by_function.setdefault(FunctionKey(function, phase), []).append(snap)
    tables = {key: table_of(snaps) for key, snaps in by_function.items()}
    return tables, list(_stats_problems(file, stats))


def _order(key: SnapKey) -> tuple[str, int, int]:
    return key.function, key.iteration, CONTEXTS.index(key.context)


def _stats_problems(file: ImportFile, stats: Stats) -> Iterator[api.Problem]:
    salvaged = f"{len(stats.snaps):,} snaps" if stats.snaps else "nothing"
    if stats.error is not None:
        yield _problem(file, stats.error, severity="error", salvaged=salvaged)
    if stats.num_left_out:
        yield _problem(file, _left_out(stats), salvaged=salvaged)
    if not stats.snaps and stats.error is None and not stats.num_left_out:
        yield _problem(
            file,
            UnreadableError(
                "The file holds no snaps.",
                "",
                "MemProfiler collected nothing: look at its schedule and functions.",
            ),
        )


def _report(file: ImportFile, data: bytes) -> tuple[Report, list[api.Problem]]:
    report = read_report(data)
    salvaged = f"{len(report.states.state):,} states of modules"
    problems = []
    if report.is_cut:
        cut = UnreadableError(
            "The report has no end: it was cut off while it was written.",
            "",
            "What stands before is shown.",
        )
        problems.append(_problem(file, cut, salvaged=salvaged))
    if report.num_left_out:
        problems.append(_problem(file, _left_out(report), salvaged=salvaged))
    return report, problems


def _left_out(found: Stats | Report) -> UnreadableError:
    more = found.num_left_out - len(found.left_out)
    texts = [*found.left_out, *([f"{more:,} more"] if more else [])]
    return UnreadableError(
        f"Not all of the file was used: {'; '.join(texts)}.",
        "",
        "Only numbers of memory are read; nothing else in the file is missing.",
    )


def _problem(
    file: ImportFile,
    error: UnreadableError,
    *,
    severity: str = "warning",
    salvaged: str = "nothing",
) -> api.Problem:
    return api.Problem(
        severity="error" if severity == "error" else "warning",
        path=file.shown_path,
        what=error.what,
        where=error.where,
        salvaged=salvaged,
        remedy=error.remedy,
        rank=file.name.rank,
    )


def _sizes_of_tables(tables: Mapping[FunctionKey, SnapTable]) -> int:
    return sum(
        8 * len(t) * (5 + len(t.stats)) + 200 * len(t.stats) for t in tables.values()
    )


def _size_of_report(report: Report) -> int:
    states = report.states
    names = sum(len(fqn) + 150 for fqn in states.tree.fqn)
    return states.bytes.nbytes + 5 * states.total_bytes.nbytes + names
