"""Write files for other tools from a recording, also of a job that died.

LOGDIR is what TensorBoard is given, a run's directory (either also as a URL, at a store),
or one rank's file. The files:

  rank_R_memory_stats.yaml          every snap: --yaml
  rank_R_fsdp_memory_stats.yaml     module memory by window and module: --yaml
  rank_R_modules.csv                the same as a table: --modules
  cuda_alloc_rank_R.FUNCTION.ITERATION.start|end.pickle
                                    the allocator, for memory_viz: --history
  rank_R_config.yaml                the settings that were in effect: --config

Without any of these options: --yaml --modules --config. Keys and names are
MemProfiler's, which knows no phases; a function that was collected in several of them, and
counts its calls in each, has all but train before its name: 0.val.step.2.start. Where a
job was started more than once, the last attempt's files are in DIR and earlier ones' in
DIR/attempt_N.

YAML holds plain mappings (yaml.safe_load takes them), pickles hold plain dicts, lists and
numbers. Sizes are bytes, under the labels of torch's FSDPMemTracker (of a model without
FSDP: MemTracker), and a peak is that of its own iteration.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.afterwards.dumps import NOTHING
from collector.cli.failure import Failure
from tb_plugin.cli.addresses import path_or_url
from tb_plugin.cli.run_options import add_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from tb_plugin.cli.export.files import Planned, UnmadeError
    from tb_plugin.index.run import AttemptFiles, Run

HELP = "write YAML, tables and pickles for other tools from a recording"

KINDS: Final = ("yaml", "modules", "history", "config")
DEFAULT_KINDS: Final = ("yaml", "modules", "config")
DEFAULT_DIR: Final = "memprofiler"
"""In the run's directory: where MemProfiler puts its own."""

_SOURCES: Final = {
    "yaml": ("functions", "modules"),
    "modules": ("modules",),
    "history": ("history",),
}
"""What must have been recorded for a kind of file: keys of the configuration."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard export`."""
    parser.add_argument(
        "logdir",
        type=path_or_url,
        metavar="LOGDIR",
        help="what to read: a path, or a URL such as s3://bucket/runs",
    )
    add_run(parser, "which run, where there are more")
    parser.add_argument("--rank", type=int, metavar="N", help="one rank alone")
    parser.add_argument(
        "--attempt", type=int, metavar="N", help="one attempt alone, from 1"
    )
    parser.add_argument("--yaml", action="store_true", help="statistics as YAML")
    parser.add_argument("--modules", action="store_true", help="module memory as CSV")
    parser.add_argument(
        "--history", action="store_true", help="captures of the allocator, pickled"
    )
    parser.add_argument("--config", action="store_true", help="the effective settings")
    parser.add_argument(
        "-o",
        "--out",
        type=path_or_url,
        metavar="DIR",
        help=f"where the files go (default: {DEFAULT_DIR} in the run's directory; of a"
        " store's run, in the current one)",
    )
    both = parser.add_mutually_exclusive_group()
    both.add_argument(
        "--force", action="store_true", help="replace files that are there already"
    )
    both.add_argument(
        "--keep",
        action="store_true",
        help="where files are there already, write into a directory of the attempt's"
        " name beside them",
    )


def run(options: argparse.Namespace) -> int:
    """Write what was asked for."""
    from tb_plugin.cli.export import files as export_files
    from tb_plugin.cli.recordings import read_whole, tell_problems

    kinds = [kind for kind in KINDS if getattr(options, kind)] or list(DEFAULT_KINDS)
    recording = _chosen(options)
    read_whole(recording, options.rank)
    folders = _folders(recording, kinds, options)
    tell_problems(recording.problems, "export")
    if not any(folders.values()):
        raise _nothing(recording, kinds)
    if not options.force:
        for folder, files in folders.items():
            export_files.refuse_to_overwrite(folder, files)
    num_written = 0
    for folder, files in folders.items():
        for written in export_files.write_all(folder, files) if files else ():
            if isinstance(written, export_files.UnmadeError):
                print(f"memboard export: {_in_words(written)}", file=sys.stderr)
            else:
                print(written)
                num_written += 1
    _tell_missing(recording, kinds, folders)
    return 0 if num_written else 1


def _folders(
    recording: Run, kinds: Sequence[str], options: argparse.Namespace
) -> dict[Path, list[Planned]]:
    """What goes into which directory."""
    from tb_plugin.cli.export.files import without_repeats

    out = _out(options, recording)
    folders: dict[Path, list[Planned]] = {}
    for attempt, folder in _attempts(recording, options, out):
        files = list(_planned(recording, attempt, kinds, options))
        files = list(without_repeats(files))
        there = any((folder / file.name).exists() for file in files)
        own = folder / _attempt_name(attempt)
        folders[own if there and options.keep else folder] = files
    return folders


def _chosen(options: argparse.Namespace) -> Run:
    from tb_plugin.cli.named_files import is_folder, known
    from tb_plugin.cli.recordings import choose_run, open_named, run_of_file

    logdir = known(options.logdir)
    if isinstance(logdir, Path) and logdir.is_file():
        return run_of_file(logdir)
    if isinstance(logdir, str) and not is_folder(logdir):
        raise Failure(
            "this is a file; a directory was expected",
            where=logdir,
            remedy="name the logdir, or one run in it",
            code=2,
        )
    recording = choose_run(open_named(logdir), options.name, logdir)
    if recording.made_of != "recording":
        raise Failure(
            "this run is made of another tool's files; there is nothing to export",
            where=recording.found.name,
            remedy="choose a run that MemBoard recorded, with --run",
        )
    return recording


def _out(options: argparse.Namespace, recording: Run) -> Path:
    from tb_plugin.cli.named_files import local_result
    from tb_plugin.cli.recordings import folder_of
    from tb_plugin.storage import is_remote

    if options.out is not None:
        return local_result(options.out)
    folder = folder_of(recording)
    return Path(DEFAULT_DIR) if is_remote(folder) else Path(folder) / DEFAULT_DIR


def _attempts(
    recording: Run, options: argparse.Namespace, out: Path
) -> Iterator[tuple[AttemptFiles, Path]]:
    """The attempts asked for, and where each one's files go."""
    attempts = recording.attempts
    if not attempts:
        raise Failure(
            "none of the files can be read",
            where=recording.found.name,
            remedy="the problems listed above say why",
        )
    if options.attempt is not None:
        chosen = [a for a in attempts if a.index == options.attempt]
        if not chosen:
            raise Failure(
                f"there is no attempt {options.attempt}",
                where=recording.found.name,
                remedy=f"its attempts are 1 to {len(attempts)}",
            )
        yield chosen[0], out
        return
    for attempt in attempts[:-1]:
        yield attempt, out / f"attempt_{attempt.index}"
    yield attempts[-1], out


def _attempt_name(attempt: AttemptFiles) -> str:
    return next(iter(attempt.files.values())).attempt


def _planned(
    recording: Run,
    attempt: AttemptFiles,
    kinds: Sequence[str],
    options: argparse.Namespace,
) -> Iterator[Planned]:
    from tb_plugin.cli.export.plan import Plan

    plan = Plan(recording, attempt)
    for rank in attempt.files:
        if options.rank in (None, rank):
            for kind in kinds:
                yield from plan.files(kind, rank)


def _in_words(error: UnmadeError) -> Failure:
    return Failure(error.what, where=error.where, remedy=error.remedy)


def _nothing(recording: Run, kinds: Sequence[str]) -> Failure:
    from tb_plugin.cli.recordings import folder_of

    sources = dict.fromkeys(s for kind in kinds for s in _SOURCES.get(kind, ()))
    return Failure(
        f"{NOTHING} of what was asked for" + _reasons(recording, sources),
        where=folder_of(recording),
        remedy=f"record with {' or '.join(sources)} switched on, and a schedule that is"
        " reached",
    )


def _tell_missing(
    recording: Run, kinds: Sequence[str], folders: dict[Path, list[Planned]]
) -> None:
    """What was asked for and is not in the recording."""
    made = {file.kind for files in folders.values() for file in files}
    for kind in kinds:
        if kind not in made:
            sources = _SOURCES.get(kind, ())
            print(
                f"memboard export: {NOTHING} for"
                f" --{kind}{_reasons(recording, sources)}",
                file=sys.stderr,
            )


def _reasons(recording: Run, sources: Iterable[str]) -> str:
    """Why sources did not record, in their own words."""
    wanted = set(sources)
    told = [
        f"{source.source}: {source.reason}"
        for source in recording.catalogue.recorded()
        if source.source in wanted and source.status != "recorded" and source.reason
    ]
    return f" ({'; '.join(told)})" if told else ""
