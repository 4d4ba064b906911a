"""What a person named to be opened: `memboard open FILE_OR_DIR...`.

Exactly these are shown: the directories as logdirs, and the files as runs, one per
directory that they lie in. Nothing else is searched for.
"""

# ruff: noqa: PTH119, PTH120
# os.path: the strings are compared with what os.scandir gives.

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tb_plugin.index.logdirs import Logdir

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tb_plugin.index.listing import FoundRun


@dataclass(frozen=True, slots=True)
class Given:
    """Absolute paths, free of links."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    capacity_bytes: int | None = None
    """Size of the devices, where no file records it."""

    @property
    def logdirs(self) -> tuple[Logdir, ...]:
        """The directories, as `--logdir` would give them."""
        return tuple(
            Logdir(shown=path, name=os.path.basename(path), path=path)
            for path in self.folders
        )

    def runs(self) -> tuple[FoundRun, ...]:
        """The files as runs, listed once."""
        runs = runs_of(self.files)
        for run in runs:
            run.list_files()
        return runs


def runs_of(files: Iterable[str]) -> tuple[FoundRun, ...]:
    """Runs of single files, one for each directory with the files of its layout."""
    from tb_plugin.formats.snapshots.files.heads import fault_of
    from tb_plugin.formats.snapshots.files.listing import Candidate, SnapshotListing
    from tb_plugin.formats.traces.files import listing as trace_files
    from tb_plugin.formats.traces.files.heads import looks_like_trace
    from tb_plugin.index.listing import FoundRun
    from tb_plugin.index.run_names import run_id
    from tb_plugin.index.snapshot_runs import run_folder

    root = os.sep
    snapshots: dict[str, dict[str, list[Candidate]]] = {}
    traces: dict[str, dict[str, list[trace_files.Candidate]]] = {}
    for path in files:
        parent = os.path.dirname(path)
        folder, layout = run_folder(parent, root)
        in_folder = snapshots.setdefault(folder, {})
        if fault_of(path) is not None and looks_like_trace(path):
            found = traces.setdefault(folder, {}).setdefault(parent, [])
            found.append(trace_files.Candidate(path, path, layout))
        else:
            in_folder.setdefault(parent, []).append(Candidate(path, path, layout))
    names = [os.path.basename(folder) or root for folder in snapshots]
    runs = []
    for folder, parents in snapshots.items():
        name = os.path.basename(folder) or root
        if names.count(name) > 1:
            name = folder
        run = FoundRun(run_id(root, folder, "given"), name, folder, folder, root)
        if parents:
            run.snapshots = SnapshotListing(folder, None)
            for parent, candidates in parents.items():
                run.snapshots.put(parent, tuple(candidates))
        if folder in traces:
            run.traces = trace_files.TraceListing(folder, None)
            run.only_traces = run.snapshots is None
            for parent, of_traces in traces[folder].items():
                run.traces.put(parent, tuple(of_traces))
        runs.append(run)
    return tuple(runs)
