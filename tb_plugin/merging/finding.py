"""Finds what there is to merge: of a run, of a directory of traces, of named files."""

from __future__ import annotations

import errno
import os
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from collector.format.errors import FormatError
from collector.format.names import PLUGIN_NAME, rank_file_name
from tb_plugin.analysis.ranks.clocks import UNCOMPARED, recorded_clocks
from tb_plugin.formats.recording.captures import TRACE
from tb_plugin.jobs.worker.errors import ImportFailedError
from tb_plugin.merging.clocks import composer_clocks
from tb_plugin.merging.heads import read_head
from tb_plugin.merging.inputs import Inputs, RankInput, TraceFile
from tb_plugin.merging.opening import (
    entries_in,
    is_file,
    is_folder,
    is_inside,
    real,
)
from tb_plugin.merging.recorded import EVER, SPANS, entries_of
from tb_plugin.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.run import AttemptFiles
    from tb_plugin.merging.heads import ClockSync
    from tb_plugin.merging.inputs import Ranks
    from tb_plugin.merging.opening import AnyPath
    from tb_plugin.merging.recorded import Window

_TRACE_NAME: Final = re.compile(r".+\.json(\.gz)?", re.IGNORECASE)
_MAX_ENTRIES: Final = 200_000
_MAX_DEPTH: Final = 8
_MAX_MISSING: Final = 20
_WINDOW_NS: Final = 10**9
"""Around a cycle: what is sampled on a timer lies beside it."""


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
        one = RankInput(rank=rank, label=f"Rank {rank}", clock=clocks[rank])
        one.recording, one.cycle = file, cycle
        by_rank[rank] = one
        inputs.ranks.append(one)
        try:
            one.window = _window(file, cycle)
            for path in _captured(file, folder, cycle, inputs):
                taken.add(real(path))
                _add_trace(one, path, folder, inputs)
        except (FormatError, OSError) as error:
            inputs.tell(rank, file.shown_path, str(error))
    if cycle is None:
        _add_found(folder, taken, by_rank, attempt, inputs, ranks)
    world_size = max((f.header.world_size for f in attempt.files.values()), default=0)
    wanted = [rank for rank in range(world_size) if ranks is None or rank in ranks]
    _tell_missing(inputs, wanted, set(attempt.files), "has no recording")
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
    found: dict[int | None, list[TraceFile]] = {}
    folder = None if root is None else os.fspath(root)
    for path in paths:
        trace = _trace(os.fspath(path), folder, inputs)
        if trace is not None and _is_wanted(trace.head.rank, ranks):
            found.setdefault(trace.head.rank, []).append(trace)
    syncs: dict[int, dict[str, ClockSync]] = {}
    for rank, traces in found.items():
        traces.sort(key=lambda trace: (trace.head.first_ns or 0, trace.shown))
        for trace in traces:
            if rank is not None and trace.head.sync is not None:
                syncs.setdefault(rank, {})[trace.head.cycle] = trace.head.sync
    clocks = composer_clocks(syncs)
    if clocks:
        inputs.reference = f"rank {min(clocks)}'s clock"
    known = sorted(rank for rank in found if rank is not None)
    for rank in known:
        one = RankInput(rank=rank, label=f"Rank {rank}")
        one.clock = clocks.get(rank, UNCOMPARED)
        one.traces = found[rank] if cycle is None else found[rank][cycle - 1 :][:1]
        inputs.ranks.append(one)
    for trace in found.get(None, ()):
        label = PurePath(trace.path).name.removesuffix(".gz").removesuffix(".json")
        inputs.ranks.append(RankInput(rank=None, label=label, traces=[trace]))
    if known and ranks is None:
        _tell_missing(
            inputs, range(known[0], known[-1] + 1), set(known), "has no trace"
        )
    return inputs


def traces_below(folder: AnyPath) -> Iterator[str]:
    """The traces below a directory, by path. It may hold any other JSON.

    Raises:
        StorageError: its store refuses.
    """
    return _with_times(_json_paths(os.fspath(folder)))


def _json_paths(folder: str) -> Iterator[str]:
    """Files whose names may be traces', links among them, each folder once.

    A link that leads out is followed where it leads to a directory, or to a file of such
    a name, as by the walk of a logdir.
    """
    root = real(folder)
    num_entries = 0
    stack = [(folder, 0)]
    linked: set[str] = set()
    while stack:
        path, depth = stack.pop()
        for entry in entries_in(path):
            num_entries += 1
            if num_entries > _MAX_ENTRIES:
                return
            if entry.is_dir(follow_symlinks=False):
                if depth < _MAX_DEPTH and not entry.name.startswith("."):
                    stack.append((entry.path, depth + 1))
            elif entry.is_symlink() and is_folder(entry.path):
                target = real(entry.path)
                # What lies inside is walked there; a link to a folder above has no end.
                known = (root, real(path), *linked)
                is_new = not any(is_inside(target, one) for one in known)
                is_above = is_inside(path, target)
                if is_new and not is_above and depth < _MAX_DEPTH:
                    linked.add(target)
                    stack.append((entry.path, depth + 1))
            elif _TRACE_NAME.fullmatch(entry.name) and _may_open(entry.path, root):
                yield entry.path


def _may_open(path: str, root: str) -> bool:
    """Whether a file of a run lies in it, or links lead to a file of a trace's name.

    Whoever may write into a run must not have any file given that this process may read.
    """
    target = real(path)
    return is_inside(target, root) or bool(_TRACE_NAME.fullmatch(PurePath(target).name))


def _add_found(
    folder: str,
    taken: Container[str],
    by_rank: dict[int, RankInput],
    attempt: AttemptFiles,
    inputs: Inputs,
    ranks: Ranks | None,
) -> None:
    """Traces that another profiler left in the run's directory."""
    own = f"{real(folder)}/plugins/{PLUGIN_NAME}"
    other = [
        path
        for path in _json_paths(folder)
        if real(path) not in taken
        and not is_inside(path, own)
        and not PurePath(path).is_relative_to(f"{folder}/plugins/{PLUGIN_NAME}")
    ]
    for one in inputs_of_files(_with_times(other), ranks=ranks, root=folder).ranks:
        mine = None if one.rank is None else by_rank.get(one.rank)
        traces = [trace for trace in one.traces if _is_during(trace, mine, attempt)]
        if mine is not None and one.clock.method == "none":
            mine.traces += traces
        elif traces:
            inputs.ranks.append(one)


def _with_times(paths: Iterable[str]) -> Iterator[str]:
    """Files that are traces."""
    for path in paths:
        try:
            head = read_head(path)
            if head.first_ns is not None and head.writer != "merged":
                yield path
        except StorageError as error:  # noqa: PERF203  # a file each
            if error.errno != errno.ENOENT:
                raise
        except (ImportFailedError, OSError):
            continue


def _is_during(trace: TraceFile, mine: RankInput | None, attempt: AttemptFiles) -> bool:
    """Whether a trace is of this attempt, as far as clocks tell."""
    first, base = trace.head.first_ns, trace.head.base_ns
    if first is None or mine is None or mine.recording is None:
        return True
    at = first + (base or 0) - mine.clock.ahead_ns(first + (base or 0))
    return attempt.started_ns - _WINDOW_NS <= at <= attempt.last_ns + 60 * _WINDOW_NS


def _captured(
    file: RankFile, folder: str, cycle: int | None, inputs: Inputs
) -> Iterator[str]:
    """Where the traces lie that the recording names."""
    name = rank_file_name(file.rank, file.attempt).removesuffix(".events")
    folder_of_file = os.path.dirname(file.parts[0].path)  # noqa: PTH120  # may be a URL
    artifacts = f"{folder_of_file}/{name}"
    root = real(folder)
    for _, meta in entries_of(file, TRACE, cycle):
        if meta.get("kept") is False:
            continue
        path = f"{artifacts}/{meta.get('path', '')}"
        climbs = ".." in PurePath(path).relative_to(folder_of_file).parts
        if climbs or not _may_open(path, root) or not is_file(path):
            inputs.tell(file.rank, str(meta.get("path", "")), "The trace is not there.")
            continue
        yield path


def _window(file: RankFile, cycle: int | None) -> Window:
    """The times of a cycle; all times without one, none where it was not recorded."""
    if cycle is None:
        return EVER
    times = []
    for kind in (SPANS, TRACE):
        for entry, meta in entries_of(file, kind, cycle):
            times.append(entry.time_ns)
            times += [
                t for k in ("start_ns", "end_ns") if isinstance(t := meta.get(k), int)
            ]
    if not times:
        return (1.0, 0.0)
    return (min(times) - _WINDOW_NS, max(times) + _WINDOW_NS)


def _add_trace(one: RankInput, path: str, folder: str, inputs: Inputs) -> None:
    trace = _trace(path, folder, inputs)
    if trace is not None:
        one.traces.append(trace)


def _trace(path: str, root: str | None, inputs: Inputs) -> TraceFile | None:
    shown = path
    if root is not None and PurePath(path).is_relative_to(root):
        shown = PurePath(path).relative_to(root).as_posix()
    try:
        head = read_head(path)
    except (ImportFailedError, OSError) as error:
        inputs.tell(None, shown, f"It is left out: {error}")
        return None
    if head.writer == "merged":
        inputs.tell(None, shown, "It is left out: it was merged from traces already.")
        return None
    if head.first_ns is None:
        inputs.tell(head.rank, shown, "It holds no event with a time.")
    return TraceFile(path=path, shown=shown, head=head)


def _is_wanted(rank: int | None, ranks: Ranks | None) -> bool:
    return ranks is None or (rank is not None and rank in ranks)


def _tell_missing(
    inputs: Inputs, wanted: Iterable[int], there: Container[int], what: str
) -> None:
    missing = [rank for rank in wanted if rank not in there]
    for rank in missing[:_MAX_MISSING]:
        inputs.tell(rank, "", f"Rank {rank} {what}.")
    if len(missing) > _MAX_MISSING:
        inputs.tell(None, "", f"{len(missing) - _MAX_MISSING} more ranks: each {what}.")
