"""Directories with trace files to runs: which directories make up one run.

Traces that lie in a recorded run's directory, or little below it, belong to that run.
Elsewhere a directory with such files is a run, named after it; directories whose names
only tell a rank or a step (`rank_0/`, `iteration_40/`) belong to the run of the directory
they lie in.
"""

# ruff: noqa: PTH118, PTH120
# os.path: a walk over thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tb_plugin.formats.traces.files.listing import Candidate, TraceListing
from tb_plugin.index.listing import FoundRun
from tb_plugin.index.run_names import below, relative, run_name
from tb_plugin.index.snapshot_runs import run_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NEAR: Final = 2
"""Directories between a recorded run's and one with traces of it."""


class TraceRuns:
    """The runs that one walk over the logdirs makes of trace files, or gives some to."""

    def __init__(self, known: Mapping[str, FoundRun]) -> None:
        """`known`: runs found so far, in this walk or the one before, by id."""
        self._known = known
        self._folders: dict[str, set[str]] = {}
        """Directories met in this walk, by the run that they belong to."""

    def take(
        self,
        path: str,
        names: Sequence[str],
        *,
        prefix: str,
        root: str,
        others: Mapping[str, FoundRun],
    ) -> FoundRun:
        """The run that the files `names` of a directory belong to.

        `others` are runs of this walk that are made of something else.
        """
        folder, layout = run_folder(path, root)
        run = _recorded(folder, prefix, root, others)
        if run is None:
            run = self._own(folder, prefix, root, others)
        if run.traces is None:
            run.traces = TraceListing(run.shown_folder, root)
        self._folders.setdefault(run.id, set()).add(path)
        shown_folder = relative(path, root)
        run.traces.put(
            path,
            tuple(
                Candidate(os.path.join(path, name), below(shown_folder, name), layout)
                for name in names
            ),
        )
        return run

    def finish(self, runs: Mapping[str, FoundRun]) -> None:
        """The walk is over: what it did not meet is gone."""
        for run in runs.values():
            if run.traces is not None:
                run.traces.keep(self._folders.get(run.id, ()))

    def _own(
        self, folder: str, prefix: str, root: str, others: Mapping[str, FoundRun]
    ) -> FoundRun:
        shown, name, run_id = run_name(folder, prefix, root, "traces")
        if any(
            run_name(folder, prefix, root, made_of).id in others
            for made_of in ("memprofiler", "snapshots")
        ):
            name = f"{name} (traces)"
        run = self._known.get(run_id)
        if run is None:
            listing = TraceListing(shown, root)
            return FoundRun(
                run_id, name, folder, shown, root, traces=listing, only_traces=True
            )
        if run.name != name:
            run.name = name
            run.version += 1
        return run


def _recorded(
    folder: str, prefix: str, root: str, others: Mapping[str, FoundRun]
) -> FoundRun | None:
    """The recorded run in whose directory a directory lies."""
    for _ in range(_NEAR + 1):
        run = others.get(run_name(folder, prefix, root).id)
        if run is not None:
            return run
        if folder == root:
            return None
        folder = os.path.dirname(folder)
    return None
