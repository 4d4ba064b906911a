"""The contents of one of MemProfiler's files, and its problems.

Nothing here raises for what a file holds: what is wrong with it becomes a problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from memboard.collector.format.sizes import counted
from memboard.tb_plugin import storage
from memboard.tb_plugin.analysis.series.functions import (
    CONTEXTS,
    Snap,
    SnapTable,
    table_of,
)
from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.formats.memprofiler.dumps import read_pickle, read_yaml
from memboard.tb_plugin.formats.memprofiler.modules_yaml import find_calls, read_call
from memboard.tb_plugin.formats.memprofiler.names import FunctionKey, split_phase
from memboard.tb_plugin.formats.memprofiler.report import read_report
from memboard.tb_plugin.formats.memprofiler.stats import UnreadableError, our_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from memboard.tb_plugin.formats.memprofiler.listing import FoundDump
    from memboard.tb_plugin.formats.memprofiler.modules_yaml import Call
    from memboard.tb_plugin.formats.memprofiler.names import SnapKey
    from memboard.tb_plugin.formats.memprofiler.rows import Report
    from memboard.tb_plugin.formats.memprofiler.stats import Stats


class Window(NamedTuple):
    """One call whose modules' memory was reported."""

    function: str
    phase: str
    iteration: int


class FileContents(NamedTuple):
    """What reading a file gave; no value where nothing of it can be used."""

    value: Any
    problems: tuple[Problem, ...]


def read_file(
    file: FoundDump,
    most_bytes: int,
    read: Callable[[FoundDump, bytes], tuple[Any, list[Problem]]],
) -> FileContents:
    """What `read` makes of the bytes of a file, or why they cannot be read."""
    try:
        value, problems = read(file, _bytes_of(file, most_bytes))
    except UnreadableError as error:
        return FileContents(None, (_problem(file, error, severity="error"),))
    except OSError as error:
        sentence = f"The file cannot be read: {error.strerror or error}."
        remedy = getattr(error, "remedy", "Check its permissions and the disk.")
        fault = UnreadableError(sentence, "", str(remedy))
        return FileContents(None, (_problem(file, fault, severity="error"),))
    return FileContents(value, tuple(problems))


def _bytes_of(file: FoundDump, most: int) -> bytes:
    with storage.at(file.path).ranges(file.path) as opened:
        size = opened.status().st_size
        data = opened.pread(most + 1, 0)
    if len(data) > most:
        raise UnreadableError(
            f"The file is too large: {counted(size, 'byte')} of at most {most:,}.",
            "",
            "Remove what does not belong to it, or collect fewer iterations.",
        )
    return data


def snaps_in(
    file: FoundDump, data: bytes
) -> tuple[dict[FunctionKey, SnapTable], list[Problem]]:
    """Snaps by function and phase, in order of their iterations."""
    stats = read_yaml(data) if file.said.kind == "yaml" else read_pickle(data)
    by_function: dict[FunctionKey, list[Snap]] = {}
    for key in sorted(stats.snaps, key=_order):
        if key.rank != file.said.rank:
            stats.left_out.add(f"{key.text} is of another rank than the file's name")
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


def _stats_problems(file: FoundDump, stats: Stats) -> Iterator[Problem]:
    salvaged = counted(len(stats.snaps), "snap") if stats.snaps else "nothing"
    if stats.error is not None:
        yield _problem(file, stats.error, severity="error", salvaged=salvaged)
    if stats.left_out.num:
        yield _problem(file, stats.left_out.error(), salvaged=salvaged)
    if not stats.snaps and stats.error is None and not stats.left_out.num:
        yield _problem(
            file,
            UnreadableError(
                "The file holds no snaps.",
                "",
                "MemProfiler collected nothing: look at its schedule and functions.",
            ),
        )


def report_in(file: FoundDump, data: bytes) -> tuple[Report, list[Problem]]:
    """A report of one call."""
    report = read_report(data)
    sentence = "The report has no end: it was cut off while it was written."
    return report, _report_problems(file, report, sentence, "")


def call_in(call: Call, file: FoundDump, data: bytes) -> tuple[Report, list[Problem]]:
    """One call of a file of many."""
    report = read_call(data, call)
    sentence = f"The call {call.function.function} {call.iteration} breaks off."
    return report, _report_problems(file, report, sentence, f"line {call.line}")


def _report_problems(
    file: FoundDump, report: Report, cut: str, where: str
) -> list[Problem]:
    """`cut`: what is said of one that breaks off."""
    salvaged = counted(len(report.states.state), "module state")
    errors = []
    if report.is_cut:
        errors.append(UnreadableError(cut, where, "Everything before that is shown."))
    if report.left_out.num:
        errors.append(report.left_out.error())
    return [_problem(file, error, salvaged=salvaged) for error in errors]


def calls_in(file: FoundDump, data: bytes) -> tuple[dict[Window, Call], list[Problem]]:
    """Where the calls of a file of many stand in it."""
    parsed = find_calls(data, file.said.rank)
    calls = {Window(*call.function, call.iteration): call for call in parsed.calls}
    problems = []
    if parsed.left_out.num:
        salvaged = counted(len(calls), "call")
        problems.append(_problem(file, parsed.left_out.error(), salvaged=salvaged))
    return calls, problems


def _problem(
    file: FoundDump,
    error: UnreadableError,
    *,
    severity: Literal["warning", "error"] = "warning",
    salvaged: str = "nothing",
) -> Problem:
    return Problem(
        severity,
        file.shown_path,
        error.what,
        remedy=error.remedy,
        where=error.where,
        salvaged=salvaged,
        rank=file.rank,
    )


def size_of_tables(tables: Mapping[FunctionKey, SnapTable]) -> int:
    """Bytes they hold, for a cache's accounts."""
    return sum(
        8 * len(t) * (5 + len(t.stats)) + 200 * len(t.stats) for t in tables.values()
    )


def size_of_report(report: Report) -> int:
    """Bytes it holds, for a cache's accounts."""
    states = report.states
    names = sum(len(fqn) + 150 for fqn in states.tree.fqn)
    return states.bytes.nbytes + 5 * states.total_bytes.nbytes + names
