"""Bring memory snapshots into a run of a logdir.

Each FILE becomes a capture of the rank in its name (`memory_snapshot_rank3.pickle`,
`step_40/rank3_memory_snapshot.pickle`), in the form that MemBoard records: small, quick to
open, beside the other ranks of the run. A file without a rank in its name is rank 0's. The
files stay as they are; one too large for a capture is copied. A file that cannot be read
is named, and the others are imported.
"""

# ruff: noqa: PTH119, PTH120
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memboard.collector.cli.failure import Failure
from memboard.collector.format.capture import encode_body
from memboard.collector.format.names import IMPORT_JOB, RANK_FILES_DIR, rank_file_name
from memboard.collector.format.records import Capture, ClockAnchor, Close, Header, Note
from memboard.collector.format.sizes import counted
from memboard.collector.process.rank import new_attempt
from memboard.collector.writing.header import versions
from memboard.collector.writing.rank_file import RankFile
from memboard.tb_plugin import storage
from memboard.tb_plugin.cli.opening import open_files, path_or_url
from memboard.tb_plugin.cli.options import whole_number
from memboard.tb_plugin.cli.text import complain
from memboard.tb_plugin.formats.file_listing import FoundFile
from memboard.tb_plugin.formats.snapshots.files.listing import (
    FoundSnapshot,
    snapshot_at,
)
from memboard.tb_plugin.index.search.layout import run_folder
from memboard.tb_plugin.worker.cache import FileKey
from memboard.tb_plugin.worker.errors import ImportFailedError
from memboard.tb_plugin.worker.importer import Importer
from memboard.tb_plugin.worker.limits import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.collector.format.records import CaptureTable

_MAX_RANK: Final = 9_999_999
_MAX_NAMED: Final = 20
_PIECE: Final = 16 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard import`."""
    parser.add_argument(
        "files",
        nargs="+",
        type=path_or_url,
        metavar="FILE",
        help="a path, or a URL such as s3://bucket/snapshot.pickle",
    )
    parser.add_argument(
        "--logdir",
        required=True,
        type=Path,
        metavar="L",
        help="the logdir of TensorBoard",
    )
    parser.add_argument(
        "--run",
        required=True,
        type=_run_name,
        dest="name",
        metavar="R",
        help="the run, a directory of the logdir; an existing one gets another attempt",
    )
    parser.add_argument(
        "--rank",
        type=whole_number(0, _MAX_RANK),
        metavar="N",
        help="the rank of all files (default: as in their names)",
    )


def run(options: argparse.Namespace) -> int:
    """Import what can be read."""
    logdir: Path = options.logdir.expanduser()
    if logdir.exists() and not logdir.is_dir():
        raise Failure(
            "the logdir is a file",
            where=logdir,
            remedy="name a directory with --logdir",
        )
    good, bad = open_files(options.files, folders=False, traces=False)
    read, large, failed = _read([_source_of(str(path), options.rank) for path in good])
    complain("import", [*bad, *failed])
    if not read and not large:
        return 2
    run_dir = logdir / options.name
    for line in (*_write_ranks(run_dir, read), *_copy(run_dir, large)):
        print(line)
    print(f"To see it:\n  tensorboard --logdir {options.logdir}")
    return 0


def _run_name(text: str) -> str:
    if not text.strip() or Path(text).is_absolute() or ".." in Path(text).parts:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a run: name a directory below the logdir, such as exp1"
        )
    return text


Snapshot = tuple[FoundSnapshot, bytes]
"""A file, and its capture as it goes to disk."""


def _source_of(path: str, rank: int | None) -> FoundSnapshot:
    """A file by its name; `rank` where the user named it."""
    key = FileKey.of(storage.at(path).stat(path))
    layout = run_folder(os.path.dirname(path), os.sep)[1]
    snapshot = snapshot_at(FoundFile("", path, path, key), layout)
    return snapshot if rank is None else replace(snapshot, rank=rank)


def _capture(source: FoundSnapshot, tables: Mapping[str, CaptureTable]) -> Capture:
    """A snapshot as a recording has it."""
    names = source.said
    return Capture(
        kind="history",
        time_ns=source.key.mtime_ns,
        step=names.step,
        phase=names.phase or "train",
        function=names.function,
        iteration=names.iteration,
        context=names.context,
        label=names.label,
        meta={
            "imported_from": {
                "path": source.path.encode("utf-8", "replace").decode(),
                "size_bytes": source.num_bytes,
                "mtime_ns": source.key.mtime_ns,
            }
        },
        tables=tables,
    )


def _read(
    sources: Sequence[FoundSnapshot],
) -> tuple[list[Snapshot], list[FoundSnapshot], list[Failure]]:
    """Snapshots as captures, those too large for one, and those that cannot be read."""
    importer = Importer()
    read: list[Snapshot] = []
    large: list[FoundSnapshot] = []
    failed: list[Failure] = []
    for source in sources:
        try:
            tables = _tables(importer, source.path)
            read.append((source, encode_body(_capture(source, tables))))
        except ImportFailedError as error:  # noqa: PERF203  # the others go on
            failed.append(Failure(str(error), where=source.path, remedy=error.remedy))
        except ValueError:  # what `encode_body` does not take
            large.append(source)
    importer.close()
    return read, large, failed


def _tables(importer: Importer, path: str) -> Mapping[str, CaptureTable]:
    """The tables of a file, once they are read; a terminal shows how far that is."""
    if not sys.stderr.isatty():
        return importer.tables(path, SNAPSHOT)

    def note(share: float) -> None:
        text = f"{share:4.0%} of {os.path.basename(path)!r}"
        print(f"\r{text}", end="", file=sys.stderr)

    try:
        return importer.tables(path, SNAPSHOT, note=note)
    finally:
        print("\r\x1b[K", end="", file=sys.stderr)


def _write_ranks(run_dir: Path, snapshots: Sequence[Snapshot]) -> list[str]:
    """Write one attempt with a file for each rank; a line for the user about each."""
    if not snapshots:
        return []
    started = min(source.key.mtime_ns for source, _ in snapshots)
    world_size = max(
        max((snapshot.rank or 0) + 1, snapshot.said.world_size or 0)
        for snapshot, _ in snapshots
    )
    attempt, job = new_attempt(started), f"{IMPORT_JOB}{secrets.token_hex(8)}"
    by_rank: dict[int, list[Snapshot]] = {}
    for source, body in snapshots:
        by_rank.setdefault(source.rank or 0, []).append((source, body))
    lines = []
    for rank, of_rank in sorted(by_rank.items()):
        header = Header(
            run_id=run_dir.name,
            attempt=attempt,
            job=job,
            rank=rank,
            local_rank=0,
            world_size=world_size,
            local_world_size=None,
            node_rank=None,
            host="",
            pid=0,
            started=ClockAnchor(wall_ns=started, monotonic_ns=started),
            device_type="",
            # Of what writes this file; who dumped the snapshots is not known.
            versions={"memboard": versions()["memboard"]},
        )
        path = run_dir.joinpath(*RANK_FILES_DIR, rank_file_name(rank, attempt))
        _write(
            path, header, sorted(of_rank, key=lambda snapshot: snapshot[0].key.mtime_ns)
        )
        guessed = sum(source.rank is None for source, _ in of_rank)
        note = (
            f" ({guessed} without a rank in the name: give --rank)" if guessed else ""
        )
        lines.append(
            f"rank {rank}: {counted(len(of_rank), 'snapshot')}{note} in {path}"
        )
    return lines


def _write(path: Path, header: Header, snapshots: Sequence[Snapshot]) -> None:
    """Write a rank's file, whole or not at all."""
    names = ", ".join(
        repr(os.path.basename(source.path)) for source, _ in snapshots[:_MAX_NAMED]
    )
    file = RankFile(max_bytes=0)
    file.open(path, header)
    with ExitStack() as unless_whole:
        unless_whole.callback(path.unlink, missing_ok=True)
        unless_whole.callback(file.release)
        file.notes.add(_note(header, "history", "recorded", f"Imported from {names}."))
        file.notes.add(
            _note(
                header,
                "device",
                "absent",
                "This rank was imported from memory snapshots: it has no steps.",
                "Record the training itself with `mb.record`.",
            )
        )
        file.flush()
        for source, body in snapshots:
            # Only what lists it is needed of the capture: its body is made already.
            file.write_capture(_capture(source, {}), body)
        ended = max(source.key.mtime_ns for source, _ in snapshots)
        file.close(Close(time_ns=ended, how="closed", message=""))
        unless_whole.pop_all()


def _note(
    header: Header, name: str, status: str, reason: str, remedy: str = ""
) -> Note:
    data = {
        "name": name,
        "status": status,
        "reason": reason,
        "remedy": remedy,
        "cost": "",
    }
    return Note(kind="source", time_ns=header.started.wall_ns, step=None, data=data)


def _copy(run_dir: Path, large: Sequence[FoundSnapshot]) -> list[str]:
    """Copy files beside the ranks', with rank and step in their names."""
    lines = []
    for source in large:
        rank, number = source.rank or 0, source.said.step
        step = "" if number is None else f"_step{number}"
        file_name = f"memory_snapshot_rank{rank}{step}_{secrets.token_hex(4)}.pickle"
        run_dir.mkdir(parents=True, exist_ok=True)
        unfinished = run_dir / f"{file_name}.tmp"
        try:
            file, _ = storage.at(source.path).open(source.path)
            with file, unfinished.open("wb") as copy:
                shutil.copyfileobj(file, copy, _PIECE)
            os.utime(unfinished, ns=(source.key.mtime_ns, source.key.mtime_ns))
            unfinished.replace(run_dir / file_name)
        finally:
            unfinished.unlink(missing_ok=True)
        lines.append(
            f"rank {rank}: too large for a capture, copied to {run_dir / file_name}"
        )
    return lines
