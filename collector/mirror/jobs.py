"""Files that wait for the mirror, as a list beside the rank's file and as a task.

Recordings are found again by their names. Of all else (traces, pickles, reports) the list
says what waits, and where it goes: the next start of a killed run takes it up. A task is
the same for a process that uploads after this one.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from memboard.collector.process.rank import Identity  # noqa: TC001  # msgspec looks it up
from memboard.collector.process.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX: Final = ".waiting.json"
"""Behind the name that the rank's file has without its ending."""

_MAX_BYTES: Final = 1 << 26


class Job(msgspec.Struct, eq=False):
    kind: str
    path: Path
    url: str
    """The mirror's, with its variables filled in."""
    key: str
    delete_after: bool = False
    may_go: bool = False
    """The file here may be deleted once its copy is confirmed, by whoever asks."""
    is_begun: bool = False
    """What lies at the other end may be of an earlier try."""
    look_first: bool = False
    """An earlier attempt may have uploaded it."""


class Task(msgspec.Struct, kw_only=True):
    """The standard input of a process that uploads."""

    settings: dict[str, Any]  # Of `RemoteConfig`
    run_dir: Path
    stem: str
    who: Identity
    jobs: list[Job]
    seconds: float


def encode(value: Any) -> bytes:
    """Jobs or a task as JSON.

    Raises:
        TypeError: it holds what another process cannot be given.
    """
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_text_of), indent=1)


def decode_task(data: bytes) -> Task:
    """The task that `encode` was given."""
    return msgspec.json.decode(data, type=Task, dec_hook=_path_of)


def shown(path: Path, run_dir: Path) -> str:
    """The path below the run's directory, with slashes; else the whole."""
    with contextlib.suppress(ValueError):
        path = path.relative_to(run_dir)
    return path.as_posix()


def save(path: Path, jobs: Iterable[Job], run_dir: Path) -> None:
    """Write the list of what waits, whole or not at all; where nothing does, delete it.

    Raises:
        OSError: it cannot be written.
    """
    listed = [
        msgspec.structs.replace(job, path=Path(shown(job.path, run_dir)))
        for job in jobs
    ]
    if not listed:
        path.unlink(missing_ok=True)
        return
    write_whole(path, encode(listed))


def load(path: Path, run_dir: Path) -> list[Job]:
    """What a list says; nothing where it cannot be read."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            return []
        jobs = msgspec.json.decode(path.read_bytes(), type=list[Job], dec_hook=_path_of)
    except (OSError, ValueError, RecursionError):
        return []
    for job in jobs:
        job.path, job.look_first = run_dir / job.path, True
    return jobs


def _text_of(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be given to another process")


def _path_of(kind: type, text: str) -> Any:
    return kind(text)
