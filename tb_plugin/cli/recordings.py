"""The recordings of a logdir for verbs that read them: found, chosen, read whole.

The same index and runs as the page's, without its haste: what a request reads in bites,
a command reads to the end.
"""

from __future__ import annotations

import math
import os
import sys
import time
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from collector.format.names import RANK_FILES_DIR, parse_rank_file_name
from tb_plugin import storage
from tb_plugin.budget import Budget
from tb_plugin.cli.named_files import refused
from tb_plugin.index.listing import FoundRun
from tb_plugin.index.logdirs import Logdir
from tb_plugin.index.run import Run
from tb_plugin.index.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tb_plugin import api

_MAX_LISTED: Final = 20
_POLL_SECONDS: Final = 0.02
_WAIT_POLL_SECONDS: Final = 0.5


def unhurried() -> Budget:
    """A budget that allows everything."""
    return Budget(math.inf)


def open_logdir(logdir: Path) -> Store:
    """All of a logdir's runs, found.

    Raises:
        Failure: there is no such directory.
    """
    if not logdir.is_dir():
        what = "there is no such directory"
        if logdir.exists():
            what = "this is a file; a directory was expected"
        raise Failure(
            what,
            where=str(logdir),
            remedy="name the logdir that TensorBoard is given, or one run in it",
        )
    store = Store((Logdir(str(logdir), "", str(logdir.resolve())),))
    store.look()
    while store.index.is_walking:
        store.look()
    return store


def open_named(path: Path | str) -> Store:
    """All runs of a local logdir, or of a store's that is known.

    Raises:
        Failure: there is none, or the store refused.
    """
    return open_store(path) if isinstance(path, str) else open_logdir(path)


def folder_of(run: Run) -> str:
    """The directory of a recorded run; its rank files lie in plugins/memboard below."""
    folder = run.found.folder
    for _ in RANK_FILES_DIR:
        folder = os.path.dirname(folder)  # noqa: PTH120  # a URL is none of pathlib's
    return folder


def open_store(root: str) -> Store:
    """All runs below the URL of a store that is known, found.

    Raises:
        Failure: the store refused, and nothing was found.
    """
    remote = storage.remote_at(root)
    remote.is_patient = False
    store = Store((Logdir(root, "", root),))
    store.look()
    while store.index.is_walking:
        time.sleep(_POLL_SECONDS)
        store.look()
    refusal = remote.refusal()
    if refusal is not None and not store.index.runs:
        raise refused(refusal[1], refusal[0])
    remote.is_patient = True
    return store


def choose_run(store: Store, name: str | None, logdir: Path | str) -> Run:
    """The run of that name; without one, the only run.

    Raises:
        Failure: there is none, or several to choose from.
    """
    runs = store.runs()
    if name is not None:
        wanted = name.rstrip("/")
        named = [r for r in runs if wanted in (r.found.name, r.found.id)]
        if not named:
            raise Failure(
                f"there is no run {name!r}", where=str(logdir), remedy=_choices(runs)
            )
        return named[0]
    recorded = [run for run in runs if run.made_of == "recording"]
    candidates = recorded or runs
    if not candidates:
        raise Failure(
            "there is no recording",
            where=str(logdir),
            remedy="name the directory given to collector.record, or one above it",
        )
    if len(candidates) > 1:
        raise Failure(
            f"there are {len(candidates)} runs",
            where=str(logdir),
            remedy=_choices(runs),
        )
    return candidates[0]


def run_of_file(path: Path) -> Run:
    """The run that one rank's file alone makes; of a segment, with all others of it.

    Raises:
        Failure: it is no rank's file.
    """
    try:
        path.stat()
    except OSError as error:
        raise Failure(
            f"the file cannot be read: {error.strerror or error}", where=str(path)
        ) from error
    if parse_rank_file_name(path.name) is None:
        raise Failure(
            "this is no rank's file",
            where=str(path),
            remedy="name a logdir, a run's directory, or a file rank*.events",
        )
    resolved = path.resolve()
    folder = resolved.parent
    found = FoundRun("file", str(folder.parent.parent), str(folder), folder.name, "/")
    found.list_files()
    found.files = {
        key: parts
        for key, parts in found.files.items()
        if any(part.path.endswith(resolved.name) for part in parts)
    }
    found.version = 1
    return Run(found)


def read_whole(run: Run, rank: int | None = None) -> None:
    """Read all files of a run, or of one rank, and look for damage.

    Raises:
        Failure: it has no such rank.
    """
    if rank is not None and rank not in {r for r, _ in run.found.files}:
        run.update(unhurried(), only=())
        if rank not in run.ranks:
            remedy = "the names of its files tell no rank: leave --rank out"
            if run.ranks:
                remedy = f"its ranks are {run.ranks[0]} to {run.ranks[-1]}"
            raise Failure(
                f"the run has no rank {rank}", where=run.found.name, remedy=remedy
            )
    keys = [key for key in run.found.files if rank in (None, key[0])]
    run.update(unhurried(), only=None if rank is None else keys)
    run.check(unhurried(), rank=rank)


def await_end(recording: Run, seconds: float) -> None:
    """Wait until every rank's file has its end, if that comes soon."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not _has_ended(recording):
        time.sleep(_WAIT_POLL_SECONDS)
        recording.found.list_files()
        recording.update(unhurried())


def _has_ended(recording: Run) -> bool:
    if not recording.attempts:
        return False
    files = recording.attempts[-1].files
    world_size = max(file.header.world_size for file in files.values())
    return len(files) >= world_size and all(file.close for file in files.values())


def tell_problems(problems: Iterable[api.Problem], verb: str) -> None:
    """What could not be read, on standard error, a paragraph each."""
    for problem in problems:
        lines = [f"memboard {verb}: {problem.severity}: {problem.what}"]
        where = ", ".join(filter(None, (problem.path, problem.where)))
        lines.append(f"  where: {where}")
        if problem.salvaged:
            lines.append(f"  what was read: {problem.salvaged}")
        lines.append(f"  what to do: {problem.remedy}")
        print("\n".join(lines), file=sys.stderr)


def _choices(runs: Sequence[Run]) -> str:
    names = [run.found.name for run in runs]
    if not names:
        return "name another logdir: this one holds no runs"
    more = len(names) - _MAX_LISTED
    text = ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
    return f"choose one with --run: {text}"
