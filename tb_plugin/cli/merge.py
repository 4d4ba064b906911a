"""Merge the traces, spans and counters of all ranks into one trace on one clock.

PATH is a logdir, a run's directory, a directory of traces (torch's, Composer's), rank
files, or traces; or the URL of a logdir, a directory or a trace at a store. The result is
Chrome JSON that Perfetto (https://ui.perfetto.dev) and chrome://tracing open:

  memboard merge runs/exp1
  memboard merge runs/exp1 --ranks 0-7,64 --cycle 2 -o two.json.gz
  memboard merge traces/rank0.json traces/rank1.json -o both.json
  memboard merge s3://bucket/runs --run exp1 -o exp1.json.gz

Of a recording: spans, steps, counters and torch's traces, also those that another
profiler left in the run's directory. Times are on rank 0's clock; what is known of each
rank's clock, and at most how wrong that is, stands in the trace's `metadata`. The files
merged are not changed. What cannot be read is named, and the rest is merged.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from tb_plugin.cli.addresses import path_or_url
from tb_plugin.cli.run_options import add_run, add_wait

if TYPE_CHECKING:
    import argparse

    from tb_plugin.index.run import AttemptFiles, Run
    from tb_plugin.merging.inputs import Inputs
    from tb_plugin.rank_set import RankSet

HELP = "merge the traces and spans of all ranks into one trace on one clock"

DEFAULT_NAME: Final = "merged_trace.json.gz"
_MAX_TOLD: Final = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard merge`."""
    parser.add_argument(
        "paths",
        type=path_or_url,
        metavar="PATH",
        nargs="+",
        help="what to merge: paths, or URLs such as s3://bucket/runs",
    )
    add_run(parser, "which run, where there are more")
    parser.add_argument(
        "--attempt", type=int, metavar="N", help="which attempt, from 1 (default: last)"
    )
    parser.add_argument(
        "--ranks", metavar="RANKS", help="these ranks alone, as in 0-7,64"
    )
    parser.add_argument(
        "--cycle", type=int, metavar="N", help="one cycle of the schedule alone, from 1"
    )
    add_wait(parser)
    parser.add_argument(
        "-o",
        "--out",
        type=path_or_url,
        metavar="FILE",
        help="where the trace goes; deflated where it ends in .gz (default:"
        f" {DEFAULT_NAME} in the run's directory; of a store's run, in the current one)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace a file that is there already"
    )


def run(options: argparse.Namespace) -> int:
    """Merge what was named."""
    from tb_plugin.merging.merged import merged
    from tb_plugin.merging.output import write_file

    if options.cycle is not None and options.cycle < 1:
        raise Failure("--cycle must be 1 or more", where=f"--cycle {options.cycle}")
    from tb_plugin.cli.named_files import local_result, refused
    from tb_plugin.storage import StorageError

    out = None if options.out is None else local_result(options.out)
    try:
        inputs, folder = _inputs(options)
    except StorageError as error:
        raise refused(error, str(options.paths[0]).partition("?")[0]) from error
    if inputs.is_empty:
        _tell_problems(inputs)
        raise Failure(
            "there is nothing to merge",
            where=", ".join(map(str, options.paths)),
            remedy="name a run that MemBoard recorded, or traces of torch or Composer",
        )
    out = folder / DEFAULT_NAME if out is None else out
    _refuse_inputs(out, inputs)
    if out.exists() and not options.force:
        raise Failure(
            "the file is there already",
            where=str(out),
            remedy="name another with -o, or replace it with --force",
        )
    try:
        num_bytes = write_file(out, merged(inputs))
    except OSError as error:
        raise Failure(
            f"the trace cannot be written: {error.strerror or error}",
            where=str(error.filename or out),
            remedy="free space, or name another place with -o",
        ) from error
    _tell_problems(inputs)
    num_ranks = len(inputs.ranks)
    print(f"{out}: {num_ranks} ranks, {num_bytes / 1e6:.1f} MB, on {inputs.reference}")
    return 0


def _inputs(options: argparse.Namespace) -> tuple[Inputs, Path]:
    """What is merged, and the directory that the result belongs into.

    Raises:
        StorageError: a store refuses.
    """
    from collector.format.names import parse_rank_file_name
    from tb_plugin.cli.named_files import is_folder, known
    from tb_plugin.merging.finding import inputs_of_files, traces_below

    ranks = _ranks(options.ranks)
    paths = [known(path) for path in options.paths]
    if len(paths) == 1 and is_folder(paths[0]):
        recording = _recording_in(paths[0], options.name)
        if recording is not None and recording.made_of == "recording":
            return _of_recording(recording, options, ranks)
        folder = str(paths[0]) if recording is None else recording.found.folder
        found = traces_below(folder)
        inputs = inputs_of_files(found, ranks=ranks, cycle=options.cycle, root=folder)
        return inputs, _local(folder)
    files: list[Path | str] = []
    for path in paths:
        if is_folder(path):
            files += traces_below(path)
        elif isinstance(path, str) or path.is_file():
            files.append(path)
        else:
            raise Failure("there is no such file", where=str(path))
    only = files[0] if len(files) == 1 else None
    if isinstance(only, Path) and parse_rank_file_name(only.name) is not None:
        from tb_plugin.cli.recordings import run_of_file

        return _of_recording(run_of_file(only), options, ranks)
    return inputs_of_files(files, ranks=ranks, cycle=options.cycle), Path()


def _local(folder: str) -> Path:
    """The same directory; of a store's the current one."""
    from tb_plugin.storage import is_remote

    return Path() if is_remote(folder) else Path(folder)


def _recording_in(logdir: Path | str, name: str | None) -> Run | None:
    """The run that is meant; the directory's own, where it is one and none is named."""
    from collector.format.names import RANK_FILES_DIR
    from tb_plugin.cli.recordings import choose_run, open_named

    store = open_named(logdir)
    root = logdir if isinstance(logdir, str) else str(logdir.resolve())
    own = "/".join((root.rstrip("/"), *RANK_FILES_DIR))
    recorded = [run for run in store.runs() if run.made_of == "recording"]
    for run in recorded:
        if name is None and run.found.folder == own:
            return run
    if name is None and not recorded:
        return None
    return choose_run(store, name, logdir)


def _of_recording(
    recording: Run, options: argparse.Namespace, ranks: RankSet | None
) -> tuple[Inputs, Path]:
    from tb_plugin.cli.recordings import (
        await_end,
        folder_of,
        read_whole,
        tell_problems,
    )
    from tb_plugin.merging.finding import inputs_of_run

    read_whole(recording)
    await_end(recording, options.wait)
    tell_problems(recording.problems, "merge")
    folder = folder_of(recording)
    attempt = _attempt(recording, options.attempt)
    inputs = inputs_of_run(attempt, folder, ranks=ranks, cycle=options.cycle)
    return inputs, _local(folder)


def _attempt(recording: Run, wanted: int | None) -> AttemptFiles:
    attempts = recording.attempts
    if not attempts:
        raise Failure(
            "none of the files can be read",
            where=recording.found.name,
            remedy="the problems listed above say why",
        )
    for attempt in attempts:
        if attempt.index == (len(attempts) if wanted is None else wanted):
            return attempt
    raise Failure(
        f"there is no attempt {wanted}",
        where=recording.found.name,
        remedy=f"its attempts are 1 to {len(attempts)}",
    )


def _ranks(text: str | None) -> RankSet | None:
    from tb_plugin.rank_set import RankSet

    if text is None:
        return None
    try:
        return RankSet.parse(text)
    except ValueError:
        raise Failure(
            "--ranks must be ranks and ranges of ranks",
            where=f"--ranks {text}",
            remedy="write them as in 0-7,64",
        ) from None


def _refuse_inputs(out: Path, inputs: Inputs) -> None:
    """Traces are never replaced by what is made of them."""
    from tb_plugin.storage import is_remote

    for one in inputs.ranks:
        for trace in one.traces:
            if is_remote(trace.path):
                continue
            if out.exists() and Path(trace.path).samefile(out):
                raise Failure(
                    "the result would replace one of the traces",
                    where=str(out),
                    remedy="name another file with -o",
                )


def _tell_problems(inputs: Inputs) -> None:
    for problem in inputs.problems[:_MAX_TOLD]:
        where = f" ({problem.path})" if problem.path else ""
        print(f"memboard merge: {problem.what}{where}", file=sys.stderr)
    more = len(inputs.problems) - _MAX_TOLD
    if more > 0:
        print(
            f"memboard merge: {more} more problems stand in the trace's metadata",
            file=sys.stderr,
        )
