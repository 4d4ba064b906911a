"""Files that a command was given: which of them can be opened, and what the rest is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from collector.cli.failure import Failure
from collector.format.names import parse_rank_file_name
from tb_plugin import storage
from tb_plugin.formats.snapshots.files.heads import fault_of
from tb_plugin.formats.traces.files.heads import looks_like_trace

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_folder(path: Path | str) -> bool:
    """Whether what can be opened is a directory."""
    if isinstance(path, Path):
        return path.is_dir()
    return storage.remote_at(path).root == path


def sorted_out(
    paths: Iterable[Path | str], *, folders: bool, traces: bool = True
) -> tuple[list[Path | str], list[Failure]]:
    """What can be opened, absolute and free of links, and why the rest cannot.

    Directories are taken where `folders` says so, traces where `traces` does. Nothing is
    named twice. Texts are URLs; of those that can be opened, the store is known from now
    on.
    """
    good: dict[Path | str, None] = {}
    bad: list[Failure] = []
    for path in paths:
        try:
            if isinstance(path, str):
                found: Path | str = _at_store(path, folders=folders)
            else:
                found = _resolved(path, folders=folders)
            if not traces and not is_folder(found):
                _refuse_trace(str(found))
            good[found] = None
        except Failure as failure:  # noqa: PERF203  # the others go on
            bad.append(failure)
    return list(good), bad


def tell(failures: Iterable[Failure], verb: str) -> None:
    """Say on standard error what was left out."""
    for failure in failures:
        print(f"memboard {verb}: {failure}", file=sys.stderr)


def _resolved(path: Path, *, folders: bool) -> Path:
    where = repr(str(path))[1:-1]  # a name may hold what a terminal obeys
    try:
        resolved = path.expanduser().resolve(strict=True)
    except FileNotFoundError as error:
        raise Failure(
            "there is no such file",
            where=where,
            remedy="check the path; it is taken relative to where you are",
            code=2,
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Failure(
            f"the path leads nowhere: {reason}",
            where=where,
            remedy="check its permissions and links",
            code=2,
        ) from error
    if resolved.is_dir():
        if folders:
            return resolved
        raise Failure(
            "this is a directory; files were expected",
            where=where,
            remedy="name the files in it, such as DIR/*.pickle",
            code=2,
        )
    _refuse_recording(str(resolved), where)
    if not resolved.is_file():
        raise Failure(
            "this is no plain file",
            where=where,
            remedy="save it as a file first",
            code=2,
        )
    _refuse_others(str(resolved), where)
    return resolved


def known(path: Path | str) -> Path | str:
    """The same path; a URL as paths at its store are written, which is asked from now on.

    Raises:
        Failure: the store has nothing there, or refuses.
    """
    if isinstance(path, Path):
        return path
    where, _, name = path.partition("?")[0].rpartition("/")
    if parse_rank_file_name(name) is not None:
        raise Failure(
            "one rank's file at a store is not read alone",
            where=repr(f"{where}/{name}")[1:-1],
            remedy="name the run's directory, and choose ranks with an option",
            code=2,
        )
    root = _at_store(path, folders=True)
    storage.remote_at(root).is_patient = True
    return root


def local_result(path: Path | str) -> Path:
    """Where a result goes.

    Raises:
        Failure: to a store.
    """
    if isinstance(path, Path):
        return path
    raise Failure(
        "results are written to this machine's disks",
        where=f"{path.partition('://')[0]}://…",
        remedy="name a local path with -o, and copy what was written",
        code=2,
    )


def _at_store(text: str, *, folders: bool) -> str:
    """What a URL names, as paths at that store are written."""
    from tb_plugin.storage.remote import Remote
    from tb_plugin.storage.urls import parse_url

    try:
        url = parse_url(text)
    except ValueError as error:
        raise Failure(
            "this is no address", remedy="check how it is written", code=2
        ) from error
    where = repr(url.root)[1:-1]
    try:
        is_file = Remote(url).kind() == "file" and url.parent is not None
        if not is_file and not folders:
            raise Failure(
                "this is a directory; files were expected",
                where=where,
                remedy="name the files in it one by one",
                code=2,
            )
        remote = storage.mount(url.parent if is_file and url.parent else url)
        remote.is_patient = True
        if is_file:
            _refuse_recording(url.root, where)
            _refuse_others(url.root, where)
        else:
            with remote.scandir(url.root):
                remote.is_patient = False
    except storage.StorageError as error:
        raise refused(error, url.root) from error
    return url.root


def refused(error: storage.StorageError, path: str) -> Failure:
    """What a store said, for the user."""
    what = str(error.strerror)
    return Failure(
        what[:1].lower() + what[1:],
        where=repr(path)[1:-1],
        remedy=error.remedy,
        code=2,
    )


def _refuse_recording(path: str, where: str) -> None:
    folder, _, name = path.replace("\\", "/").rpartition("/")
    if parse_rank_file_name(name) is not None:
        above = folder.rsplit("/", 2)[0]
        raise Failure(
            "this is one rank's recording, not a snapshot",
            where=where,
            remedy=f"open the run's directory instead: memboard open {above!r}",
            code=2,
        )


def _refuse_trace(path: str) -> None:
    """Of what can be opened, all but snapshots are traces."""
    if fault_of(path) is not None:
        raise Failure(
            "this is a trace, and snapshots are wanted",
            where=repr(path)[1:-1],
            remedy="put it into the logdir as it is, or look at it: memboard open FILE",
            code=2,
        )


def _refuse_others(path: str, where: str) -> None:
    fault = fault_of(path)
    if fault is not None and not looks_like_trace(path):
        what, remedy = fault
        raise Failure(what[:1].lower() + what[1:], where=where, remedy=remedy, code=2)
