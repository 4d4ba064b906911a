"""One run as its files lie in directories: looked at, not opened."""

# ruff: noqa: PTH119
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memboard.tb_plugin.formats.recording.listing import FileKey, RankFileListing
from memboard.tb_plugin.formats.registry import FORMATS, Kind, MadeOf
from memboard.tb_plugin.formats.traces.files.heads import mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.formats.file_listing import Candidate, FoundFiles
    from memboard.tb_plugin.formats.memprofiler.listing import DumpListing
    from memboard.tb_plugin.formats.recording.frames.parts import Part
    from memboard.tb_plugin.formats.snapshots.files.listing import SnapshotListing
    from memboard.tb_plugin.formats.traces.files.listing import TraceListing

__all__ = ("FileKey", "FoundRun", "MadeOf")


@dataclass(slots=True)
class FoundRun:
    """A directory with rank files, or with another tool's, and its latest listing."""

    id: str
    name: str
    folder: str
    """Absolute path of the directory that holds the files."""
    shown_folder: str
    """Relative to the logdir, for people."""
    root: str
    listings: dict[MadeOf, Any] = field(default_factory=dict)
    """By kind of file: a `Listing`, of our own files a `RankFileListing`."""
    version: int = 0
    """Raised when anything in a listing changes."""

    @classmethod
    def recorded(
        cls, identity: str, name: str, folder: str, shown_folder: str, root: str
    ) -> FoundRun:
        """A run of the rank files in a directory."""
        listing = RankFileListing(folder, shown_folder, root)
        own: dict[MadeOf, Any] = {"recording": listing}
        return cls(identity, name, folder, shown_folder, root, own)

    @property
    def title(self) -> str:
        """The name for people: a run that is the logdir itself is called as its directory."""
        stem, bracket, kind = self.name.partition(" (")
        if stem != ".":
            return self.name
        folder = os.path.basename(self.root.rstrip("/" + os.sep)) or self.root
        return f"{folder}{bracket}{kind}"

    @property
    def made_of(self) -> MadeOf:
        """What its files are; traces may lie beside others."""
        kinds: tuple[MadeOf, ...] = ("recording", *FORMATS)
        return next(kind for kind in kinds if kind in self.listings)

    @property
    def files(self) -> Mapping[FileKey, tuple[Part, ...]]:
        own = self.listings.get("recording")
        own_files: Mapping[FileKey, tuple[Part, ...]] = {} if own is None else own.files
        return own_files

    @property
    def imports(self) -> DumpListing | None:
        """MemProfiler's files: the run is made of them, and has no rank files."""
        return self.listings.get("memprofiler")

    @property
    def snapshots(self) -> SnapshotListing | None:
        """Files of allocator snapshots: the run is made of them."""
        return self.listings.get("snapshots")

    @property
    def traces(self) -> TraceListing | None:
        """Files of traces that lie in the run's directory."""
        return self.listings.get("traces")

    @property
    def other_files(self) -> tuple[FoundFiles[Any], ...]:
        """Other tools' files as they were last listed, by kind."""
        kinds = [kind for kind in FORMATS if kind in self.listings]
        return tuple(self.listings[kind].found for kind in kinds)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why some of its files are not opened."""
        every = [*self.listings.values()]
        return tuple(problem for listing in every for problem in listing.problems)

    @property
    def is_empty(self) -> bool:
        """Whether nothing (more) lies there; a recording's traces alone are none."""
        own = self.listings.get("recording")
        every = self.listings.values() if own is None else (own,)
        return all(listing.is_empty for listing in every)

    def marks(self) -> Iterator[str]:
        """By what merged traces name the files that they are made of."""
        for parts in self.files.values():
            yield mark_of(os.path.basename(parts[0].path))
        if self.traces is not None:
            for file in self.traces.found.files:
                if file.merged is None:
                    yield mark_of(os.path.basename(file.path), file.num_bytes)

    @property
    def merged_of(self) -> frozenset[str]:
        """Marks of all that it was merged from.

        None where anything else lies here, or a person handed it over.
        """
        if self.traces is None or self.traces.is_handed or self.made_of != "traces":
            return frozenset()
        files = self.traces.found.files
        if not all(file.merged_of for file in files):
            return frozenset()
        return frozenset().union(*(file.merged_of for file in files))

    def put(
        self,
        kind: Kind,
        folder: str,
        candidates: Iterable[Candidate],
        root: str | None,
    ) -> None:
        """Say which files of a kind one directory holds; `root`: see `Listing`."""
        if kind not in self.listings:
            self.listings[kind] = FORMATS[kind].listing(self.shown_folder, root)
        self.listings[kind].put(folder, candidates)

    def list_files(self) -> None:
        """Stat every file; `version` changes where anything did."""
        for listing in tuple(self.listings.values()):
            self.version += listing.list_files()
