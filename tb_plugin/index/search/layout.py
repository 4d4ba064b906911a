"""Directories to runs: which of them make up one run, what it is called, and its id.

A directory with MemProfiler's files is a run of its own, made of them; where it is the
`memprofiler/` that MemProfiler makes in a job's directory, the run is that job's. A
directory with files of allocator snapshots is a run too, and one with files of traces,
unless a run was recorded there or little above, or is made of MemProfiler's files there.
Directories whose names only tell a rank or a step (`rank_0/`, `step_40/`,
`iteration_40_exit/`) belong to the run of the directory they lie in.
"""

# ruff: noqa: PTH118, PTH119, PTH120
# os.path: a walk over thousands of entries makes pathlib's cost felt.

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.collector.format.names import DUMPS_DIR
from memboard.tb_plugin.formats.file_listing import Candidate
from memboard.tb_plugin.formats.registry import FORMATS
from memboard.tb_plugin.formats.snapshots.files.names import is_layout
from memboard.tb_plugin.index.listing import FoundRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.formats.registry import Kind

_NEAR: Final = 2
"""Directories between a run's and one with traces of it."""
_ID_DIGITS: Final = 16


class RunName(NamedTuple):
    shown_folder: str
    """Its directory, relative to the logdir; `.` for the logdir itself."""
    name: str
    id: str


def run_name(path: str, prefix: str, root: str, made_of: str = "") -> RunName:
    """The name of a run whose directory is `path`, below the logdir `root`.

    `prefix` stands before all names of a logdir of `--logdir_spec`. What is `made_of`
    another tool's files is another run than the one recorded in the same directory.
    """
    shown = relative(path, root)
    name = os.path.normpath(f"{prefix}/{shown}") if prefix else shown
    return RunName(shown, name, run_id(root, name, made_of))


def run_id(root: str, name: str, made_of: str = "") -> str:
    """16 hex digits that stay the same while neither is renamed."""
    key = f"{root}\0{name}" + (f"\0{made_of}" if made_of else "")
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:_ID_DIGITS]


def relative(path: str, root: str) -> str:
    """A path below the logdir; `.` for the logdir itself."""
    return "." if path == root else path[len(root.rstrip(os.sep)) + 1 :]


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


def job_folder(path: str, root: str) -> str:
    """The directory of the job whose MemProfiler wrote into `path`."""
    is_inside = path != root and os.path.basename(path) == DUMPS_DIR
    return os.path.dirname(path) if is_inside else path


class OtherRuns:
    """The runs that one walk makes of other tools' files, or gives some to."""

    def __init__(self, known_runs: Mapping[str, FoundRun]) -> None:
        """`known_runs`: those found so far, in this walk or the one before, by id."""
        self._known = known_runs
        self._folders: dict[tuple[str, Kind], set[str]] = {}
        """Directories met in this walk, by the run that they belong to."""

    def take(
        self,
        kind: Kind,
        path: str,
        names: Sequence[str],
        *,
        prefix: str,
        root: str,
        others: Mapping[str, FoundRun],
    ) -> FoundRun:
        """The run that the files `names` of a directory belong to.

        `others` are the runs of this walk so far.
        """
        folder, layout = run_folder(path, root)
        if kind == "memprofiler":
            folder, layout = job_folder(path, root), ()
        run = _run_above(folder, prefix, root, others) if kind == "traces" else None
        if run is None:
            run = self._own(kind, folder, prefix, root, others)
        candidates = (
            Candidate(folder, relative(folder, root), layout)
            for folder in (os.path.join(path, name) for name in names)
        )
        run.put(kind, path, candidates, root)
        self._folders.setdefault((run.id, kind), set()).add(path)
        return run

    def finish(self, runs: Mapping[str, FoundRun]) -> None:
        """The walk is over: what it did not meet is gone."""
        for run in runs.values():
            for kind in FORMATS:
                if kind in run.listings:
                    run.listings[kind].keep(self._folders.get((run.id, kind), ()))

    def _own(
        self,
        kind: Kind,
        folder: str,
        prefix: str,
        root: str,
        others: Mapping[str, FoundRun],
    ) -> FoundRun:
        shown, name, found_id = run_name(folder, prefix, root, kind)
        kinds = list(FORMATS)
        before = ("", *kinds[: kinds.index(kind)])
        if any(
            run_name(folder, prefix, root, run_folder).id in others
            for run_folder in before
        ):
            name = f"{name} ({FORMATS[kind].title})"
        run = self._known.get(found_id)
        if run is None:
            run = FoundRun(found_id, name, folder, shown, root)
        elif run.name != name:
            run.name = name
            run.version += 1
        return run


def _run_above(
    folder: str, prefix: str, root: str, others: Mapping[str, FoundRun]
) -> FoundRun | None:
    """The run in whose directory a directory lies: recorded, or of MemProfiler's files."""
    for _ in range(_NEAR + 1):
        for made_of in ("", "memprofiler"):
            run = others.get(run_name(folder, prefix, root, made_of).id)
            if run is not None:
                return run
        if folder == root:
            return None
        folder = os.path.dirname(folder)
    return None
