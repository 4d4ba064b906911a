"""One directory of the walk: what lies in it, by names and a few first bytes."""

# ruff: noqa: PTH118, PTH119, PTH120
# os.path: a walk over thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memboard.collector.format.names import EXPORT_MARK, PLUGIN_NAME
from memboard.collector.format.sizes import agreeing, counted
from memboard.tb_plugin import storage
from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.formats.file_listing import MAX_PROBLEMS
from memboard.tb_plugin.formats.other_profilers import other_profiler
from memboard.tb_plugin.formats.registry import FORMATS, SNAPSHOTS, format_by_name
from memboard.tb_plugin.formats.snapshots.files.names import alike
from memboard.tb_plugin.index.search.layout import relative

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.tb_plugin.formats.other_profilers import OtherProfiler
    from memboard.tb_plugin.formats.registry import Kind
    from memboard.tb_plugin.index.search.sniffing import Damage, SniffedFiles
    from memboard.tb_plugin.storage.contract import Status
    from memboard.tb_plugin.storage.entries import Entry

    Place: TypeAlias = tuple[int, int]
    """Of a directory: its file system, and which it is there."""

MAX_DEPTH: Final = 16
MAX_ENTRIES: Final = 1_000_000
_MAX_UNREAD: Final = 5


ForeignKind: TypeAlias = Literal["tfevents", "memprofiler", "other"]
"""Of other tools' files that no run is made of: they are counted."""

# Order matters: the first pattern that fits decides.
_KINDS: Final[tuple[tuple[ForeignKind, re.Pattern[str]], ...]] = (
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
    foreign: tuple[tuple[ForeignKind, int, str], ...]
    problems: tuple[Problem, ...]
    files: dict[Kind, tuple[str, ...]] = field(default_factory=dict)
    """Base names of other tools' files that runs are made of."""
    is_export: bool = False
    """Whether it was `memboard export` that wrote those of MemProfiler."""
    is_known: bool = True
    """False: what some file is could not be told yet."""
    unread: tuple[Problem, ...] = ()
    """Of files that are ours by their names alone: junk, cut off, or no files."""


def list_folder(
    path: str, root: str, depth: int, status: Status, looks: SniffedFiles
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
    files = looked.files()
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
        files=files,
        is_export=looked.is_export,
        is_known=looked.is_known,
        unread=tuple(_unread(looked.damaged, path, root)),
    )


def _unread(damage: Mapping[str, Damage], path: str, root: str) -> Iterator[Problem]:
    """The first few by name, and how many more."""
    for file_name, folder_damage in sorted(damage.items())[:_MAX_UNREAD]:
        shown = relative(os.path.join(path, file_name), root)
        yield Problem("warning", shown, folder_damage.what, remedy=folder_damage.remedy)
    more = len(damage) - _MAX_UNREAD
    if more > 0:
        problem = (
            f"{counted(more, 'more file')} {agreeing(more, 'has', 'have')} the name of a"
            " snapshot or a trace and cannot be read."
        )
        remedy = "Look at them with ls -l; move what is none out of the directory."
        yield Problem("warning", relative(path, root), problem, remedy=remedy)


class _Look:
    """What one directory holds, as far as its entries were looked at."""

    def __init__(self, path: str, root: str, looks: SniffedFiles) -> None:
        self.subfolders: list[str] = []
        self.found: dict[Kind, list[str]] = {}
        self.others: list[str] = []
        """What may have been meant to be a snapshot, by its ending alone."""
        self.damaged: dict[str, Damage] = {}
        """What has the name of a pickle or a trace and cannot be one."""
        self.foreign: dict[ForeignKind, tuple[int, str]] = {}
        self.problems: list[Problem] = []
        self.num_entries = 0
        self.is_export = False
        self.is_known = True
        self._other_profilers: set[OtherProfiler] = set()
        self._path = path
        self._root = root
        self._looks = looks
        self._ours = os.path.basename(path) == PLUGIN_NAME
        above = os.path.basename(os.path.dirname(path))
        self._is_of_run = self._ours and above == "plugins"

    def files(self) -> dict[Kind, tuple[str, ...]]:
        """Those that runs are made of."""
        if "snapshots" in self.found:
            meant = alike(self.others, self.found["snapshots"])
            self.found["snapshots"] += meant
            for file_name in meant:
                self.damaged.pop(file_name, None)
        return {
            kind: tuple(sorted(self.found[kind]))
            for kind in FORMATS
            if kind in self.found
        }

    def take(self, entry: Entry) -> None:
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and entry.is_symlink():
            is_folder = _is_folder(entry)
            if is_folder and not self._is_followed(entry):
                return
            if not is_folder and "." not in entry.name and not _is_there(entry):
                self.say(
                    entry.path,
                    "This link leads to nothing.",
                    "Fix the link, or delete it: the directory may have been moved.",
                )
        if not is_folder:
            self._take_file(entry)
            return
        if SNAPSHOTS.match(entry.name) == "yes":
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

    def say(self, path: str, sentence: str, remedy: str) -> None:
        """Something is not as it should be."""
        self.problems.append(
            Problem("warning", relative(path, self._root), sentence, remedy=remedy)
        )

    def _take_file(self, entry: Entry) -> None:
        file_name = entry.name
        file_format = format_by_name(file_name)
        kind = None if file_format is None else file_format.kind
        if file_name == EXPORT_MARK:
            self.is_export = True
            return
        if kind is None or kind == "snapshots":  # its names are the vaguest
            foreign = foreign_kind(file_name)
            if foreign is not None:
                self._count_foreign(entry, foreign)
                return
        profiler = other_profiler(file_name) if kind is None else None
        if profiler is not None:
            if profiler not in self._other_profilers:
                self._other_profilers.add(profiler)
                self.say(entry.path, profiler.what, profiler.remedy)
            return
        if kind is None:
            kind, is_known = self._looks.kind_of(entry, self._root, ours=self._ours)
            self.is_known &= is_known
        elif kind == "traces" and self._ours:
            return  # recordings name them
        if kind is not None:
            self.found.setdefault(kind, []).append(file_name)
            return
        if self._looks.may_be_snapshot(entry):
            self.others.append(file_name)
        damage = self._looks.damage_of(entry, self._root)
        if damage is not None:
            self.damaged[file_name] = damage

    def _count_foreign(self, entry: Entry, kind: ForeignKind) -> None:
        if not (self._ours and kind == "tfevents"):
            count_and_path = self.foreign.get(
                kind, (0, relative(entry.path, self._root))
            )
            self.foreign[kind] = (count_and_path[0] + 1, count_and_path[1])


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


def foreign_kind(file_name: str) -> ForeignKind | None:
    """What a file is by its base name; None where it is nobody's we know."""
    if "." not in file_name:
        return None
    for kind, pattern in _KINDS:
        if pattern.search(file_name):
            return kind
    return None
