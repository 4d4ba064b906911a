"""Files of other tools that belong to one run: looked at, not read.

Which files there are is said by whoever found them (the walk of the index, or a person
who named them); whether they still are what they were is seen here, at each listing.
"""

# ruff: noqa: PTH118, PTH119
# os.path: a listing of thousands of files makes pathlib's cost felt.

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
)

from memboard.tb_plugin import storage
from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.formats.plain_files import (
    OpenRefusal,
    plain_file,
    target_outside,
    text_of_path,
)
from memboard.tb_plugin.worker.cache import FileKey

if TYPE_CHECKING:
    from collections.abc import Iterable

Likelihood: TypeAlias = Literal["yes", "maybe", "no"]
"""Verdict on a name. yes: what cannot be read is a problem then. maybe: the file's
first bytes decide."""

MAX_FILES: Final = 100_000
MAX_PROBLEMS: Final = 50
"""Of one listing, and of all that belongs to no run."""
_ID_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that somebody found."""

    path: str
    """Absolute; may be a link."""
    shown_path: str
    folders: tuple[str, ...] = ()
    """Base names of the layout's folders that it lies in, the outermost first."""
    id: str = ""
    """Empty: of its shown path."""

    @property
    def name(self) -> str:
        return self.shown_path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as it was last seen."""

    id: str
    path: str
    shown_path: str
    """Relative to the logdir, for people; may hold any text."""
    key: FileKey
    rank: int | None = None
    """None where nothing says it: such a file stands for itself, not for a rank."""
    target: str = field(default="", kw_only=True)
    """`path`, where links lead to it out of the logdir; else empty."""

    @property
    def path_text(self) -> str:
        """Its shown path, and behind it where it lies if that is outside of the logdir."""
        return text_of_path(self.shown_path, self.target)

    @property
    def name(self) -> str:
        return self.shown_path.rpartition("/")[2]

    @property
    def num_bytes(self) -> int:
        return self.key.size


def file_id(letter: str, path: str) -> str:
    """The id of a file by its path below the logdir: a letter and 16 hex digits.

    A path that is not below a logdir stands for itself.
    """
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape"))
    return f"{letter}{digest.hexdigest()[:_ID_DIGITS]}"


File = TypeVar("File", bound=FoundFile)
Files = TypeVar("Files", bound="FoundFiles[Any]")


class FoundFiles(Generic[File]):
    """The files of one run. Immutable: a new listing makes another one."""

    def __init__(self, files: Iterable[File] = ()) -> None:
        """Files in the order they are listed in."""
        self.files: Final = tuple(files)
        self._by_id: Final = {file.id: file for file in self.files}

    def __bool__(self) -> bool:
        return bool(self.files)

    def by_id(self, wanted: str) -> File | None:
        """The file of that id; None where the run has none."""
        return self._by_id.get(wanted)

    def of_rank(self, rank: int | None) -> tuple[File, ...]:
        """The files of one rank, or those whose rank nobody knows."""
        return tuple(file for file in self.files if file.rank == rank)

    @property
    def ranks(self) -> list[int]:
        """The ranks that files are of, ascending."""
        return sorted({file.rank for file in self.files if file.rank is not None})

    @property
    def newest_ns(self) -> int:
        """When the newest file was written."""
        return max((file.key.mtime_ns for file in self.files), default=0)

    @property
    def oldest_ns(self) -> int:
        """When the oldest file was written."""
        return min((file.key.mtime_ns for file in self.files), default=0)


class Listing(ABC, Generic[File, Files]):
    """The files of one format in one run, as they were last listed."""

    plural: ClassVar[str]
    letter: ClassVar[str]
    """Before the digits of their ids."""

    def __init__(self, shown_folder: str, root: str | None) -> None:
        """`root`: the logdir; None: the files were named one by one, wherever they lie.

        Then no link is followed; else see `plain_files`.
        """
        self.found: Files = self._in_order(())
        self.problems: tuple[Problem, ...] = ()
        self._shown_folder = shown_folder
        self._root = root
        self._by_folder: dict[str, tuple[Candidate, ...]] = {}
        self._known: dict[Candidate, File] = {}
        self._seen: object = None

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a file nor anything to say about one."""
        return not self.found and not self.problems

    @property
    def is_handed(self) -> bool:
        """Whether a person named the files one by one."""
        return self._root is None

    def put(self, folder: str, candidates: Iterable[Candidate]) -> None:
        """Say which files one directory holds."""
        self._by_folder[folder] = tuple(candidates)

    def keep(self, folders: Iterable[str]) -> None:
        """Forget all directories but these."""
        kept = set(folders)
        for folder in self._by_folder.keys() - kept:
            del self._by_folder[folder]

    def list_files(self) -> bool:
        """Stat every file; whether anything changed."""
        problems: list[Problem] = []
        files: dict[Candidate, File] = {}
        total = 0
        for folder, candidates in self._by_folder.items():
            total += len(candidates)
            real = storage.at(folder).realpath(folder)
            for candidate in candidates[: max(0, MAX_FILES - len(files))]:
                file = self._look_at(candidate, real, problems)
                if file is not None:
                    files[candidate] = file
        if total > MAX_FILES:
            sentence = f"Of {total:,} {self.plural}, {MAX_FILES:,} are listed."
            remedy = "Move some of them into another directory."
            problems.append(
                Problem("warning", self._shown_folder, sentence, remedy=remedy)
            )
        self.problems = tuple(problems[:MAX_PROBLEMS])
        seen = (files, self.problems)
        if seen == self._seen:
            return False
        self._known, self._seen = files, seen
        self.found = self._in_order(files.values())
        return True

    @staticmethod
    @abstractmethod
    def rank_of(candidate: Candidate) -> int | None:
        """As its name says, or its folders'."""

    @abstractmethod
    def _file(self, candidate: Candidate, file: FoundFile) -> File:
        """What the name says of a plain file."""

    def _looked_into(self, candidate: Candidate, file: File) -> File:
        """The file with what only its content says."""
        del candidate
        return file

    @abstractmethod
    def _in_order(self, files: Iterable[File]) -> Files: ...

    @staticmethod
    @abstractmethod
    def is_of_kind(name: str) -> bool:
        """Whether a link may lead to a file of this base name, wherever that lies."""

    def _look_at(
        self, candidate: Candidate, folder: str, problems: list[Problem]
    ) -> File | None:
        path = os.path.join(folder, os.path.basename(candidate.path))
        shown = candidate.shown_path
        try:
            opened = plain_file(path, self._root, self.is_of_kind)
        except OSError:
            return None  # it vanished since it was found
        if isinstance(opened, OpenRefusal):
            problems.append(opened.problem(shown, self.rank_of(candidate)))
            return None
        file, key = self._known.get(candidate), FileKey.of(opened.status)
        if file is None or (file.path, file.key) != (opened.path, key):
            identity = candidate.id or file_id(self.letter, shown)
            target = target_outside(opened.path, self._root)
            plain = FoundFile(identity, opened.path, shown, key, target=target)
            file = self._file(candidate, plain)
        return self._looked_into(candidate, file)
