"""Files for other tools at the end of a recording: `memboard export`, run beside it.

What is to be written is noted in a small file beside the rank's own, and a process of its
own writes it, so that neither its memory, its time nor any fault of it is training's. A
process that was killed leaves the note: the next start of the same rank in that directory
finishes what is left, and so does `memboard report`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from memboard.collector.afterwards import detached
from memboard.collector.core.warn_once import warn
from memboard.collector.format.names import (
    DUMPS_DIR,
    RANK_FILES_DIR,
    parse_rank_file_name,
)
from memboard.collector.process.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.collector.config import RecordConfig

SUFFIX: Final = ".dumps.json"
"""Behind the name that the rank's file has without its ending."""

MAX_TRIES: Final = 3

_MAX_BYTES: Final = 1 << 20

Status: TypeAlias = Literal["waiting", "written", "done", "failed"]
"""`written`: the mirror may not have the files yet."""


@dataclass(slots=True, kw_only=True)
class Pending:
    """What is to be written of one recording, and how far that is."""

    recorded: str
    """Name of the rank's file, beside this one."""
    folder: str
    """Where the files go, absolute."""
    options: list[str]  # Of `memboard export`
    status: Status = "waiting"
    num_tries: int = 0
    into: str = ""
    """Where they go in fact, once they are made: beside those of an earlier start."""
    files: list[str] = field(default_factory=list)
    problem: str = ""
    """What could not be written, and why."""

    def save(self, path: Path) -> None:
        """Write it, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        write_whole(path, msgspec.json.format(msgspec.json.encode(self), indent=1))


def load(path: Path) -> Pending | None:
    """What a file says; None where it is none of ours."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        pending = msgspec.json.decode(path.read_bytes(), type=Pending)
    except (OSError, ValueError, RecursionError):
        return None
    return pending if Path(pending.recorded).name == pending.recorded else None


def notes_of(run_dir: Path, rank: int | None = None) -> Iterator[tuple[Path, Pending]]:
    """The notes of a run, or of one rank of it, the oldest first."""
    folder = run_dir.joinpath(*RANK_FILES_DIR)
    for path in sorted(folder.glob(f"rank*{SUFFIX}")):
        rank_file = parse_rank_file_name(path.name.removesuffix(SUFFIX) + ".events")
        pending = load(path) if rank_file is not None else None
        if (
            rank_file is not None
            and pending is not None
            and rank in (None, rank_file.rank)
        ):
            yield path, pending


def log_of(run_dir: Path, rank: int) -> Path:
    """Where the process writes what went wrong with itself."""
    return run_dir.joinpath(*RANK_FILES_DIR, f"rank{rank:05d}.dumps.log")


class Dumps:
    """What a recording leaves besides its own file."""

    def __init__(self, config: RecordConfig, run_dir: Path) -> None:
        """`dumps_dir` is taken now: training may change the working directory."""
        self._options = [f"--{kind}" for kind in config.dumps]
        self._run_dir = run_dir
        folder = Path(config.dumps_dir).expanduser() if config.dumps_dir else None
        self._folder = run_dir / DUMPS_DIR if folder is None else folder.absolute()
        self.is_on = bool(config.dumps)

    def leave(self, recorded: Path | None, stem: str, rank: int, task: bytes) -> None:
        """Note what is to be written, and start writing it. Never raises, waits for none.

        Args:
            recorded: the rank's file, which is complete.
            stem: its name without ending and segment.
            rank: this process's.
            task: what takes the files to the mirror; empty: they stay here.
        """
        if not self.is_on or recorded is None:
            return
        pending = Pending(
            recorded=recorded.name, folder=str(self._folder), options=self._options
        )
        try:
            pending.save(recorded.with_name(f"{stem}{SUFFIX}"))
            start_writing(self._run_dir, rank, task)
        except (OSError, ValueError, SubprocessError) as error:
            warn(
                "the files for other tools that dumps asks for are not being written:"
                " %s. The recording itself is complete; write them with: memboard export"
                " %s -o %s %s",
                f"{type(error).__name__}: {error}"[:500],
                recorded,
                self._folder,
                " ".join(self._options),
            )


def start_writing(run_dir: Path, rank: int, task: bytes = b"") -> None:
    """Start the process that writes what is noted of a rank.

    Raises:
        OSError: it cannot be started.
    """
    log = log_of(run_dir, rank)
    detached.start(
        "memboard.tb_plugin.cli.afterwards.dumps", [str(run_dir), str(rank)], log, task
    )


def resume(run_dir: Path, rank: int, task: bytes = b"") -> None:
    """Finish what earlier starts of a rank left. Never raises, waits for nothing."""
    try:
        if any(is_left(pending, task) for _, pending in notes_of(run_dir, rank)):
            start_writing(run_dir, rank, task)
    except (OSError, ValueError, SubprocessError) as error:
        warn("files for other tools of an earlier start are not written", error=error)


def is_left(pending: Pending, task: bytes = b"") -> bool:
    """Whether there is anything to do; `task`: as for `Dumps.leave`."""
    return pending.status == "waiting" or (bool(task) and pending.status == "written")
