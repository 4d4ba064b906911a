"""The process that writes the files of `dumps`: `python -m tb_plugin.cli.dumps_process`.

Files are made in a folder of their own and then moved into place, so that a process that
is killed leaves none that breaks off, and the next one knows which are this recording's.
One process at a time works for a rank, in the order of its starts.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.afterwards.dumps import (
    MAX_TRIES,
    NOTHING,
    SUFFIX,
    is_left,
    log_of,
    notes_of,
)
from collector.format.names import EXPORT_MARK, RANK_FILES_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.afterwards.dumps import Pending

_MAX_SAID: Final = 500


def finish(
    run_dir: Path, rank: int, task: bytes = b"", *, waits: bool = True
) -> list[Path]:
    """Write what is noted of a rank, and have it mirrored; the files that are new.

    Raises:
        BlockingIOError: another process is at it, and this one `waits` for none.
        OSError: the notes cannot be written.
    """
    found: list[Path] = []
    with _alone(run_dir, rank, waits=waits):
        notes = [
            (path, pending)
            for path, pending in notes_of(run_dir, rank)
            if is_left(pending, task)
        ]
        for path, pending in notes:
            if pending.status == "waiting":
                _write(path, pending)
            if pending.status == "written":
                found += map(Path, pending.files)
        if task and found:
            from collector.mirror.finishing import upload

            upload(json.loads(task), [("dumps", path) for path in found])
        for path, pending in notes:
            if task and pending.status == "written":
                pending.status = "done"
                pending.save(path)
    return found


@contextlib.contextmanager
def _alone(run_dir: Path, rank: int, *, waits: bool) -> Iterator[None]:
    """While no other process works for this rank; where locks exist."""
    lock = run_dir.joinpath(*RANK_FILES_DIR, f".rank{rank:05d}.dumps.lock")
    with lock.open("wb") as held:
        try:
            import fcntl

            fcntl.flock(held, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except (ImportError, OSError):
            pass
        yield


def _write(note: Path, pending: Pending) -> None:
    """Make the files of one recording, and put them into place."""
    pending.num_tries += 1
    pending.save(note)  # one that ends the process is not tried for ever
    begun = Path(pending.folder, f".{note.name.removesuffix(SUFFIX)}.part")
    try:
        if not pending.into:
            shutil.rmtree(begun, ignore_errors=True)
            code, said = _export(
                note.with_name(pending.recorded), begun, pending.options
            )
            pending.problem = said[-_MAX_SAID:]
            if code and not _is_absent(said):
                _give_up(note, pending, said or f"it ended with code {code}")
                return
            if begun.is_dir():
                made = sorted(path.name for path in begun.iterdir())
                into = _place(made, Path(pending.folder), note)
                pending.into = str(into)
                pending.files = [str(into / name) for name in made]
                pending.save(note)
        if pending.into:
            _move(begun, Path(pending.into))
    except OSError as error:
        _give_up(note, pending, f"{type(error).__name__}: {error}")
        return
    pending.status = "written"
    pending.save(note)


def _give_up(note: Path, pending: Pending, problem: str) -> None:
    """For now, or for good."""
    pending.problem = problem[-_MAX_SAID:]
    pending.status = "failed" if pending.num_tries >= MAX_TRIES else "waiting"
    pending.save(note)
    sys.stderr.write(f"{problem}\n")


def _export(recorded: Path, out: Path, options: list[str]) -> tuple[int, str]:
    """Run `memboard export`; its code, and what it complains of."""
    from tb_plugin.cli import main

    said, named = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(named):
        code = main(["export", str(recorded), "-o", str(out), "--force", *options])
    return code, said.getvalue().strip()


def _place(names: list[str], folder: Path, note: Path) -> Path:
    """Where the files go: into the folder, or beside those of an earlier start."""
    if not any((folder / name).exists() for name in names if name != EXPORT_MARK):
        return folder
    return folder / note.name.removesuffix(SUFFIX).partition("-")[2]


def _move(begun: Path, into: Path) -> None:
    """Move what is not there yet; a process before may have begun to."""
    into.mkdir(parents=True, exist_ok=True)
    if begun.is_dir():
        for made in sorted(begun.iterdir()):
            made.replace(into / made.name)
        begun.rmdir()


def _is_absent(said: str) -> bool:
    """Whether nothing is wrong but that what was asked for was not recorded."""
    lines = [line for line in said.splitlines() if not line.startswith("  ")]
    return bool(lines) and all(NOTHING in line for line in lines)


def main() -> None:
    """Work for the run and rank in the arguments."""
    run_dir, rank = Path(sys.argv[1]), int(sys.argv[2])
    finish(run_dir, rank, sys.stdin.buffer.read())
    log = log_of(run_dir, rank)
    with contextlib.suppress(OSError):
        if os.fstat(sys.stdout.fileno()).st_size == 0:
            log.unlink(missing_ok=True)  # nothing went wrong


if __name__ == "__main__":
    main()
