"""Write files for other tools from a recording, also of a job that died.

LOGDIR is a logdir, a run's directory (either also as a URL), or one rank's file. Keys and
names are MemProfiler's. Earlier attempts' files are in DIR/attempt_N.
Without the first four options: --yaml --modules --config.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memboard.collector.cli.failure import Failure
from memboard.collector.format.names import DUMPS_DIR, EXPORT_MARK
from memboard.tb_plugin.cli.export.contents import Contents
from memboard.tb_plugin.cli.opening import (
    attempt_of,
    choose_run,
    folder_of,
    is_folder,
    local_path,
    open_place,
    path_or_url,
    read_whole,
    result_folder,
    run_of_file,
    runs_at,
)
from memboard.tb_plugin.cli.options import add_run, positive, whole_number
from memboard.tb_plugin.cli.text import complain, problem_text
from memboard.tb_plugin.formats.memprofiler.rows import UNITS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memboard.tb_plugin.cli.export.contents import Kind, PlannedFile
    from memboard.tb_plugin.index.run import Run

    Folders = Mapping[Path, Sequence[PlannedFile]]

Existing: TypeAlias = Literal["refuse", "replace", "keep"]
"""Files of the same names: an error, replaced, or kept and the new ones put beside them."""

DEFAULT_KINDS: Final[tuple[Kind, ...]] = ("yaml", "modules", "config")

_FILES: Final[Mapping[Kind, str]] = {
    "yaml": "calls and modules, as rank_R_*memory_stats.yaml",
    "modules": "module memory, *_modules.csv and tables fsdp_mem_*.log",
    "history": "snapshots for memory_viz, cuda_alloc_rank_R.*.pickle",
    "config": "the settings that were in effect, rank_R_config.yaml",
}
_MAX_LISTED: Final = 5
_NOTHING: Final = "the recording holds nothing"
_SOURCES: Final[Mapping[Kind, tuple[str, ...]]] = {
    "yaml": ("functions", "modules"),
    "modules": ("modules",),
    "history": ("history",),
    "config": (),
}
"""Settings that must have been on for each kind of file."""
_MARK: Final = {
    "written_by": "memboard export",
    "what": "The files beside this one were made from a MemBoard recording and can be"
    " made again. TensorBoard's MemBoard tab shows the recording itself where it lies in"
    " the same logdir.",
}


class NothingRecordedError(Failure):
    """The recording holds nothing of what was wanted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard export`."""
    parser.add_argument("logdir", type=path_or_url, metavar="LOGDIR")
    for kind, names in _FILES.items():
        parser.add_argument(f"--{kind}", action="store_true", help=names)
    add_run(parser, "which run, where there are more")
    parser.add_argument(
        "--rank", type=whole_number(0), metavar="N", help="only this rank"
    )
    parser.add_argument(
        "--attempt", type=positive, metavar="N", help="only this attempt, from 1"
    )
    parser.add_argument(
        "--depth", type=positive, metavar="N", help="of the tables (default: as set)"
    )
    parser.add_argument(
        "--units",
        choices=tuple(UNITS),
        metavar="U",
        help=f"of their sizes: {', '.join(UNITS)} (default: as set)",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=local_path,
        metavar="DIR",
        help=f"where to (default: {DUMPS_DIR} in the run's directory)",
    )
    both = parser.add_mutually_exclusive_group()
    both.add_argument(
        "--force", action="store_true", help="replace files that are there already"
    )
    both.add_argument(
        "--keep",
        action="store_true",
        help="keep such files, and write into a directory beside",
    )


def run(options: argparse.Namespace) -> int:
    """Write what the arguments name."""
    kinds = [kind for kind in _FILES if getattr(options, kind)] or DEFAULT_KINDS
    if (options.depth or options.units) and "modules" not in kinds:
        raise Failure(
            "--depth and --units are for the tables of --modules",
            remedy="add --modules, or leave them out",
        )
    recording = _chosen(options)
    out = options.out
    if out is None:
        out = result_folder(folder_of(recording)) / DUMPS_DIR
    num_written = 0
    for result in export(
        recording,
        kinds,
        out,
        rank=options.rank,
        attempt=options.attempt,
        depth=options.depth,
        units=options.units,
        existing="keep" if options.keep else "replace" if options.force else "refuse",
    ):
        if isinstance(result, Path):
            print(result)
            num_written += 1
        else:
            complain("export", [result])
    return 0 if num_written else 2


def export(
    recording: Run,
    kinds: Sequence[Kind],
    out: Path,
    *,
    rank: int | None = None,
    attempt: int | None = None,
    depth: int | None = None,
    units: str | None = None,
    existing: Existing,
) -> Iterator[Path | str]:
    """Write files one by one; yields each one's path when it is whole, and complaints.

    `depth`, `units`: of tables of modules; None: as the recording's settings say.

    Raises:
        NothingRecordedError: there is nothing to write.
        Failure: files are there already, or none of the recording's can be read.
        OSError: a file cannot be written; those before it are whole.
    """
    read_whole(recording, rank)
    yield from map(problem_text, recording.problems)
    chosen = attempt_of(recording, attempt)
    attempts = recording.attempts if attempt is None else [chosen]
    contents = {
        out if attempt is chosen else out / f"attempt_{attempt.index}": Contents(
            recording, attempt, depth=depth, units=units
        )
        for attempt in attempts
    }
    folders = dict(_folders(contents, kinds, rank, existing))
    if not any(folders.values()):
        sources = dict.fromkeys(name for kind in kinds for name in _SOURCES[kind])
        raise NothingRecordedError(
            f"{_NOTHING} of what was asked for{_reasons(recording, sources)}",
            where=folder_of(recording),
            remedy=(
                f"record with {' or '.join(sources)} switched on, and a schedule that is"
                " reached"
                if sources
                else "name a recording of a training: other files hold no settings"
            ),
        )
    if existing != "replace":
        for folder, files in folders.items():
            _refuse_to_overwrite(folder, files)
    for folder, files in folders.items():
        for file in files:
            try:
                data = file.make()
            except Failure as failure:  # noqa: PERF203  # the other files go on
                yield str(failure)
            else:
                _mark(folder)
                _write(folder / file.name, data)
                yield folder / file.name
    made = {file.kind for files in folders.values() for file in files}
    for kind in kinds:
        if kind not in made:
            yield f"{_NOTHING} for --{kind}{_reasons(recording, _SOURCES[kind])}"


def _chosen(options: argparse.Namespace) -> Run:
    place = open_place(options.logdir)
    if isinstance(place, Path) and place.is_file():
        return run_of_file(place)
    if isinstance(place, str) and not is_folder(place):
        raise Failure(
            "this is a file; a directory was expected",
            where=place,
            remedy="name the logdir, or one run in it",
        )
    recording = choose_run(runs_at(place), options.name, place)
    if recording.made_of != "recording":
        raise Failure(
            "this run is made of another tool's files; there is nothing to export",
            where=recording.found.title,
            remedy="choose a run that MemBoard recorded, with --run",
        )
    return recording


def _folders(
    contents: Mapping[Path, Contents],
    kinds: Sequence[Kind],
    rank: int | None,
    existing: Existing,
) -> Iterator[tuple[Path, list[PlannedFile]]]:
    """The files of each attempt, and the directory they go into."""
    for folder, of_attempt in contents.items():
        files = [
            file
            for of_rank in of_attempt.ranks
            if rank in (None, of_rank)
            for kind in kinds
            for file in of_attempt.files(kind, of_rank)
        ]
        is_beside = existing == "keep" and any(
            (folder / file.name).exists() for file in files
        )
        yield folder / of_attempt.start if is_beside else folder, files


def _reasons(recording: Run, sources: Iterable[str]) -> str:
    """Why sources did not record, as the recording says it."""
    wanted = set(sources)
    reasons = [
        f"{source.source}: {source.reason}"
        for source in recording.catalogue.recorded()
        if source.source in wanted and source.status != "recorded" and source.reason
    ]
    return f" ({'; '.join(reasons)})" if reasons else ""


def _refuse_to_overwrite(folder: Path, files: Sequence[PlannedFile]) -> None:
    there = [file.name for file in files if (folder / file.name).exists()]
    if there:
        more = len(there) - _MAX_LISTED
        names = ", ".join(there[:_MAX_LISTED]) + (
            f" and {more} more" if more > 0 else ""
        )
        raise Failure(
            f"files are there already, nothing was written: {names}",
            where=folder,
            remedy="choose another directory with -o, or add --force to replace them",
        )


def _mark(folder: Path) -> None:
    """Make the folder, and have TensorBoard know the files in it for ours."""
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / EXPORT_MARK
    if not mark.exists():
        _write(mark, json.dumps(_MARK, indent=2).encode() + b"\n")


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
