"""Merge the traces of all ranks into one trace on one clock.

PATH is a logdir, a run's directory, a directory of traces (torch's, Composer's), rank
files, or traces; paths, or URLs such as s3://bucket/runs. The result is Chrome JSON, which
Perfetto (https://ui.perfetto.dev) and chrome://tracing open. Times are on rank 0's clock,
with the error of each rank in `metadata`. What cannot be read is named.

  memboard merge runs/exp1 --ranks 0-7,64 --cycle 2 -o two.json.gz
  memboard merge traces/rank0.json traces/rank1.json -o both.json
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from memboard.collector.cli.failure import Failure, no_such_file
from memboard.collector.format.names import (
    MERGED_TRACE,
    RANK_FILES_DIR,
    parse_rank_file_name,
)
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import duration_text
from memboard.tb_plugin.cli.opening import (
    attempt_of,
    await_end,
    choose_run,
    folder_of,
    is_folder,
    local_path,
    open_place,
    path_or_url,
    read_whole,
    refused,
    result_folder,
    run_of_file,
    runs_at,
)
from memboard.tb_plugin.cli.options import add_run, add_wait, positive, rank_set
from memboard.tb_plugin.cli.text import complain, problem_text
from memboard.tb_plugin.merging.discovery import (
    inputs_of_files,
    inputs_of_run,
    traces_below,
)
from memboard.tb_plugin.merging.merged_trace import merged
from memboard.tb_plugin.merging.output import write_file
from memboard.tb_plugin.storage import StorageError, is_remote

if TYPE_CHECKING:
    import argparse

    from memboard.tb_plugin.cli.opening import Place
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.merging.inputs import Inputs, MergedRank

_MAX_NAMED: Final = 50
_MAX_LISTED: Final = 16
_MAX_FILES_NAMED: Final = 2
_CLOCKS: Final = {
    "distributed": "round trips",
    "same_host": "the host's clock",
    "wall": "wall clocks",
    "barriers": "barriers",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard merge`."""
    parser.add_argument("paths", type=path_or_url, metavar="PATH", nargs="+")
    add_run(parser, "which run, where there are more")
    parser.add_argument(
        "--attempt",
        type=positive,
        metavar="N",
        help="which attempt, from 1 (default: last)",
    )
    parser.add_argument("--ranks", type=rank_set, metavar="RANKS", help="only these")
    parser.add_argument(
        "--cycle", type=positive, metavar="N", help="one cycle of the schedule, from 1"
    )
    add_wait(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=local_path,
        metavar="FILE",
        help=f"the trace, gzipped where it ends in .gz (default: {MERGED_TRACE} in the"
        " run's directory; of a store's run, in the current one)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace a file that is there already"
    )


def run(options: argparse.Namespace) -> int:
    try:
        inputs, folder = _inputs(options)
    except StorageError as error:
        raise refused(error, str(options.paths[0]).partition("?")[0]) from error
    out = options.out or folder / MERGED_TRACE
    if not inputs.is_empty:
        _check_place(out, inputs, force=options.force)
        num_bytes = write_file(out, merged(inputs))
    complaints = [
        problem.what + (f" ({problem.path})" if problem.path else "")
        for problem in inputs.problems[:_MAX_NAMED]
    ]
    more = len(inputs.problems) - _MAX_NAMED
    if more > 0:
        complaints.append(
            f"listed in the trace's metadata: {counted(more, 'more problem')}"
        )
    complain("merge", complaints)
    if inputs.is_empty:
        raise Failure(
            "there is nothing to merge",
            where=", ".join(map(str, options.paths)),
            remedy="name a run that MemBoard recorded, or traces of torch or Composer",
        )
    ranks = counted(len(inputs.ranks), "rank")
    print(f"{out}: {ranks}, {num_bytes / 1e6:.1f} MB, on {inputs.reference}")
    for rank in inputs.done[:_MAX_LISTED]:
        print(f"  {_rank_text(rank)}")
    if len(inputs.done) > _MAX_LISTED:
        others = counted(len(inputs.done) - _MAX_LISTED, "more rank")
        print(f"  {others}: see `metadata` in the trace")
    print("  Ids of flows begin anew in each trace: no arrow joins two ranks.")
    return 0


def _rank_text(rank: MergedRank) -> str:
    """`rank 3: r3.json; 12,345 events of traces; moved by 3 µs (later)`."""
    files = counted(len(rank["files"]), "file")
    names = ", ".join(rank["files"][:_MAX_FILES_NAMED])
    name = "no rank" if rank["rank"] is None else f"rank {rank['rank']}"
    parts = [names if len(rank["files"]) <= _MAX_FILES_NAMED else files]
    if rank["num_trace_events"]:
        parts.append(f"{counted(rank['num_trace_events'], 'event')} of traces")
    if rank["clock_method"] not in ("none", "reference"):
        parts.append(_clock_text(rank))
    return f"{name}: {'; '.join(parts)}"


def _clock_text(rank: MergedRank) -> str:
    offset_seconds = rank["offset_ns"] / 1e9
    moved = f"moved by {duration_text(abs(offset_seconds))}"
    direction = "later" if offset_seconds > 0 else "earlier"
    text = f"{moved} ({direction})" if offset_seconds else "not moved"
    if rank["error_ns"] is not None:
        text += f", within {duration_text(rank['error_ns'] / 1e9)}"
    return f"{text}, by {_CLOCKS.get(rank['clock_method'], rank['clock_method'])}"


def _inputs(options: argparse.Namespace) -> tuple[Inputs, Path]:
    """What is merged, and the directory that the result belongs into."""
    places = [open_place(path) for path in options.paths]
    chosen = {"ranks": options.ranks, "cycle": options.cycle}
    if len(places) == 1 and is_folder(places[0]):
        recording = _recording_in(places[0], options.name)
        if recording is not None and recording.made_of == "recording":
            return _of_recording(recording, options)
        folder = str(places[0]) if recording is None else recording.found.folder
        inputs = inputs_of_files(traces_below(folder), **chosen, root=folder)
        return inputs, result_folder(folder)
    files: list[Place] = []
    for place in places:
        if is_folder(place):
            files += traces_below(place)
        elif isinstance(place, str) or place.is_file():
            files.append(place)
        else:
            raise no_such_file(place)
    only = files[0] if len(files) == 1 else None
    if isinstance(only, Path) and parse_rank_file_name(only.name) is not None:
        return _of_recording(run_of_file(only), options)
    return inputs_of_files(files, **chosen), Path()


def _recording_in(logdir: Place, run_name: str | None) -> Run | None:
    """The run that is meant; the directory's own, where it is one and none is named."""
    store = runs_at(logdir)
    if run_name is None:
        root = logdir if isinstance(logdir, str) else str(logdir.resolve())
        own = "/".join((root.rstrip("/"), *RANK_FILES_DIR))
        recorded = [run for run in store.runs() if run.made_of == "recording"]
        if not recorded:
            return None
        for run in recorded:
            if run.found.folder == own:
                return run
    return choose_run(store, run_name, logdir)


def _of_recording(recording: Run, options: argparse.Namespace) -> tuple[Inputs, Path]:
    read_whole(recording)
    await_end(recording, options.wait)
    complain("merge", map(problem_text, recording.problems))
    folder = folder_of(recording)
    attempt = attempt_of(recording, options.attempt)
    inputs = inputs_of_run(attempt, folder, ranks=options.ranks, cycle=options.cycle)
    return inputs, result_folder(folder)


def _check_place(out: Path, inputs: Inputs, *, force: bool) -> None:
    """Refuse to replace a file without `--force`, and any that is merged."""
    if not out.exists():
        return
    for rank in inputs.ranks:
        for trace in rank.traces:
            if not is_remote(trace.path) and Path(trace.path).samefile(out):
                raise Failure(
                    "the result would replace one of the traces",
                    where=out,
                    remedy="name another file with -o",
                )
    if not force:
        raise Failure(
            "the file is there already",
            where=out,
            remedy="name another with -o, or replace it with --force",
        )
