"""Begins a recording: the settings, what they contradict, and the recorder.

All that is wrong with settings is said here, before training is under way.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from memboard.collector.config import load_with_imports
from memboard.collector.config.settings import check_code
from memboard.collector.core.guard import guarded
from memboard.collector.core.warn_once import warn
from memboard.collector.errors import ConfigError
from memboard.collector.process import lifecycle
from memboard.collector.process.rank import identify, mesh_coordinates
from memboard.collector.process.run_dir import run_dir_of
from memboard.collector.recorder import Recorder, inert_recorder
from memboard.collector.steps.models import AttachedObjects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from typing_extensions import Unpack

    from memboard.collector.config import RecordConfig
    from memboard.collector.config.imports.result import ImportedSettings
    from memboard.collector.config.layers import Layer
    from memboard.collector.config.options import RecordOptions


def _nothing(*_: Any, **__: Any) -> Recorder:
    return inert_recorder()


def _could_not_start(_where: str, error: BaseException, *_: Any, **__: Any) -> None:
    warn("recording could not start; training goes on without it", error=error)


@guarded(_could_not_start, instead=_nothing, passes=(ConfigError,))
def record(
    logdir: str | Path,
    *,
    model: Any = None,
    optimizer: Any = None,
    config: Layer | Sequence[Layer] | None = None,
    mesh: Any = None,
    **keywords: Unpack[RecordOptions],
) -> Recorder:
    """Start recording this process into the run directory `logdir`.

    Args:
        logdir: the run's own directory, e.g. `runs/exp1` for `tensorboard --logdir
            runs`. All ranks of a job give the same one.
        model: the module being trained, or a list; may be attached later.
        optimizer: its optimizer, or a list; may be attached later.
        config: a YAML file, a mapping or a `RecordConfig`, or several of them; see
            `memboard.collector.config`. MemProfiler's settings are understood too.
        mesh: a DeviceMesh, or a mapping such as `{"dp": 0, "tp": 1}`.
        **keywords: single settings (`RecordOptions`); they win over `config` and the
            environment. A section takes its struct, a mapping, or true or false:
            `history=True`, `schedule={"active": 3}`, `modules=ModulesConfig(root="net")`.

    Returns:
        A live recorder, also usable as a context manager. With `enabled=False` (or
        `MEMBOARD_ENABLED=0`), and where recording cannot start, one that does nothing.

    Raises:
        ConfigError: a setting, the mesh or the logdir cannot be right, or code that a
            setting names, or the mirror's protocol needs, does not import, or the model
            has no `modules.root`.
    """
    command_line: Mapping[str, Any] = {}
    if lifecycle.launcher is not None:
        config, command_line = lifecycle.launcher.settings_of(config)
    settings, imported = load_with_imports(config, command_line, **keywords)
    if not settings.enabled:
        return inert_recorder()
    if imported:  # before what may be wrong with them is said in our words
        _tell_imports(settings, imported)
    check_code(settings)
    _check_remote(settings)
    _check_root(settings, model)
    run_dir = run_dir_of(logdir)
    coordinates = mesh_coordinates(mesh)
    if lifecycle.launcher is not None:
        run_dir = lifecycle.launcher.recording_begins(run_dir)
    _close_forgotten(run_dir)
    return Recorder(run_dir, settings, coordinates, model, optimizer)


def _check_root(settings: RecordConfig, model: Any) -> None:
    """Whether the module to be tracked is there, where the model is known already."""
    if model is None or not (settings.modules.enabled and settings.modules.root):
        return
    from memboard.collector.modules.tree import find_root

    attached = AttachedObjects()
    attached.add(model, None)
    find_root(attached.model, settings.modules.root)


def _check_remote(settings: RecordConfig) -> None:
    """Import what the mirror needs here: a thread's import could outlive a fork."""
    if settings.remote.url:
        from memboard.collector.mirror.store import check_protocol

        check_protocol(settings.remote.url)


def _tell_imports(settings: RecordConfig, imported: Sequence[ImportedSettings]) -> None:
    """Once per job: what the keys of another tool's settings became."""
    from memboard.collector.config.imports.memprofiler import summary

    if identify(settings).rank == 0:
        for layer in imported:
            warn("%s", summary(layer))


def _close_forgotten(run_dir: Path) -> None:
    """In a notebook, running a cell again means to record anew, not twice."""
    if hasattr(sys, "ps1"):
        for live in lifecycle.all_live():
            if live.run_dir == run_dir:
                live.close_for(None)


def active() -> Recorder | None:
    """The newest live recorder of this process, or None."""
    live = lifecycle.newest()
    return None if live is None else live.recorder
