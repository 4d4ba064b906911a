"""The trace files of one run: looked at, not read."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.formats.file_listing import (
    Candidate,
    FoundFile,
    FoundFiles,
    Listing,
)
from memboard.tb_plugin.formats.traces.files.heads import (
    TraceHead,
    head_of,
    rank_beside,
)
from memboard.tb_plugin.formats.traces.files.names import is_trace, parse_names
from memboard.tb_plugin.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


LOOK_SECONDS: Final = 0.25
"""For heads of files at one listing; the others come at the next."""


Origin: TypeAlias = Literal["file", "recording"]
"""Found by its name, or through one of our recordings."""


@dataclass(frozen=True, slots=True)
class FoundTrace(FoundFile):
    """A file that holds a trace or a memory timeline, or whose name says so."""

    worker: str = ""
    order: tuple[int, int] | None = None
    """Where it stands among the worker's files; None where no name says it."""
    cycle: int | None = None
    """1-based number among the worker's files; None where names say no order."""
    is_timeline: bool = False
    """Whether it is what `export_memory_timeline` wrote."""
    origin: Origin = "file"
    merged: tuple[int | None, ...] | None = None
    """Ranks that it was merged from, as `heads.TraceHead` has them; None: it was not."""
    merged_of: frozenset[str] = frozenset()
    is_share: bool = False
    """Whether it is `rank`'s share of a merged trace alone."""


class FoundTraces(FoundFiles[FoundTrace]):
    """The traces of one run."""

    def __init__(self, files: Iterable[FoundTrace] = ()) -> None:
        """Files in the order they are listed in."""
        every = tuple(files)
        own = tuple(file for file in every if file.merged is None)
        self.num_merged: Final = len(every) - len(own)
        """Files that were merged from others; they say nothing that the others do not."""
        # By rank (unknown ones first), worker and cycle: ranks' own, or else the shares
        # of each in merged ones.
        super().__init__(own or (share for file in every for share in _shares(file)))

    @property
    def of_ranks(self) -> FoundTraces:
        """Without those that were merged from others, even where there is nothing else."""
        if self.num_merged and any(file.merged is not None for file in self.files):
            return FoundTraces()
        return self


def _shares(file: FoundTrace) -> tuple[FoundTrace, ...]:
    """What a merged trace holds of each rank; all of it where it says no ranks."""
    if not file.merged:
        return (file,)
    return tuple(
        replace(
            file,
            id=f"{file.id}-{'other' if rank is None else rank}",
            worker=file.worker if rank is None else f"rank{rank}",
            rank=rank,
            is_share=True,
        )
        for rank in file.merged
    )


class TraceListing(Listing[FoundTrace, FoundTraces]):
    """The files of one run, and their latest listing."""

    plural = "trace files"
    letter = "t"

    def __init__(
        self,
        shown_folder: str,
        root: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`root`: as of `Listing`; `clock`: measures the time that looks take."""
        super().__init__(shown_folder, root)
        self._clock = clock
        self._deadline = 0.0
        self._unlooked: set[Candidate] = set()

    def list_files(self) -> bool:
        """Stat every file, and look into some; whether anything changed."""
        self._deadline = self._clock() + LOOK_SECONDS
        changed = super().list_files()
        self._unlooked &= self._known.keys()
        merged = [file for file in self._known.values() if file.merged is not None]
        if self._root is None and len(merged) < len(self._known):
            # In a run's directory they lie where we put them.
            self.problems += tuple(_not_counted(file) for file in merged)
        return changed

    @staticmethod
    def rank_of(candidate: Candidate) -> int | None:
        """As its name says, or its folders'."""
        return parse_names(candidate.name, candidate.folders).rank

    def _file(self, candidate: Candidate, file: FoundFile) -> FoundTrace:
        parsed = parse_names(candidate.name, candidate.folders)
        self._unlooked.add(candidate)
        return FoundTrace(
            file.id,
            file.path,
            file.shown_path,
            file.key,
            parsed.rank,
            worker=parsed.worker,
            order=parsed.order,
            is_timeline=parsed.is_timeline,
            target=file.target,
        )

    def _looked_into(self, candidate: Candidate, file: FoundTrace) -> FoundTrace:
        """The file with the rank that it tells itself, once it was looked into."""
        if candidate not in self._unlooked or self._clock() > self._deadline:
            return file
        try:
            head = TraceHead() if file.is_timeline else head_of(file.path)
            rank = rank_beside(file.path) if head.rank is None else head.rank
        except StorageError:
            return file  # at the next listing
        self._unlooked.discard(candidate)
        if head.merged is not None:
            return replace(
                file,
                rank=None,
                order=None,
                merged=head.merged,
                merged_of=head.merged_of,
            )
        return file if rank is None else replace(file, rank=rank)

    @staticmethod
    def is_of_kind(name: str) -> bool:
        """As the name says: files are given as they are."""
        return is_trace(name)

    def _in_order(self, files: Iterable[FoundTrace]) -> FoundTraces:
        return FoundTraces(_numbered(files))


def _not_counted(merged: FoundTrace) -> Problem:
    return Problem(
        "warning",
        merged.shown_path,
        "This trace was merged from ranks' traces; beside other traces it is not shown.",
        remedy="Open it alone.",
    )


def _numbered(files: Iterable[FoundTrace]) -> list[FoundTrace]:
    """By rank, worker and cycle, the cycles of each worker numbered from 1."""
    ordered = sorted(files, key=_place)
    numbers: dict[tuple[int | None, str, bool], int] = {}
    numbered = []
    for file in ordered:
        cycle = None
        if file.order is not None:
            of = (file.rank, file.worker, file.is_timeline)
            cycle = numbers[of] = numbers.get(of, 0) + 1
        numbered.append(file if file.cycle == cycle else replace(file, cycle=cycle))
    return numbered


def _place(file: FoundTrace) -> tuple[int, str, bool, tuple[int, int], str]:
    rank = -1 if file.rank is None else file.rank
    order = file.order or (-1, -1)
    return rank, file.worker, file.is_timeline, order, file.shown_path
