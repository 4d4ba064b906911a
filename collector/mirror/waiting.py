"""Files that wait for the mirror, and the list of them that a killed process leaves.

Recordings are found again by their names. Of all else (traces, pickles, reports) a small
JSON file beside the rank's own says what waits, and where it goes; the next start of the
run takes it up.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from collector.config.sections import RemoteConfig
    from collector.core.rank import Identity

SUFFIX: Final = ".waiting.json"
"""Behind the name that the rank's file has without its ending."""

_MAX_BYTES: Final = 1 << 26


@dataclass(slots=True)
class Job:
    """A file that waits."""

    kind: str
    path: Path
    url: str
    """The mirror's, with its variables filled in."""
    key: str
    """Below the url."""
    delete_after: bool = False
    look_first: bool = False
    """An earlier attempt may have uploaded it."""


def to_plain(jobs: Iterable[Job], run_dir: Path) -> list[dict[str, Any]]:
    """Jobs as JSON holds them, paths below the run's directory where they are."""
    return [
        {**asdict(job), "path": shown(job.path, run_dir), "look_first": True}
        for job in jobs
    ]


def task_of(
    settings: RemoteConfig,
    run_dir: Path,
    stem: str,
    who: Identity,
    jobs: Iterable[Job],
    seconds: float,
) -> bytes:
    """What the process of `finishing` takes on its standard input.

    Raises:
        TypeError: `storage_options` holds what another process cannot be given.
    """
    task = {
        "settings": msgspec.structs.asdict(settings),
        "run_dir": str(run_dir),
        "stem": stem,
        "who": asdict(who),
        "jobs": to_plain(jobs, run_dir),
        "seconds": seconds,
    }
    return json.dumps(task).encode()


def from_plain(plain: Iterable[dict[str, Any]], run_dir: Path) -> list[Job]:
    """What `to_plain` made.

    Raises:
        TypeError: it did not make this.
    """
    jobs = [Job(**{**job, "path": run_dir / job["path"]}) for job in plain]
    for job in jobs:
        if not all(isinstance(text, str) for text in (job.kind, job.url, job.key)):
            raise TypeError("no list of files that wait")
    return jobs


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
    plain = to_plain(jobs, run_dir)
    if not plain:
        path.unlink(missing_ok=True)
        return
    begun = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        begun.write_text(json.dumps(plain, indent=1), encoding="utf-8")
        begun.replace(path)
    finally:
        begun.unlink(missing_ok=True)


def load(path: Path, run_dir: Path) -> list[Job]:
    """What a list says; nothing where it cannot be read."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            return []
        return from_plain(json.loads(path.read_bytes()), run_dir)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
