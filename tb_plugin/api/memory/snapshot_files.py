"""The peak of each imported snapshot, at a glance."""

from __future__ import annotations

from msgspec import Struct

from memboard.tb_plugin.api.base import RunSummary
from memboard.tb_plugin.api.findings import HeldBy
from memboard.tb_plugin.api.memory.calls import HistoryReference
from memboard.tb_plugin.api.memory.histories import HistoryState
from memboard.tb_plugin.api.tables import TableRows


class CategoryBytes(Struct, frozen=True):
    """Bytes of one category at a file's peak."""

    category: str
    bytes: float


class FilePeak(Struct, frozen=True):
    """The highest moment of a file's device: where memory ran out, else the fullest."""

    reference: HistoryReference
    state: HistoryState
    """closed: too large to open unasked, or its turn has not come."""
    problem: str = ""
    """Why it cannot be read; else empty."""
    device: int | None = None
    moment: int | None = None
    peak_bytes: float | None = None
    reserved_bytes: float | None = None
    out_of_memory: bool | None = None
    """None: without a history nobody can say."""
    categories: tuple[CategoryBytes, ...] = ()
    """At the peak, most bytes first."""
    largest: HeldBy | None = None
    """The line that holds most then."""


class SnapshotFilesResponse(Struct, frozen=True):
    """Route `/snapshot_files` (run, rank): one row for each, by time."""

    run: RunSummary
    files: tuple[FilePeak, ...]  # The newest 200
    table: TableRows
    """The same, as the page lists them."""
    num_files: int
    still_reading: bool
