"""The trace files of one run: looked at, not read."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tb_plugin.formats.named_files import NamedFile, NamedFiles, problem_of
from tb_plugin.formats.traces.files.found import FoundTrace, FoundTraces, trace_id
from tb_plugin.formats.traces.files.heads import TraceHead, head_of
from tb_plugin.formats.traces.files.names import is_trace, parse_names
from tb_plugin.jobs.worker.column_cache import FileKey
from tb_plugin.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tb_plugin import api
    from tb_plugin.formats.traces.files.names import TraceName
    from tb_plugin.storage.contract import Status

LOOK_SECONDS: Final = 0.25
"""For heads of files at one listing; the others come at the next."""


@dataclass(frozen=True, slots=True)
class Candidate(NamedFile):
    """A file that somebody found."""

    @property
    def said(self) -> TraceName:
        """What its name says, and its folders'."""
        return parse_names(self.name, self.folders)

    @property
    def rank(self) -> int | None:
        """As they say."""
        return self.said.rank


class TraceListing(NamedFiles[Candidate, FoundTrace, FoundTraces]):
    """The files of one run, and their latest listing."""

    _plural = "trace files"

    def __init__(
        self,
        shown_folder: str,
        root: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """See `NamedFiles` for `root`."""
        super().__init__(shown_folder, root)
        self._clock = clock
        self._deadline = 0.0
        self._unlooked: set[Candidate] = set()

    def list_files(self) -> bool:
        """Stat every file, and look into some; whether anything changed."""
        self._deadline = self._clock() + LOOK_SECONDS
        changed = super().list_files()
        self._unlooked &= self._known.keys()
        merged = [one for one in self._known.values() if one.merged is not None]
        if self._root is None and len(merged) < len(self._known):
            # In a run's directory they lie where we put them.
            self.problems += tuple(_not_counted(one) for one in merged)
        return changed

    def _file(
        self,
        candidate: Candidate,
        path: str,
        status: Status,
        known: FoundTrace | None,
    ) -> FoundTrace:
        key = FileKey.of(status)
        if known is not None and (known.path, known.key) == (path, key):
            return self._with_rank(candidate, known)
        said = candidate.said
        self._unlooked.add(candidate)
        return self._with_rank(
            candidate,
            FoundTrace(
                candidate.id or trace_id(candidate.shown_path),
                path,
                candidate.shown_path,
                key,
                said.worker,
                rank=said.rank,
                order=said.order,
                is_timeline=said.is_timeline,
            ),
        )

    def _with_rank(self, candidate: Candidate, found: FoundTrace) -> FoundTrace:
        """The file with the rank that it tells itself, once it was looked into."""
        if candidate not in self._unlooked or self._clock() > self._deadline:
            return found
        try:
            head = TraceHead() if found.is_timeline else head_of(found.path)
        except StorageError:
            return found  # at the next listing
        self._unlooked.discard(candidate)
        if head.merged is not None:
            return replace(found, rank=None, order=None, merged=head.merged)
        return found if head.rank is None else replace(found, rank=head.rank)

    @staticmethod
    def _is_of_kind(name: str) -> bool:
        return is_trace(name)  # files are given as they are

    def _in_order(self, files: Iterable[FoundTrace]) -> FoundTraces:
        return FoundTraces(_numbered(files))


def _not_counted(merged: FoundTrace) -> api.Problem:
    return problem_of(
        merged.shown_path,
        "This trace was merged from ranks' traces; beside other traces it is not shown.",
        "Open it alone.",
    )


def _numbered(files: Iterable[FoundTrace]) -> list[FoundTrace]:
    """By rank, worker and cycle, the cycles of each worker numbered from 1."""
    ordered = sorted(files, key=_place)
    numbers: dict[tuple[int | None, str, bool], int] = {}
    found = []
    for file in ordered:
        cycle = None
        if file.order is not None:
            of = (file.rank, file.worker, file.is_timeline)
            cycle = numbers[of] = numbers.get(of, 0) + 1
        found.append(file if file.cycle == cycle else replace(file, cycle=cycle))
    return found


def _place(found: FoundTrace) -> tuple[int, str, bool, tuple[int, int], str]:
    rank = -1 if found.rank is None else found.rank
    order = found.order or (-1, -1)
    return rank, found.worker, found.is_timeline, order, found.shown_path
