"""Opened paths: what a command was given, on this machine or at a store."""

from __future__ import annotations

import argparse
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from memboard.collector.cli.failure import Failure, no_such_file
from memboard.collector.format.names import RANK_FILES_DIR, parse_rank_file_name
from memboard.collector.format.sizes import counted
from memboard.tb_plugin import storage
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.formats.registry import TRACES, UnknownFormatError, format_of
from memboard.tb_plugin.index.listing import FoundRun
from memboard.tb_plugin.index.logdirs import Logdir
from memboard.tb_plugin.index.run import Run
from memboard.tb_plugin.index.store import Store
from memboard.tb_plugin.storage.remote import Remote
from memboard.tb_plugin.storage.urls import is_url, parse_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.tb_plugin.index.run import AttemptFiles

Place: TypeAlias = Path | str
"""A path; or a URL, once it was opened as paths at its store are written."""

_MAX_LISTED: Final = 20
_WAIT_POLL_SECONDS: Final = 0.5


def no_deadline() -> Budget:
    """A budget that allows everything: a command reads to the end."""
    return Budget(math.inf)


def path_or_url(text: str) -> Place:
    """The type of an argument: a URL stays a text, `file://` is a path like others."""
    if not is_url(text):
        return Path(text)
    parts = urlsplit(text)
    if parts.scheme.lower() == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return text


def local_path(text: str) -> Path:
    """The type of `-o`: results are not written to stores."""
    path = path_or_url(text)
    if isinstance(path, Path):
        return path
    raise argparse.ArgumentTypeError(
        "results are written to this machine's disks: name a local path, and copy what"
        " was written"
    )


def is_folder(place: Place) -> bool:
    """Whether what was opened is a directory."""
    if isinstance(place, Path):
        return place.is_dir()
    return storage.remote_at(place).root == place


def open_files(
    places: Iterable[Place], *, folders: bool, traces: bool = True
) -> tuple[list[Place], list[Failure]]:
    """What can be opened, absolute and free of links, and why the rest cannot.

    Directories are opened where `folders` says so, traces where `traces` does. Nothing is
    named twice.
    """
    good: dict[Place, None] = {}
    bad: list[Failure] = []
    for place in places:
        try:
            opened = _open_file(place, folders=folders)
        except Failure as failure:  # the others go on
            bad.append(failure)
            continue
        if not traces and not is_folder(opened) and format_of(str(opened)) is TRACES:
            remedy = "put it into the logdir as it is, or: memboard open FILE"
            reason = "this is a trace; a snapshot was expected"
            bad.append(Failure(reason, where=opened, remedy=remedy))
        else:
            good[opened] = None
    return list(good), bad


def open_place(place: Place) -> Place:
    """The same path; a URL as paths at its store are written, which is mounted.

    Raises:
        Failure: the store has nothing there, or refuses; or it is a single rank's file.
    """
    if isinstance(place, Path):
        return place
    where, _, file_name = place.partition("?")[0].rpartition("/")
    if parse_rank_file_name(file_name) is not None:
        raise Failure(
            "one rank's file at a store cannot be opened alone",
            where=f"{where}/{file_name}",
            remedy="name the run's directory, and choose ranks with an option",
        )
    root, _ = _mounted(place)
    storage.remote_at(root).is_patient = True
    return root


def runs_at(place: Place) -> Store:
    """All runs of a logdir that was opened, found.

    Raises:
        Failure: there is no such directory, or its store refuses.
    """
    remote = None
    if isinstance(place, Path):
        if not place.is_dir():
            is_there = place.exists()
            raise Failure(
                "this is a file; a directory was expected"
                if is_there
                else "there is no such directory",
                where=place,
                remedy="name the logdir that TensorBoard is given, or one run in it",
            )
        logdir = Logdir(str(place), "", str(place.resolve()))
    else:
        remote = storage.remote_at(place)
        logdir = Logdir(place, "", place)
    store = Store((logdir,))
    store.index.finish()
    store.look()
    refusal = None if remote is None else remote.refusal()
    if refusal is not None and not store.index.runs:
        raise refused(refusal[1], refusal[0])
    return store


def choose_run(store: Store, run_name: str | None, place: Place) -> Run:
    """The run of that name; without one, the only run.

    Raises:
        Failure: there is none, or several to choose from.
    """
    runs = store.runs()
    if run_name is not None:
        wanted = run_name.rstrip("/")
        named = [
            run
            for run in runs
            if wanted in (run.found.title, run.found.name, run.found.id)
        ]
        if not named:
            raise Failure(
                f"there is no run {run_name!r}", where=place, remedy=_choices(runs)
            )
        return named[0]
    candidates = [run for run in runs if run.made_of == "recording"] or runs
    if not candidates:
        raise no_recording(place)
    if len(candidates) > 1:
        raise Failure(
            f"there are {counted(len(candidates), 'run')}",
            where=place,
            remedy=_choices(runs),
        )
    return candidates[0]


def no_recording(place: Place) -> Failure:
    """The failure where a logdir is empty."""
    return Failure(
        "there is no recording",
        where=place,
        remedy="name the directory given to mb.record, or one above it",
    )


def refused(error: storage.StorageError, where: object) -> Failure:
    """The failure where a store refuses."""
    reason = str(error.strerror)
    return Failure(reason[:1].lower() + reason[1:], where=where, remedy=error.remedy)


def run_of_file(path: Path) -> Run:
    """The run that one rank's file alone makes; of a segment, with all others of it.

    Raises:
        Failure: it is no rank's file.
    """
    if not path.exists():
        raise Failure("the file cannot be read: it does not exist", where=path)
    if parse_rank_file_name(path.name) is None:
        raise Failure(
            "this is not a rank's file",
            where=path,
            remedy="name a logdir, a run's directory, or a file rank*.events",
        )
    resolved = path.resolve()
    folder = resolved.parent
    logdir_path = str(folder.parent.parent)
    found_run = FoundRun.recorded("file", logdir_path, str(folder), folder.name, "/")
    found_run.list_files()
    found_run.listings["recording"].files = {
        key: parts
        for key, parts in found_run.files.items()
        if any(part.path.endswith(resolved.name) for part in parts)
    }
    found_run.version = 1
    return Run(found_run)


def read_whole(run: Run, rank: int | None = None) -> None:
    """Read all files of a run, or of one rank, and look for damage.

    Raises:
        Failure: it has no such rank.
    """
    if rank is not None and rank not in {number for number, _ in run.found.files}:
        run.update(no_deadline(), only=())
        if rank not in run.ranks:
            remedy = "the names of its files hold no rank: leave out --rank"
            if run.ranks:
                remedy = f"its ranks are {run.ranks[0]} to {run.ranks[-1]}"
            raise Failure(
                f"the run has no rank {rank}", where=run.found.title, remedy=remedy
            )
    keys = [key for key in run.found.files if rank in (None, key[0])]
    run.update(no_deadline(), only=None if rank is None else keys)
    run.check(no_deadline(), rank=rank)


def await_end(run: Run, seconds: float) -> None:
    """Wait until every rank's file has its end, if that comes soon."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not _has_ended(run):
        time.sleep(_WAIT_POLL_SECONDS)
        run.found.list_files()
        run.update(no_deadline())


def attempt_of(run: Run, number: int | None) -> AttemptFiles:
    """An attempt by its number from 1; without one the last.

    Raises:
        Failure: there is none such.
    """
    attempts = run.attempts
    if not attempts:
        raise Failure(
            "none of the files can be read",
            where=run.found.title,
            remedy="the problems listed above say why",
        )
    for attempt in attempts:
        if attempt.index == (number or len(attempts)):
            return attempt
    raise Failure(
        f"there is no attempt {number}",
        where=run.found.title,
        remedy=f"its attempts are 1 to {len(attempts)}",
    )


def folder_of(run: Run) -> str:
    """The directory of a recorded run; its rank files lie in plugins/memboard below."""
    folder = run.found.folder
    for _ in RANK_FILES_DIR:
        folder = os.path.dirname(folder)  # noqa: PTH120  # a URL is none of pathlib's
    return folder


def result_folder(folder: str) -> Path:
    """Where results go without `-o`: the run's directory; of a store's the current one."""
    return Path() if storage.is_remote(folder) else Path(folder)


def _has_ended(run: Run) -> bool:
    if not run.attempts:
        return False
    files = run.attempts[-1].files
    world_size = max(file.header.world_size for file in files.values())
    return len(files) >= world_size and all(file.is_complete for file in files.values())


def _choices(runs: Sequence[Run]) -> str:
    names = [run.found.title for run in runs]
    if not names:
        return "name another logdir: this one holds no runs"
    more = len(names) - _MAX_LISTED
    text = ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
    return f"choose one with --run: {text}"


def _open_file(place: Place, *, folders: bool) -> Place:
    opened: Place
    if isinstance(place, str):
        opened, is_dir = _mounted(place)
    else:
        opened = _resolved(place)
        is_dir = opened.is_dir()
    if is_dir:
        if folders:
            return opened
        raise Failure(
            "this is a directory; files were expected",
            where=place if isinstance(place, Path) else opened,
            remedy="name the files in it, such as DIR/*.pickle",
        )
    folder, _, file_name = str(opened).replace("\\", "/").rpartition("/")
    if parse_rank_file_name(file_name) is not None:
        above = folder.rsplit("/", 2)[0]
        raise Failure(
            "this is one rank's recording, not a snapshot",
            where=opened,
            remedy=f"open the run's directory instead: memboard open {above!r}",
        )
    if isinstance(opened, Path) and not opened.is_file():
        raise Failure(
            "this is not a regular file", where=place, remedy="save it as a file first"
        )
    try:
        format_of(str(opened))
    except UnknownFormatError as error:
        reason = error.what[:1].lower() + error.what[1:]
        raise Failure(reason, where=opened, remedy=error.remedy) from error
    except storage.StorageError as error:
        raise refused(error, opened) from error
    return opened


def _resolved(path: Path) -> Path:
    try:
        return path.expanduser().resolve(strict=True)
    except FileNotFoundError as error:
        raise no_such_file(path) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise Failure(
            f"the path cannot be followed: {getattr(error, 'strerror', None) or error}",
            where=path,
            remedy="check its permissions and links",
        ) from error


def _mounted(text: str) -> tuple[str, bool]:
    """What a URL names, as paths at its store are written; and whether it is a directory.

    Raises:
        Failure: it is no URL; or the store has nothing there, or refuses.
    """
    try:
        url = parse_url(text)
    except ValueError as error:
        raise Failure("this is not a URL", remedy="check its spelling") from error
    try:
        is_file = Remote(url).kind() == "file" and url.parent is not None
        remote = storage.mount(url.parent if is_file and url.parent else url)
        remote.is_patient = True
        if not is_file:
            with remote.scandir(url.root):  # asks whether it is there
                remote.is_patient = False
    except storage.StorageError as error:
        raise refused(error, url.root) from error
    return url.root, not is_file
