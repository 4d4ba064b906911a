"""One directory of the walk: what lies in it, by names and a few first bytes."""

# ruff: noqa: PTH119, PTH120
# os.path: a walk over thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from collector.format.names import EXPORT_MARK, PLUGIN_NAME
from tb_plugin import storage
from tb_plugin.formats.memprofiler.names import parse_file_name
from tb_plugin.formats.snapshots.files.names import alike, likelihood
from tb_plugin.formats.traces.files.names import is_trace
from tb_plugin.index.layout import OtherKind, relative
from tb_plugin.index.listing import MAX_PROBLEMS, problem

if TYPE_CHECKING:
    from tb_plugin.api.base import Problem
    from tb_plugin.formats.snapshots.files.walked import Looks
    from tb_plugin.storage.contract import Entry, Status

    Place: TypeAlias = tuple[int, int]
    """Of a directory: its file system, and which it is there."""

MAX_DEPTH: Final = 16
MAX_ENTRIES: Final = 1_000_000


Kind: TypeAlias = Literal["tfevents", "memprofiler", "other"]
"""Of other tools' files that no run is made of: they are counted."""

# Order matters: the first pattern that fits decides.
_KINDS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("tfevents", re.compile(r"tfevents")),
    (
        "memprofiler",
        re.compile(
            r"^rank_\d+_memory_stats\.(yaml|pickle)$|^fsdp_mem_rank_.*\.log$"
            r"|^cuda_alloc_rank_.*\.(start|end)\.pickle$"
        ),
    ),
    ("other", re.compile(r"\.xplane\.pb$", re.IGNORECASE)),
)


@dataclass(slots=True)
class Folder:
    """What one directory of the walk held when it was last listed."""

    place: Place
    mtime_ns: int
    listed_at: float
    num_entries: int
    subfolders: tuple[str, ...]
    foreign: tuple[tuple[Kind, int, str], ...]
    problems: tuple[Problem, ...]
    files: dict[OtherKind, tuple[str, ...]] = field(default_factory=dict)
    """Base names of other tools' files that runs are made of."""
    is_export: bool = False
    """Whether it was `memboard export` that wrote those of MemProfiler."""
    is_known: bool = True
    """False: what some file is could not be told yet."""


def list_folder(
    path: str, root: str, depth: int, status: Status, looks: Looks
) -> Folder:
    """Look at the entries of a directory of the logdir `root`.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    listed_at = time.time()
    looked = _Look(path, root, looks)
    with storage.at(path).scandir(path) as entries:
        for entry in entries:
            looked.num_entries += 1
            if looked.num_entries > MAX_ENTRIES:
                break
            looked.take(entry)
    if depth >= MAX_DEPTH and looked.subfolders:
        looked.say(
            path,
            f"Directories more than {MAX_DEPTH} levels deep are not looked into.",
            "Point --logdir further down.",
        )
        looked.subfolders.clear()
    return Folder(
        (status.st_dev, status.st_ino),
        status.st_mtime_ns,
        listed_at,
        looked.num_entries,
        tuple(sorted(looked.subfolders)),
        tuple(
            (kind, count, example) for kind, (count, example) in looked.foreign.items()
        ),
        tuple(looked.problems[:MAX_PROBLEMS]),
        files=looked.files(),
        is_export=looked.is_export,
        is_known=looked.is_known,
    )


class _Look:
    """What one directory holds, as far as its entries were looked at."""

    def __init__(self, path: str, root: str, looks: Looks) -> None:
        self.subfolders: list[str] = []
        self.imports: list[str] = []
        self.snapshots: list[str] = []
        self.others: list[str] = []
        """What may have been meant to be one, by its ending alone."""
        self.traces: list[str] = []
        self.foreign: dict[Kind, tuple[int, str]] = {}
        self.problems: list[Problem] = []
        self.num_entries = 0
        self.is_export = False
        self.is_known = True
        self._path = path
        self._root = root
        self._looks = looks
        self._ours = os.path.basename(path) == PLUGIN_NAME
        above = os.path.basename(os.path.dirname(path))
        self._is_of_run = self._ours and above == "plugins"

    def files(self) -> dict[OtherKind, tuple[str, ...]]:
        """Those that runs are made of."""
        snapshots = [*self.snapshots, *alike(self.others, self.snapshots)]
        found: dict[OtherKind, list[str]] = {
            "memprofiler": self.imports,
            "snapshots": snapshots,
            "traces": self.traces,
        }
        return {kind: tuple(sorted(names)) for kind, names in found.items() if names}

    def take(self, entry: Entry) -> None:
        """Look at one entry."""
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and entry.is_symlink():
            is_folder = _is_folder(entry)
            if is_folder and not self._is_followed(entry):
                return
            if not is_folder and "." not in entry.name and not _is_there(entry):
                self.say(
                    entry.path,
                    "This link leads to nothing.",
                    "Mend the link, or delete it: the directory may have been moved.",
                )
        if not is_folder:
            self._take_file(entry)
            return
        if likelihood(entry.name) == "yes":
            self.say(
                entry.path,
                "This is a directory, and has the name of a memory snapshot.",
                "Rename it, if a snapshot was to be written here.",
            )
        # The artifacts of a run's ranks are no runs.
        if not self._is_of_run:
            self.subfolders.append(entry.path)

    def _is_followed(self, link: Entry) -> bool:
        """Whether the walk goes where a link leads to, a directory."""
        real = storage.at(link.path).realpath
        target = real(link.path)
        if storage.is_inside(target, self._root):
            return False  # it is walked where it really lies
        if storage.is_inside(real(self._path), target):
            self.say(
                link.path,
                "This link leads to a directory that it lies in itself; it is not"
                " followed.",
                "Point --logdir at that directory to see what else lies in it.",
            )
            return False
        return True

    def say(self, path: str, what: str, remedy: str) -> None:
        """Something is not as it should be."""
        self.problems.append(problem(relative(path, self._root), what, remedy))

    def _take_file(self, entry: Entry) -> None:
        name = entry.name
        if parse_file_name(name) is not None:
            self.imports.append(name)
        elif name == EXPORT_MARK:
            self.is_export = True
        elif is_trace(name):
            if not self._ours:
                self.traces.append(name)
        elif kind_of(name) is not None:
            _count_foreign(entry, self._root, self.foreign, ours=self._ours)
        else:
            is_snapshot = self._looks.is_snapshot(entry)
            self.is_known &= is_snapshot is not None
            if is_snapshot:
                self.snapshots.append(name)
            elif (self._ours or not self._take_trace(entry)) and (
                self._looks.may_be_one(entry)
            ):
                self.others.append(name)

    def _take_trace(self, entry: Entry) -> bool:
        """Whether a file that no name tells is a trace by what it holds."""
        if entry.is_symlink():
            target = storage.at(entry.path).realpath(entry.path)
            if not storage.is_inside(target, self._root):
                return False
        is_found = self._looks.is_trace(entry)
        self.is_known &= is_found is not None
        if is_found:
            self.traces.append(entry.name)
        return bool(is_found)


def _count_foreign(
    entry: Entry,
    root: str,
    foreign: dict[Kind, tuple[int, str]],
    *,
    ours: bool,
) -> None:
    kind = kind_of(entry.name)
    if kind is None or (ours and kind == "tfevents"):
        return
    count, example = foreign.get(kind, (0, relative(entry.path, root)))
    foreign[kind] = (count + 1, example)


def _is_there(entry: Entry) -> bool:
    try:
        entry.stat()
    except OSError:
        return False
    return True


def _is_folder(entry: Entry) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def kind_of(name: str) -> Kind | None:
    """What a file is by its base name; None where it is nobody's we know."""
    if "." not in name:
        return None
    for kind, pattern in _KINDS:
        if pattern.search(name):
            return kind
    return None
