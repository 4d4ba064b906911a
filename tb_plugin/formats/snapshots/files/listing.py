"""The snapshot files of one run: looked at, not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_plugin.formats.named_files import NamedFile, NamedFiles
from tb_plugin.formats.snapshots.files.found import (
    FoundSnapshot,
    FoundSnapshots,
    snapshot_id,
)
from tb_plugin.formats.snapshots.files.names import parse_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tb_plugin.formats.snapshots.files.names import SnapshotName
    from tb_plugin.storage.contract import Status


@dataclass(frozen=True, slots=True)
class Candidate(NamedFile):
    """A file that somebody found."""

    @property
    def said(self) -> SnapshotName:
        """What its name says, and its folders'."""
        return parse_names(self.name, self.folders)

    @property
    def rank(self) -> int | None:
        """As they say."""
        return self.said.rank


class SnapshotListing(NamedFiles[Candidate, FoundSnapshot, FoundSnapshots]):
    """The files of one run, and their latest listing."""

    _plural = "snapshot files"

    def _file(
        self,
        candidate: Candidate,
        path: str,
        status: Status,
        known: FoundSnapshot | None,
    ) -> FoundSnapshot:
        if known is not None and _stamp(known) == (path, *_stamp_of(status)):
            return known
        said = candidate.said
        return FoundSnapshot(
            candidate.id or snapshot_id(candidate.shown_path),
            path,
            candidate.shown_path,
            *_stamp_of(status),
            rank=said.rank,
            step=said.step,
            world_size=said.world_size,
            label=said.label,
        )

    @staticmethod
    def _is_of_kind(name: str) -> bool:
        del name
        return True  # it is read as a snapshot or not at all

    def _in_order(self, files: Iterable[FoundSnapshot]) -> FoundSnapshots:
        return FoundSnapshots(sorted(files, key=_place))


def _stamp_of(status: Status) -> tuple[int, int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino


def _stamp(found: FoundSnapshot) -> tuple[str, int, int, int, int]:
    return found.path, found.size_bytes, found.mtime_ns, found.device, found.inode


def _place(found: FoundSnapshot) -> tuple[int, int, str]:
    rank = -1 if found.rank is None else found.rank
    step = -1 if found.step is None else found.step
    return rank, step, found.shown_path
