"""Snapshots of other tools to the files of ranks, or to copies beside them."""

# ruff: noqa: PTH119
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import os
import secrets
import shutil
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from collector.core.rank import new_attempt
from collector.format.capture import encode_body
from collector.format.names import IMPORT_JOB, RANK_FILES_DIR, rank_file_name
from collector.format.records import Capture, ClockAnchor, Header, Note
from collector.writing.header import versions
from collector.writing.rank_file import RankFile
from tb_plugin import storage
from tb_plugin.formats.memprofiler.names import parse_file_name, split_phase
from tb_plugin.formats.snapshots.files.names import parse_names
from tb_plugin.index.snapshot_runs import run_folder
from tb_plugin.jobs.worker.errors import ImportFailedError
from tb_plugin.jobs.worker.importer import Importer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from collector.format.records import CaptureTable
    from tb_plugin.jobs.worker.importer import Import

_PROGRESS_SECONDS: Final = 0.5
_PIECE: Final = 16 << 20
_ABSENT_REASON: Final = "This rank was imported from memory snapshots: it has no steps."
_ABSENT_REMEDY: Final = "Record the training itself with `collector.record`."


@dataclass(frozen=True, slots=True)
class Origin:
    """A file, and the place its snapshot takes in a run."""

    path: str
    """Absolute, or a store's."""
    size_bytes: int
    mtime_ns: int
    rank: int
    is_guessed: bool
    """Nothing told the rank."""
    world_size: int
    step: int | None
    label: str
    phase: str
    function: str
    iteration: int
    context: str


Read = tuple[Origin, bytes]
"""A file, and its capture as it goes to disk."""


def origins_of(paths: Sequence[Path | str], rank: int | None) -> list[Origin]:
    """What names tell of files that are there; `rank` where the user said it."""
    return [_origin(str(path), rank) for path in paths]


def read_all(
    origins: Sequence[Origin],
) -> tuple[list[Read], list[Origin], list[Failure]]:
    """Snapshots as captures, those too large for one, and those that cannot be read."""
    importer = Importer()
    read: list[Read] = []
    large: list[Origin] = []
    failed: list[Failure] = []
    for origin in origins:
        try:
            tables = _tables(importer.start(origin.path))
            read.append((origin, encode_body(_capture(origin, tables))))
        except ImportFailedError as error:  # noqa: PERF203  # the others go on
            failed.append(
                Failure(
                    str(error),
                    where=repr(origin.path)[1:-1],
                    remedy=error.remedy,
                    code=2,
                )
            )
        except ValueError:  # what `encode_body` does not take
            large.append(origin)
    importer.close()
    return read, large, failed


def written(run_dir: Path, read: Sequence[Read]) -> list[str]:
    """Write one attempt with a file for each rank; what was done, for the user.

    Raises:
        OSError: a file cannot be written; it is not left behind.
    """
    if not read:
        return []
    started = min(origin.mtime_ns for origin, _ in read)
    world_size = max(max(o.rank + 1, o.world_size) for o, _ in read)
    attempt, job = new_attempt(started), f"{IMPORT_JOB}{secrets.token_hex(8)}"
    by_rank: dict[int, list[Read]] = {}
    for origin, body in read:
        by_rank.setdefault(origin.rank, []).append((origin, body))
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
            versions=_versions(),
        )
        path = run_dir.joinpath(*RANK_FILES_DIR, rank_file_name(rank, attempt))
        _write(path, header, sorted(of_rank, key=lambda one: one[0].mtime_ns))
        lines.append(_line(rank, of_rank, path))
    return lines


def copied(run_dir: Path, large: Sequence[Origin]) -> list[str]:
    """Copy files beside the ranks' under names that tell rank and step.

    Raises:
        OSError: one cannot be copied; it is not left behind.
    """
    lines = []
    for origin in large:
        step = "" if origin.step is None else f"_step{origin.step}"
        name = f"memory_snapshot_rank{origin.rank}{step}_{secrets.token_hex(4)}.pickle"
        run_dir.mkdir(parents=True, exist_ok=True)
        begun = run_dir / f"{name}.tmp"
        try:
            file, _ = storage.at(origin.path).open(origin.path)
            with file, begun.open("wb") as copy:
                shutil.copyfileobj(file, copy, _PIECE)
            os.utime(begun, ns=(origin.mtime_ns, origin.mtime_ns))
            begun.replace(run_dir / name)
        finally:
            begun.unlink(missing_ok=True)
        lines.append(
            f"rank {origin.rank}: too large for a capture, copied to {run_dir / name}"
        )
    return lines


def _origin(path: str, rank: int | None) -> Origin:
    status = storage.at(path).stat(path)
    folder, base = os.path.split(path)
    _, folders = run_folder(folder, os.sep)
    said = parse_names(base, folders)
    known = said.rank
    label, phase, function, iteration, context = said.label, "train", "", 0, ""
    step = said.step
    theirs = parse_file_name(base)
    if theirs is not None and theirs.kind == "history":
        known, (name, phase) = theirs.rank, split_phase(theirs.function)
        if theirs.context:
            function, iteration, label = name, theirs.iteration, ""
            context = theirs.context
        else:
            step, label = theirs.iteration, name
    return Origin(
        path=path,
        size_bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
        rank=next((r for r in (rank, known) if r is not None), 0),
        is_guessed=rank is None and known is None,
        world_size=said.world_size or 0,
        step=step,
        label=label,
        phase=phase,
        function=function,
        iteration=iteration,
        context=context,
    )


def _tables(found: Import) -> Mapping[str, CaptureTable]:
    shown = sys.stderr.isatty()
    while not found.wait(_PROGRESS_SECONDS):
        if shown:
            share = f"{found.progress:4.0%} of {os.path.basename(found.path)!r}"
            print(f"\r{share}", end="", file=sys.stderr)
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr)
    return found.result()


def _capture(origin: Origin, tables: Mapping[str, CaptureTable]) -> Capture:
    return Capture(
        kind="history",
        time_ns=origin.mtime_ns,
        step=origin.step,
        phase=origin.phase,
        function=origin.function,
        iteration=origin.iteration,
        context=origin.context,
        label=origin.label,
        meta={
            "imported_from": {
                "path": origin.path.encode("utf-8", "replace").decode(),
                "size_bytes": origin.size_bytes,
                "mtime_ns": origin.mtime_ns,
            }
        },
        tables=tables,
    )


def _write(path: Path, header: Header, read: Sequence[Read]) -> None:
    file = RankFile(max_bytes=0)
    file.open(path, header)
    try:
        for note in _notes(header, read):
            file.notes.add(note)
        file.flush()
        for origin, body in read:
            # Only what lists it is needed of the capture: its body is made already.
            file.write_capture(_capture(origin, {}), body)
        ended = max(origin.mtime_ns for origin, _ in read)
        file.close("closed", "", num_dropped=0, time_ns=ended)
    except BaseException:
        file.release()
        path.unlink(missing_ok=True)
        raise


def _notes(header: Header, read: Sequence[Read]) -> list[Note]:
    origins = ", ".join(repr(os.path.basename(origin.path)) for origin, _ in read[:20])
    history = Note(
        kind="source",
        time_ns=header.started.wall_ns,
        step=None,
        data={
            "name": "history",
            "status": "recorded",
            "reason": f"Imported from {origins}.",
            "remedy": "",
            "cost": "",
        },
    )
    absent = {
        "name": "device",
        "status": "absent",
        "reason": _ABSENT_REASON,
        "remedy": _ABSENT_REMEDY,
        "cost": "",
    }
    return [history, replace(history, data=absent)]


def _versions() -> dict[str, str]:
    """Of what wrote this file; who dumped the snapshots is not known."""
    return {"memboard": versions()["memboard"]}


def _line(rank: int, read: Sequence[Read], path: Path) -> str:
    many = "snapshot" if len(read) == 1 else "snapshots"
    guessed = sum(origin.is_guessed for origin, _ in read)
    note = ""
    if guessed:
        note = f" ({guessed} of a name that tells no rank: say which with --rank)"
    return f"rank {rank}: {len(read)} {many}{note} in {path}"
