"""Directories with snapshot files to runs: which directories make up one run.

A directory with such files is a run, named after it. Directories whose names only tell a
rank or a step (`step_40/`, `iteration_40_exit/`, `oom_rank3/`) belong to the run of the
directory they lie in.
"""

# ruff: noqa: PTH118, PTH119, PTH120
# os.path: a walk over thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tb_plugin.formats.snapshots.files.listing import Candidate, SnapshotListing
from tb_plugin.formats.snapshots.files.names import is_layout
from tb_plugin.index.listing import FoundRun
from tb_plugin.index.run_names import below, relative, run_name

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence


class SnapshotRuns:
    """The runs that one walk over the logdirs makes of snapshot files."""

    def __init__(self, known: Mapping[str, FoundRun]) -> None:
        """`known`: runs found so far, in this walk or the one before, by id."""
        self._known = known
        self._folders: dict[SnapshotListing, set[str]] = {}
        """Directories met in this walk, by the run that they belong to."""

    def take(
        self,
        path: str,
        names: Sequence[str],
        *,
        prefix: str,
        root: str,
        others: Container[str],
    ) -> FoundRun:
        """The run that the files `names` of a directory belong to.

        `others` are ids of runs that are made of something else.
        """
        folder, layout = run_folder(path, root)
        shown, name, run_id = run_name(folder, prefix, root, "snapshots")
        run = self._known.get(run_id)
        if run is None or run.snapshots is None:
            listing = SnapshotListing(shown, root)
            run = FoundRun(run_id, name, folder, shown, root, snapshots=listing)
        else:
            listing = run.snapshots
        if any(
            run_name(folder, prefix, root, made_of).id in others
            for made_of in ("", "memprofiler")
        ):
            name = f"{name} (snapshots)"
        if run.name != name:
            run.name = name
            run.version += 1
        self._folders.setdefault(listing, set()).add(path)
        shown_folder = relative(path, root)
        listing.put(
            path,
            tuple(
                Candidate(os.path.join(path, name), below(shown_folder, name), layout)
                for name in names
            ),
        )
        return run

    def finish(self) -> None:
        """The walk is over: what it did not meet is gone."""
        for listing, folders in self._folders.items():
            listing.keep(folders)


def run_folder(path: str, root: str) -> tuple[str, tuple[str, ...]]:
    """The directory whose run a directory's files belong to, and what lies between.

    Base names between them come from the outermost to the innermost. Above `root` there
    is none: where its own name tells a rank or a step, it counts for what is in it.
    """
    layout: list[str] = []
    while is_layout(os.path.basename(path)):
        layout.insert(0, os.path.basename(path))
        if path == root:
            break
        path = os.path.dirname(path)
    return path, tuple(layout)
