"""MemProfiler's files in one directory: looked at, not opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memboard.tb_plugin.formats.file_listing import (
    Candidate,
    FoundFile,
    FoundFiles,
    Listing,
)
from memboard.tb_plugin.formats.memprofiler.names import (
    FileName,
    likelihood,
    parse_file_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDump(FoundFile):
    said: FileName


class DumpListing(Listing[FoundDump, FoundFiles[FoundDump]]):
    """The files of one directory by kind, rank, function and path."""

    plural = "files of MemProfiler"
    letter = "f"

    @staticmethod
    def rank_of(candidate: Candidate) -> int | None:
        return _said(candidate).rank

    def _file(self, candidate: Candidate, file: FoundFile) -> FoundDump:
        file_name = _said(candidate)
        return FoundDump(
            file.id,
            file.path,
            file.shown_path,
            file.key,
            file_name.rank,
            said=file_name,
            target=file.target,
        )

    @staticmethod
    def is_of_kind(name: str) -> bool:
        """As the name says: it tells how a file is read."""
        return likelihood(name) == "yes"

    def _in_order(self, files: Iterable[FoundDump]) -> FoundFiles[FoundDump]:
        return FoundFiles(sorted(files, key=_place))


def _said(candidate: Candidate) -> FileName:
    file_name = parse_file_name(candidate.name)
    if file_name is None:
        raise ValueError(f"{candidate.name} is none of MemProfiler's files")
    return file_name


def _place(file: FoundDump) -> tuple[str, int, str, str]:
    return file.said.kind, file.said.rank, file.said.function, file.path
