"""A snapshot's file as it was last seen, and all of a run's by id."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Context: TypeAlias = Literal["start", "end", ""]

_ID_DIGITS: Final = 16


def snapshot_id(path: str) -> str:
    """The id of a file by its path below the logdir: `f` and 16 hex digits.

    A path that is not below a logdir stands for itself.
    """
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape"))
    return f"f{digest.hexdigest()[:_ID_DIGITS]}"


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """A file that holds an allocator snapshot, or whose name says so.

    Everything but size and time is read out of names: the devices in it are known only
    once it is opened.
    """

    id: str
    """Names it in requests; see `snapshot_id`."""
    path: str
    """Absolute, free of links."""
    shown_path: str
    """Relative to the logdir, for people; may hold any text."""
    size_bytes: int
    mtime_ns: int
    device: int
    """Of the file system; with `inode` it tells whether another file took its place."""
    inode: int
    rank: int | None = None
    """None where no name says it: such a file stands for itself, not for a rank."""
    step: int | None = None
    world_size: int | None = None
    label: str = ""
    """What the name says besides: `oom`, `exit`, the user's own words."""
    function: str = ""
    """The call it was taken around, of MemProfiler's files; empty: by hand."""
    phase: str = ""
    iteration: int = 0
    """1-based number of that call; 0: by hand."""
    context: Context = ""
    """The side of that call."""

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.shown_path.rpartition("/")[2]


class FoundSnapshots:
    """The snapshot files of one run. Immutable: a new listing makes another one."""

    def __init__(self, files: Iterable[FoundSnapshot] = ()) -> None:
        """Files in the order they are listed in."""
        self.files: Final = tuple(files)
        """By rank (unknown ones first), step and path."""
        self._by_id: Final = {file.id: file for file in self.files}

    def __bool__(self) -> bool:
        return bool(self.files)

    def by_id(self, snapshot_id: str) -> FoundSnapshot | None:
        """The file of that id; None where the run has none."""
        return self._by_id.get(snapshot_id)

    def of_rank(self, rank: int | None) -> tuple[FoundSnapshot, ...]:
        """The files of one rank, or those whose rank nobody knows."""
        return tuple(file for file in self.files if file.rank == rank)

    @property
    def ranks(self) -> list[int]:
        """The ranks that names tell of, ascending."""
        return sorted({file.rank for file in self.files if file.rank is not None})

    @property
    def world_size(self) -> int:
        """As names say it; 0 where none does."""
        return max((file.world_size or 0 for file in self.files), default=0)

    @property
    def last_step(self) -> int | None:
        """The highest step that a name tells."""
        return max((f.step for f in self.files if f.step is not None), default=None)

    @property
    def newest_ns(self) -> int:
        """When the newest file was written."""
        return max((file.mtime_ns for file in self.files), default=0)

    @property
    def oldest_ns(self) -> int:
        """When the oldest file was written."""
        return min((file.mtime_ns for file in self.files), default=0)
