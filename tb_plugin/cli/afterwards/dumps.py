"""Files that the setting `dumps` asks for.

They are made by `python -m memboard.tb_plugin.cli.afterwards.dumps RUN RANK`.
Files are made in a folder of their own and then moved into place, so that a process that
is killed leaves none that breaks off, and the next one knows which are this recording's.
One process at a time works for a rank, in the order of its starts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memboard.collector.afterwards.dumps import (
    MAX_TRIES,
    SUFFIX,
    is_left,
    log_of,
    notes_of,
)
from memboard.collector.cli.failure import Failure
from memboard.collector.format.names import (
    EXPORT_MARK,
    RANK_FILES_DIR,
    parse_rank_file_name,
)
from memboard.collector.mirror.finishing import upload
from memboard.tb_plugin.cli.export.command import NothingRecordedError, export
from memboard.tb_plugin.cli.export.contents import KINDS
from memboard.tb_plugin.cli.opening import folder_of, run_of_file
from memboard.tb_plugin.cli.text import complain
from memboard.tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memboard.collector.afterwards.dumps import Pending
    from memboard.tb_plugin.index.run import Run

_MAX_TEXT: Final = 500


def finish(
    run_dir: Path, rank: int, task: bytes = b"", *, waits: bool = True
) -> list[Path]:
    """Write what is noted of a rank, and have it mirrored; the files that are new.

    Raises:
        BlockingIOError: another process is at it, and this one `waits` for none.
        OSError: the notes cannot be written.
    """
    paths: list[Path] = []
    with _locked(run_dir, rank, waits=waits):
        notes = [
            (path, pending)
            for path, pending in notes_of(run_dir, rank)
            if is_left(pending, task)
        ]
        for path, pending in notes:
            if pending.status == "waiting":
                _write(path, pending)
            if pending.status == "written":
                paths += map(Path, pending.files)
        if task and paths:
            upload(task, [("dumps", path) for path in paths])
        for path, pending in notes:
            if task and pending.status == "written":
                pending.status = "done"
                pending.save(path)
    return paths


def finish_all(runs: Iterable[Run]) -> None:
    """Write what killed processes left of these runs; name what cannot be written."""
    for run in runs:
        folder = folder_of(run)
        if run.made_of == "recording" and not is_remote(folder):
            complain("report", _finish_run(Path(folder)))


def _finish_run(run_dir: Path) -> Iterator[str]:
    ranks = {_rank_of(path) for path, note in notes_of(run_dir) if is_left(note)}
    for rank in sorted(ranks):
        try:
            for path in finish(run_dir, rank, waits=False):
                yield f"written now, as the recording asked for: {path}"
        except BlockingIOError:  # noqa: PERF203  # the other ranks go on
            yield f"the files that dumps asks for are being written: {run_dir}"
        except OSError as error:
            yield f"the files that dumps asks for cannot be written: {error}"
    for path, pending in notes_of(run_dir):
        if pending.problem:
            yield (
                f"of the files that dumps asks for, in rank {_rank_of(path)}:"
                f" {pending.problem}"
            )


def _rank_of(note: Path) -> int:
    rank_file = parse_rank_file_name(note.name.removesuffix(SUFFIX) + ".events")
    return 0 if rank_file is None else rank_file.rank


@contextlib.contextmanager
def _locked(run_dir: Path, rank: int, *, waits: bool) -> Iterator[None]:
    """While no other process works for this rank; where locks exist."""
    path = run_dir.joinpath(*RANK_FILES_DIR, f".rank{rank:05d}.dumps.lock")
    with path.open("wb") as lock:
        try:
            import fcntl  # absent on Windows

            fcntl.flock(lock, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except (ImportError, OSError):
            pass
        yield


def _write(note: Path, pending: Pending) -> None:
    """Make the files of one recording, and put them into place."""
    pending.num_tries += 1
    pending.save(note)  # one that ends the process is not tried for ever
    unfinished = Path(pending.folder, f".{note.name.removesuffix(SUFFIX)}.part")
    try:
        if not pending.into:
            shutil.rmtree(unfinished, ignore_errors=True)
            pending.problem = _export(
                note.with_name(pending.recorded), unfinished, pending
            )
            if unfinished.is_dir():
                made = sorted(path.name for path in unfinished.iterdir())
                into = _place(made, Path(pending.folder), note)
                pending.into = str(into)
                pending.files = [str(into / name) for name in made]
                pending.save(note)
        if pending.into:
            _move(unfinished, Path(pending.into))
        pending.status = "written"
    except (Failure, OSError) as error:
        pending.problem = f"{type(error).__name__}: {error}"[-_MAX_TEXT:]
        pending.status = "failed" if pending.num_tries >= MAX_TRIES else "waiting"
        sys.stderr.write(f"{pending.problem}\n")
    pending.save(note)


def _export(recorded: Path, out: Path, pending: Pending) -> str:
    """Write the files; what `dumps` lists and is not among them, in words.

    Raises:
        Failure: none of them can be made.
        OSError: one of them cannot be written.
    """
    kinds = [kind for kind in KINDS if f"--{kind}" in pending.options]
    complaints: list[str] = []
    num_written = 0
    try:
        for result in export(run_of_file(recorded), kinds, out, existing="replace"):
            if isinstance(result, Path):
                num_written += 1
            else:
                complaints.append(result)
    except NothingRecordedError as failure:
        return f"{failure}"[-_MAX_TEXT:]
    text = "\n".join(complaints)[-_MAX_TEXT:]
    if not num_written:
        raise Failure(text)
    return text


def _place(names: list[str], folder: Path, note: Path) -> Path:
    """Where the files go: into the folder, or beside those of an earlier start."""
    if not any((folder / name).exists() for name in names if name != EXPORT_MARK):
        return folder
    return folder / note.name.removesuffix(SUFFIX).partition("-")[2]


def _move(made: Path, into: Path) -> None:
    """Move what is not there yet; a process before may have begun to."""
    into.mkdir(parents=True, exist_ok=True)
    if made.is_dir():
        for path in sorted(made.iterdir()):
            path.replace(into / path.name)
        made.rmdir()


def main() -> None:
    """Work for the run and rank in the arguments; standard input holds the task."""
    run_dir, rank = Path(sys.argv[1]), int(sys.argv[2])
    finish(run_dir, rank, sys.stdin.buffer.read())
    with contextlib.suppress(OSError):
        if os.fstat(sys.stdout.fileno()).st_size == 0:  # nothing went wrong
            log_of(run_dir, rank).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
