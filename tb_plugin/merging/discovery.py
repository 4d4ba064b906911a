"""Finds what there is to merge: of a run, of a directory of traces, of named files."""

from __future__ import annotations

import errno
import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

from memboard.collector.format.errors import FormatError
from memboard.collector.format.sizes import counted
from memboard.tb_plugin import storage
from memboard.tb_plugin.analysis.ranks.clock_line import SAME, Reading, clock_line
from memboard.tb_plugin.analysis.ranks.clocks import (
    UNCOMPARED,
    RankClock,
    recorded_clocks,
)
from memboard.tb_plugin.formats.recording.captures.reading import TRACE
from memboard.tb_plugin.formats.traces.files.starts import read_start
from memboard.tb_plugin.index.logdirs import Logdir
from memboard.tb_plugin.index.search.walk import Index
from memboard.tb_plugin.jobs.trace_files import artifact
from memboard.tb_plugin.merging.inputs import EVER, Inputs, RankInput, TraceFile
from memboard.tb_plugin.merging.recorded import SPANS, entries_of
from memboard.tb_plugin.worker.errors import ImportFailedError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.traces.files.starts import ClockSync
    from memboard.tb_plugin.index.run import AttemptFiles
    from memboard.tb_plugin.merging.inputs import Ranks, Window

    AnyPath: TypeAlias = str | os.PathLike[str]

_MAX_MISSING: Final = 20
_WINDOW_NS: Final = 10**9
"""Around a cycle: what is sampled on a timer lies beside it."""
_LEAST_ERROR_US: Final = 1
"""Composer cuts times to whole microseconds."""


def inputs_of_run(
    attempt: AttemptFiles,
    folder: AnyPath,
    *,
    ranks: Ranks | None = None,
    cycle: int | None = None,
) -> Inputs:
    """One attempt of a recorded run, with the traces that lie in the run's directory.

    Args:
        attempt: its files, read to their end.
        folder: the run's own directory.
        ranks: which of them; None: all.
        cycle: one cycle of the schedule alone, from 1.

    Raises:
        StorageError: the store of its files refuses.
    """
    folder = os.fspath(folder)
    inputs = Inputs(ranks=[], reference="rank 0's clock")
    clocks = recorded_clocks(attempt.files)
    by_rank: dict[int, RankInput] = {}
    taken: set[str] = set()
    for rank, file in attempt.files.items():
        if ranks is not None and rank not in ranks:
            continue
        rank_input = RankInput(rank=rank, label=f"Rank {rank}", clock=clocks[rank])
        rank_input.recording, rank_input.cycle = file, cycle
        by_rank[rank] = rank_input
        inputs.ranks.append(rank_input)
        try:
            rank_input.window = _window(file, cycle)
            for path, steps in _captured(file, cycle, inputs):
                taken.add(_real(path))
                if (trace := _trace(path, folder, inputs)) is not None:
                    rank_input.traces.append(trace)
                    rank_input.traced_steps += steps
        except (FormatError, OSError) as error:
            inputs.tell(rank, file.shown_path, str(error))
    if cycle is None:
        _add_found(folder, taken, by_rank, attempt, inputs, ranks)
    world_size = max((f.header.world_size for f in attempt.files.values()), default=0)
    wanted = [rank for rank in range(world_size) if ranks is None or rank in ranks]
    _tell_missing(inputs, wanted, attempt.files, "has no recording")
    return inputs


def inputs_of_files(
    paths: Iterable[AnyPath],
    *,
    ranks: Ranks | None = None,
    cycle: int | None = None,
    root: AnyPath | None = None,
) -> Inputs:
    """Traces of any tool, with no recording of ours.

    Args:
        paths: the files.
        ranks: which ranks; None: all.
        cycle: each rank's so-manieth trace alone, from 1.
        root: files are named relative to it.
    """
    inputs = Inputs(ranks=[], reference="the wall clocks, taken for equal")
    traces_by_rank: dict[int | None, list[TraceFile]] = {}
    folder = None if root is None else os.fspath(root)
    for path in paths:
        trace = _trace(os.fspath(path), folder, inputs)
        rank = None if trace is None else trace.start.rank
        is_wanted = ranks is None or (rank is not None and rank in ranks)
        if trace is not None and is_wanted:
            traces_by_rank.setdefault(rank, []).append(trace)
    for traces in traces_by_rank.values():
        traces.sort(key=lambda trace: (trace.start.first_ns or 0, trace.shown))
    unranked = traces_by_rank.pop(None, [])
    of_ranks = {
        rank: traces_by_rank[rank]
        for rank in sorted(r for r in traces_by_rank if r is not None)
    }
    clocks = _composer_clocks(of_ranks)
    if clocks:
        inputs.reference = f"rank {min(clocks)}'s clock"
    for rank, traces in of_ranks.items():
        rank_input = RankInput(rank=rank, label=f"Rank {rank}")
        rank_input.clock = clocks.get(rank, UNCOMPARED)
        rank_input.traces = traces if cycle is None else traces[cycle - 1 :][:1]
        inputs.ranks.append(rank_input)
    for trace in unranked:
        label = PurePath(trace.path).name.removesuffix(".gz").removesuffix(".json")
        inputs.ranks.append(RankInput(rank=None, label=label, traces=[trace]))
    if of_ranks and ranks is None:
        _tell_missing(
            inputs, range(min(of_ranks), max(of_ranks) + 1), of_ranks, "has no trace"
        )
    return inputs


def traces_below(folder: AnyPath) -> Iterator[str]:
    """The traces below a directory, by path. It may hold any other JSON.

    Raises:
        StorageError: its store refuses.
    """
    shown = os.fspath(folder)
    root = _real(shown)
    index = Index((Logdir(shown=root, name="", path=root),))
    index.finish()
    if storage.is_remote(root):
        refusal = storage.remote_at(root).refusal()
        if refusal is not None:
            raise refusal[1].anew()
    shown_by_path: dict[str, str] = {}
    for run in index.runs.values():
        for file in () if run.traces is None else run.traces.found.files:
            shown_by_path.setdefault(file.path, f"{shown}/{file.shown_path}")
    return _with_times(sorted(shown_by_path.values()))


def _composer_clocks(traces: Mapping[int, list[TraceFile]]) -> dict[int, RankClock]:
    """By rank, from the clock syncs of Composer's files; the lowest is the reference.

    Both ranks read their clocks after the first barrier of the pair let the last of them
    in and before the second let the first out: each rank's own bound holds for both, so
    the smaller one does.
    """
    syncs: dict[int, dict[str, ClockSync]] = {}
    for rank, of in traces.items():
        for start in (trace.start for trace in of):
            if start.sync is not None:
                syncs.setdefault(rank, {})[start.cycle] = start.sync
    clocks: dict[int, RankClock] = {}
    for rank, of_rank in syncs.items():
        readings = []
        for cycle, sync in of_rank.items():
            base = syncs[min(syncs)].get(cycle)
            if base is not None:
                bounds = [bound.bound_us for bound in (sync, base) if bound.bound_us]
                error = (min(bounds) + _LEAST_ERROR_US) * 1000 if bounds else None
                offset = (base.time_us - sync.time_us) * 1000
                readings.append(Reading(sync.time_us * 1000, offset, error))
        line = clock_line(readings)
        if rank == min(syncs):
            clocks[rank] = RankClock(SAME, "reference")
        elif line is not None:
            clocks[rank] = RankClock(line, "barriers")
    return clocks


def _real(path: str) -> str:
    return storage.at(path).realpath(path)


def _add_found(
    folder: str,
    taken: Container[str],
    by_rank: Mapping[int, RankInput],
    attempt: AttemptFiles,
    inputs: Inputs,
    ranks: Ranks | None,
) -> None:
    """Traces that another profiler left in the run's directory."""
    other = [path for path in traces_below(folder) if _real(path) not in taken]
    for rank_input in inputs_of_files(other, ranks=ranks, root=folder).ranks:
        mine = None if rank_input.rank is None else by_rank.get(rank_input.rank)
        traces = [
            trace for trace in rank_input.traces if _is_during(trace, mine, attempt)
        ]
        if mine is not None and rank_input.clock.method == "none":
            mine.traces += traces
        elif traces:
            inputs.ranks.append(rank_input)


def _with_times(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        try:
            start = read_start(path)
            if start.first_ns is not None and not start.is_merged:
                yield path
        except storage.StorageError as error:  # noqa: PERF203  # a file each
            if error.errno != errno.ENOENT:
                raise
        except (ImportFailedError, OSError):
            continue


def _is_during(trace: TraceFile, mine: RankInput | None, attempt: AttemptFiles) -> bool:
    """Whether a trace is of this attempt, as far as clocks tell."""
    if trace.start.first_ns is None or mine is None or mine.recording is None:
        return True
    time_ns = trace.start.first_ns + (trace.start.base_ns or 0)
    time_ns -= mine.clock.ahead_ns(time_ns)
    return (
        attempt.started_ns - _WINDOW_NS <= time_ns <= attempt.last_ns + 60 * _WINDOW_NS
    )


def _captured(
    file: RankFile, cycle: int | None, inputs: Inputs
) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Where the traces lie that the recording names, and the steps that each marks."""
    for _, meta in entries_of(file, TRACE, cycle):
        if meta.get("kept") is False or not meta.get("path"):
            continue
        trace_file = artifact(file, meta.get("path"))
        if trace_file is None:
            inputs.tell(file.rank, str(meta.get("path", "")), "The trace is not there.")
        else:
            first, last = meta.get("first_step"), meta.get("last_step")
            if isinstance(first, int) and isinstance(last, int):
                yield trace_file.path, [(first, last)]
            else:
                yield trace_file.path, []


def _window(file: RankFile, cycle: int | None) -> Window:
    """The times of a cycle; all times without one, none where it was not recorded."""
    if cycle is None:
        return EVER
    times = []
    for kind in (SPANS, TRACE):
        for entry, meta in entries_of(file, kind, cycle):
            ends = (entry.time_ns, meta.get("start_ns"), meta.get("end_ns"))
            times += [ns for ns in ends if isinstance(ns, int)]
    if not times:
        return (1.0, 0.0)
    return (min(times) - _WINDOW_NS, max(times) + _WINDOW_NS)


def _trace(path: str, root: str | None, inputs: Inputs) -> TraceFile | None:
    shown = path
    if root is not None and PurePath(path).is_relative_to(root):
        shown = PurePath(path).relative_to(root).as_posix()
    try:
        start = read_start(path)
    except (ImportFailedError, OSError) as error:
        inputs.tell(None, shown, f"It is left out: {error}")
        return None
    if start.is_merged:
        inputs.tell(None, shown, "It is left out: it was merged from traces already.")
        return None
    if start.first_ns is None:
        inputs.tell(start.rank, shown, "It holds no event with a time.")
    return TraceFile(path=path, shown=shown, start=start)


def _tell_missing(
    inputs: Inputs, wanted: Iterable[int], there: Container[int], lack: str
) -> None:
    missing = [rank for rank in wanted if rank not in there]
    for rank in missing[:_MAX_MISSING]:
        inputs.tell(rank, "", f"Rank {rank} {lack}.")
    if len(missing) > _MAX_MISSING:
        more = counted(len(missing) - _MAX_MISSING, "more rank")
        inputs.tell(None, "", f"The same of {more}: {lack}.")
