"""A trace's file as it was last seen, and all of a run's by id."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tb_plugin.jobs.worker.column_cache import FileKey

Origin: TypeAlias = Literal["file", "recording"]
"""Found by its name, or through one of our recordings."""

_ID_DIGITS: Final = 16


def trace_id(path: str) -> str:
    """The id of a file by its path below the logdir: `t` and 16 hex digits."""
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape"))
    return f"t{digest.hexdigest()[:_ID_DIGITS]}"


@dataclass(frozen=True, slots=True)
class FoundTrace:
    """A file that holds a trace or a memory timeline, or whose name says so."""

    id: str
    """Names it in requests; see `trace_id`."""
    path: str
    """Absolute, free of links."""
    shown_path: str
    """Relative to the logdir, for people; may hold any text."""
    key: FileKey
    """Which content it has."""
    worker: str
    rank: int | None = None
    """Of `distributedInfo`, else of the names; None where nothing says it."""
    order: tuple[int, int] | None = None
    """Where it stands among the worker's files; None where no name says it."""
    cycle: int | None = None
    """1-based number among the worker's files; None where names say no order."""
    is_timeline: bool = False
    """Whether it is what `export_memory_timeline` wrote."""
    origin: Origin = "file"
    merged: tuple[int | None, ...] | None = None
    """Ranks that it was merged from, as `heads.TraceHead` has them; None: it was not."""
    is_share: bool = False
    """Whether it is `rank`'s share of a merged trace alone."""

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.shown_path.rpartition("/")[2]

    @property
    def num_bytes(self) -> int:
        """Of the file."""
        return self.key.size


class FoundTraces:
    """The traces of one run. Immutable: a new listing makes another one."""

    def __init__(self, files: Iterable[FoundTrace] = ()) -> None:
        """Files in the order they are listed in."""
        every = tuple(files)
        own = tuple(file for file in every if file.merged is None)
        self.num_merged: Final = len(every) - len(own)
        """Files that were merged from others; they say nothing that the others do not."""
        self.files: Final = own or tuple(
            share for one in every for share in _shares(one)
        )
        """By rank (unknown ones first), worker and cycle: ranks' own, or else the shares
        of each in merged ones."""
        self._by_id: Final = {file.id: file for file in self.files}

    @property
    def of_ranks(self) -> FoundTraces:
        """Without those that were merged from others, even where there is nothing else."""
        if self.num_merged and any(one.merged is not None for one in self.files):
            return FoundTraces()
        return self

    def __bool__(self) -> bool:
        return bool(self.files)

    def by_id(self, trace_id: str) -> FoundTrace | None:
        """The file of that id; None where the run has none."""
        return self._by_id.get(trace_id)

    @property
    def ranks(self) -> list[int]:
        """The ranks that files tell of, ascending."""
        return sorted({file.rank for file in self.files if file.rank is not None})

    @property
    def newest_ns(self) -> int:
        """When the newest file was written."""
        return max((file.key.mtime_ns for file in self.files), default=0)

    @property
    def oldest_ns(self) -> int:
        """When the oldest file was written."""
        return min((file.key.mtime_ns for file in self.files), default=0)


def _shares(found: FoundTrace) -> tuple[FoundTrace, ...]:
    """What a merged trace holds of each rank; all of it where it says no ranks."""
    if not found.merged:
        return (found,)
    return tuple(
        replace(
            found,
            id=f"{found.id}-{'other' if rank is None else rank}",
            worker=found.worker if rank is None else f"rank{rank}",
            rank=rank,
            is_share=True,
        )
        for rank in found.merged
    )
