"""The snapshot files of one run: looked at, not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.formats.file_listing import (
    Candidate,
    FoundFile,
    FoundFiles,
    Listing,
)
from memboard.tb_plugin.formats.snapshots.files.names import SnapshotName, parse_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_UNNAMED: Final = SnapshotName()


@dataclass(frozen=True, slots=True)
class FoundSnapshot(FoundFile):
    """A file that holds an allocator snapshot, or whose name says so.

    Everything but size and time is read out of names: the devices in it are known only
    once it is opened.
    """

    said: SnapshotName = _UNNAMED


class FoundSnapshots(FoundFiles[FoundSnapshot]):
    """The snapshot files of one run, by rank (unknown ones first), step and path."""

    @property
    def world_size(self) -> int:
        """As names say it; 0 where none does."""
        return max((file.said.world_size or 0 for file in self.files), default=0)

    @property
    def last_step(self) -> int | None:
        """The highest step that a name says."""
        steps = (file.said.step for file in self.files)
        return max((step for step in steps if step is not None), default=None)


class SnapshotListing(Listing[FoundSnapshot, FoundSnapshots]):
    """The files of one run, and their latest listing."""

    plural = "snapshot files"
    letter = "f"

    @staticmethod
    def rank_of(candidate: Candidate) -> int | None:
        """As its name says, or its folders'."""
        return parse_names(candidate.name, candidate.folders).rank

    def _file(self, candidate: Candidate, file: FoundFile) -> FoundSnapshot:
        return snapshot_at(file, candidate.folders)

    @staticmethod
    def is_of_kind(name: str) -> bool:
        """Any: it is read as a snapshot or not at all."""
        del name
        return True

    def _in_order(self, files: Iterable[FoundSnapshot]) -> FoundSnapshots:
        return FoundSnapshots(sorted(files, key=_place))


def snapshot_at(file: FoundFile, folders: Sequence[str] = ()) -> FoundSnapshot:
    """A plain file as a snapshot, by its name and those of folders of the layout."""
    names = parse_names(file.name, folders)
    return FoundSnapshot(
        file.id,
        file.path,
        file.shown_path,
        file.key,
        names.rank,
        names,
        target=file.target,
    )


def _place(snapshot: FoundSnapshot) -> tuple[int, int, str]:
    rank = -1 if snapshot.rank is None else snapshot.rank
    step = -1 if snapshot.said.step is None else snapshot.said.step
    return rank, step, snapshot.shown_path
