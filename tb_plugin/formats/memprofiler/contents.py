"""What one of MemProfiler's files holds, and what is wrong with it.

Nothing here raises for what a file holds: what is wrong with it becomes a problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tb_plugin import storage
from tb_plugin.analysis.series.functions import CONTEXTS, Snap, SnapTable, table_of
from tb_plugin.formats.found_files import problem
from tb_plugin.formats.memprofiler.dumps import read_pickle, read_yaml
from tb_plugin.formats.memprofiler.modules_yaml import find_calls, read_call
from tb_plugin.formats.memprofiler.names import FunctionKey, split_phase
from tb_plugin.formats.memprofiler.report import read_report
from tb_plugin.formats.memprofiler.stats import UnreadableError, our_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tb_plugin.api.base import Problem
    from tb_plugin.formats.memprofiler.listing import FoundDump
    from tb_plugin.formats.memprofiler.modules_yaml import Call, Calls
    from tb_plugin.formats.memprofiler.names import SnapKey
    from tb_plugin.formats.memprofiler.rows import Report
    from tb_plugin.formats.memprofiler.stats import Stats


class Window(NamedTuple):
    """One call whose modules' memory was reported."""

    function: str
    phase: str
    iteration: int


class Found(NamedTuple):
    """What reading a file gave; no value where nothing of it can be used."""

    value: Any
    problems: tuple[Problem, ...]


def read_file(
    file: FoundDump,
    most_bytes: int,
    read: Callable[[FoundDump, bytes], tuple[Any, list[Problem]]],
) -> Found:
    """What `read` makes of the bytes of a file, or why they cannot be read."""
    try:
        value, problems = read(file, _bytes_of(file, most_bytes))
    except UnreadableError as error:
        return Found(None, (_problem(file, error, severity="error"),))
    except OSError as error:
        what = f"The file cannot be read: {error.strerror or error}."
        remedy = getattr(error, "remedy", "Check its permissions and the disk.")
        fault = UnreadableError(what, "", str(remedy))
        return Found(None, (_problem(file, fault, severity="error"),))
    return Found(value, tuple(problems))


def _bytes_of(file: FoundDump, most: int) -> bytes:
    with storage.at(file.path).ranges(file.path) as opened:
        size = opened.status().st_size
        data = opened.pread(most + 1, 0)
    if len(data) > most:
        raise UnreadableError(
            f"The file is too large: {size:,} bytes of at most {most:,}.",
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


def _stats_problems(file: FoundDump, stats: Stats) -> Iterator[Problem]:
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


def report_in(file: FoundDump, data: bytes) -> tuple[Report, list[Problem]]:
    """A report of one call."""
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


def call_in(call: Call, file: FoundDump, data: bytes) -> tuple[Report, list[Problem]]:
    """One call of a file of many."""
    report = read_call(data, call)
    salvaged = f"{len(report.states.state):,} states of modules"
    place = f"line {call.line}"
    problems = []
    if report.is_cut:
        cut = UnreadableError(
            f"The call {call.function.function} {call.iteration} breaks off.",
            place,
            "What stands before is shown.",
        )
        problems.append(_problem(file, cut, salvaged=salvaged))
    if report.num_left_out:
        problems.append(_problem(file, _left_out(report), salvaged=salvaged))
    return report, problems


def calls_in(file: FoundDump, data: bytes) -> tuple[dict[Window, Call], list[Problem]]:
    """Where the calls of a file of many stand in it."""
    found = find_calls(data, file.said.rank)
    calls = {Window(*call.function, call.iteration): call for call in found.calls}
    problems = []
    if found.num_left_out:
        salvaged = f"{len(calls):,} calls"
        problems.append(_problem(file, _left_out(found), salvaged=salvaged))
    return calls, problems


def _left_out(found: Stats | Report | Calls) -> UnreadableError:
    more = found.num_left_out - len(found.left_out)
    texts = [*found.left_out, *([f"{more:,} more"] if more else [])]
    return UnreadableError(
        f"Not all of the file was used: {'; '.join(texts)}.",
        "",
        "Only numbers of memory are read; nothing else in the file is missing.",
    )


def _problem(
    file: FoundDump,
    error: UnreadableError,
    *,
    severity: Literal["warning", "error"] = "warning",
    salvaged: str = "nothing",
) -> Problem:
    return problem(
        file.shown_path,
        error.what,
        error.remedy,
        severity=severity,
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
