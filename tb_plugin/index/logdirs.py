"""Directories and files that a person pointed at: `--logdir`, `--logdir_spec`, or one by one."""

# ruff: noqa: PTH111, PTH119, PTH120
# os.path: the strings are compared with what os.scandir gives.

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memboard.tb_plugin.formats.registry import Kind
    from memboard.tb_plugin.index.listing import FoundRun
    from memboard.tb_plugin.storage.urls import Url

_URI = re.compile(r"[a-zA-Z][0-9a-zA-Z.+-]*://")
_SECRETS = re.compile(r"(?<=//)[^/@]*@|[?#].*")


@dataclass(frozen=True, slots=True)
class Logdir:
    """One directory that `--logdir` names."""

    shown: str
    """As the user gave it, without what may be secret of a URL."""
    name: str
    """Prefix of its runs' names under `--logdir_spec`; may be empty."""
    path: str | None
    """Absolute and free of links; of a store the URL that paths there begin with.

    None where nothing can be read there.
    """
    url: Url | None = None


def logdirs_of(context: Any) -> tuple[Logdir, ...]:
    """The directories of a `TBContext`; its `logdir` is empty under --logdir_spec."""
    flags = getattr(context, "flags", None)
    spec = getattr(flags, "logdir_spec", None) or ""
    logdir = getattr(context, "logdir", None) or getattr(flags, "logdir", None) or ""
    if logdir:
        return (_logdir(logdir, ""),)
    return tuple(_parse_spec(spec))


def _parse_spec(spec: str) -> Iterator[Logdir]:
    # TensorBoard's own syntax: `name:/path,/path,...`
    for item in spec.split(","):
        if not item:
            continue
        named = ":" in item and not item.startswith("/") and not _URI.match(item)
        if named and not os.path.splitdrive(item)[0]:
            prefix, _, path = item.partition(":")
            yield _logdir(path, prefix)
        else:
            yield _logdir(item, "")


def _logdir(shown: str, prefix: str) -> Logdir:
    path: str | None = shown
    if _URI.match(shown):
        if not shown.lower().startswith("file:"):
            return remote_logdir(shown, prefix)
        parsed = urlparse(shown)
        path = unquote(parsed.path) if parsed.netloc in ("", "localhost") else None
    elif "::" in shown and "://" in shown:
        path = None  # one file system on top of another, as fsspec writes it
        shown = _SECRETS.sub("", shown)
    # Links are resolved once here; below, the walk and the listings see to them.
    if path is not None:
        path = os.path.realpath(os.path.expanduser(path))
    return Logdir(shown=shown, name=prefix, path=path)


def remote_logdir(url: str, prefix: str = "") -> Logdir:
    """A logdir at a store."""
    from memboard.tb_plugin.storage.urls import parse_url

    try:
        parsed = parse_url(url)
    except ValueError:  # brackets that hold no address, and the like
        return Logdir(shown=f"{url.partition('://')[0]}://…", name=prefix, path=None)
    return Logdir(shown=parsed.root, name=prefix, path=parsed.root, url=parsed)


@dataclass(frozen=True, slots=True)
class OpenedPaths:
    """What a person named to be opened: `memboard open FILE_OR_DIR...`.

    Exactly these are shown: the directories as logdirs, and the files as runs, one per
    directory that they lie in. Paths are absolute and free of links.
    """

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    capacity_bytes: int | None = None
    """Size of the devices, where no file records it."""

    @property
    def logdirs(self) -> tuple[Logdir, ...]:
        """The directories, as `--logdir` would give them."""
        return tuple(
            Logdir(shown=path, name=os.path.basename(path), path=path)
            for path in self.folders
        )

    def runs(self) -> tuple[FoundRun, ...]:
        """The files as runs, listed once."""
        runs = runs_of(self.files)
        for run in runs:
            run.list_files()
        return runs


def runs_of(files: Iterable[str]) -> tuple[FoundRun, ...]:
    """Runs of single files, one for each directory with the files of its layout."""
    from memboard.tb_plugin.formats.file_listing import Candidate
    from memboard.tb_plugin.formats.registry import (
        SNAPSHOTS,
        UnknownFormatError,
        format_of,
    )
    from memboard.tb_plugin.index.listing import FoundRun
    from memboard.tb_plugin.index.search.layout import run_folder, run_id

    root = os.sep
    by_folder: dict[str, dict[tuple[Kind, str], list[Candidate]]] = {}
    for path in files:
        parent = os.path.dirname(path)
        folder, layout = run_folder(parent, root)
        try:
            kind = format_of(path).kind
        except UnknownFormatError:  # said once it is listed
            kind = SNAPSHOTS.kind
        of_kind = by_folder.setdefault(folder, {}).setdefault((kind, parent), [])
        of_kind.append(Candidate(path, path, layout))
    names = [os.path.basename(folder) or root for folder in by_folder]
    runs = []
    for (folder, parents), base in zip(by_folder.items(), names, strict=True):
        run_name = folder if names.count(base) > 1 else base
        run = FoundRun(run_id(root, folder, "given"), run_name, folder, folder, root)
        for (kind, parent), candidates in parents.items():
            run.put(kind, parent, candidates, None)
        runs.append(run)
    return tuple(runs)
