"""Files of one run that somebody found by their names: looked at, not read.

Which files there are is said by whoever found them (the walk of the index, or a person
who named them); whether they still are what they were is seen here, at each listing.
What is in them, `snapshot_files` and `trace_files` know.
"""

# ruff: noqa: PTH118, PTH119
# os.path: a listing of thousands of files makes pathlib's cost felt.

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from tb_plugin import api, storage
from tb_plugin.formats.plain_files import NotOpened, plain_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tb_plugin.storage.contract import Status

MAX_FILES: Final = 100_000
"""Of one run."""
_MAX_PROBLEMS: Final = 50

File = TypeVar("File")
Files = TypeVar("Files")
Candidate = TypeVar("Candidate", bound="NamedFile")


@dataclass(frozen=True, slots=True)
class NamedFile(ABC):
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
        """Its base name."""
        return self.shown_path.rpartition("/")[2]

    @property
    @abstractmethod
    def rank(self) -> int | None:
        """As its name says, or its folders'."""


class NamedFiles(ABC, Generic[Candidate, File, Files]):
    """The files of one run, and their latest listing."""

    _plural: ClassVar[str]
    """What they are called."""

    def __init__(self, shown_folder: str, root: str | None) -> None:
        """`root`: the logdir; None: the files were named one by one, wherever they lie.

        Then no link is followed; else see `plain_files`.
        """
        self.found: Files = self._in_order(())
        self.problems: tuple[api.Problem, ...] = ()
        self._shown_folder = shown_folder
        self._root = root
        self._by_folder: dict[str, tuple[Candidate, ...]] = {}
        self._known: dict[Candidate, File] = {}
        self._seen: object = None

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a file nor anything to say about one."""
        return not self.found and not self.problems

    def put(self, folder: str, candidates: tuple[Candidate, ...]) -> None:
        """Say which files one directory holds."""
        self._by_folder[folder] = candidates

    def keep(self, folders: Iterable[str]) -> None:
        """Forget all directories but these."""
        kept = set(folders)
        for folder in self._by_folder.keys() - kept:
            del self._by_folder[folder]

    def list_files(self) -> bool:
        """Stat every file; whether anything changed."""
        problems: list[api.Problem] = []
        known: dict[Candidate, File] = {}
        total = 0
        for folder, candidates in self._by_folder.items():
            total += len(candidates)
            real = storage.at(folder).realpath(folder)
            for candidate in candidates[: max(0, MAX_FILES - len(known))]:
                found = self._look_at(candidate, real, problems)
                if found is not None:
                    known[candidate] = found
        if total > MAX_FILES:
            what = f"Of {total:,} {self._plural}, {MAX_FILES:,} are listed."
            remedy = "Move some of them into another directory."
            problems.append(problem_of(self._shown_folder, what, remedy, None))
        self.problems = tuple(problems[:_MAX_PROBLEMS])
        seen = (known, self.problems)
        if seen == self._seen:
            return False
        self._known, self._seen = known, seen
        self.found = self._in_order(known.values())
        return True

    @abstractmethod
    def _file(
        self,
        candidate: Candidate,
        path: str,
        status: Status,
        known: File | None,
    ) -> File:
        """A plain file as it is now, at a path free of links; `known` if it is that."""

    @abstractmethod
    def _in_order(self, files: Iterable[File]) -> Files:
        """All of them."""

    @staticmethod
    @abstractmethod
    def _is_of_kind(name: str) -> bool:
        """Whether a link may lead to a file of this base name, wherever that lies."""

    def _look_at(
        self, candidate: Candidate, folder: str, problems: list[api.Problem]
    ) -> File | None:
        path = os.path.join(folder, os.path.basename(candidate.path))
        try:
            found = plain_file(path, self._root, self._is_of_kind)
        except OSError:
            return None  # it vanished since it was found
        if isinstance(found, NotOpened):
            shown, rank = candidate.shown_path, candidate.rank
            problems.append(problem_of(shown, found.sentence, found.remedy, rank))
            return None
        known = self._known.get(candidate)
        return self._file(candidate, found.path, found.status, known)


def problem_of(
    path: str, what: str, remedy: str, rank: int | None = None
) -> api.Problem:
    """Why a file or directory is not all opened, and what to do."""
    return api.Problem(
        severity="warning",
        path=path,
        what=what,
        where="",
        salvaged="",
        remedy=remedy,
        rank=rank,
    )
