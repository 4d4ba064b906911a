"""The recording of a program that knows nothing of it.

It begins once the program has imported torch: before that nobody knows the device, and to
import torch here would be too early for a program that first sets its environment. One
that imports no torch for a while, or never, has its host recorded alone.

Each iteration of the optimizers is a step, and what they train is attached when the first
one steps. A program that records itself goes before: ours ends, without a trace where it
has no step yet. One that steps our recorder (`mb.active()`) counts its steps itself.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import shlex
import sys
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from memboard.collector.core.compiling import untraced
from memboard.collector.core.guard import Block
from memboard.collector.core.model_parts import listed
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.errors import ConfigError
from memboard.collector.format.sizes import counted
from memboard.collector.process import lifecycle
from memboard.collector.running.imports import after_import
from memboard.collector.running.iterations import Iterations
from memboard.collector.start import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memboard.collector.recorder import Recorder

WITHOUT_TORCH_SECONDS: Final = 5.0
"""Time for a program to import torch, before its host alone is recorded."""


_OF_TORCH: Final = ("functions", "hooks", "activations", "modules", "history", "oom")
"""Sources of a program with torch; without it, all this would import it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where to record, and how."""

    run_dir: Path
    config: Sequence[Path] | None = None
    """Files of settings; None: those that the environment names."""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Single settings, as `mb.record` takes them; they win over all others."""


class Session:
    """Of one process. From `watch` on, nothing of it reaches the program."""

    close_seconds = 0.0
    """The longest that the end of a recording waits for what is being written, where that
    is longer than without a launcher."""

    def __init__(self, settings: Settings) -> None:
        self.num_steps = 0
        """Steps recorded so far, by whomever."""
        self.run_dirs: list[Path] = []
        """Where the program has recorded itself."""
        self.recorder: Recorder | None = None
        self._settings = settings
        self._warn_once = WarnOnce()
        self._lock = threading.RLock()
        self._is_beginning = False
        self._is_stepping = False
        self._program_steps = False
        self._has_torch = False
        self._is_over = False
        self._iterations = Iterations(self.iterated)
        self._optimizers: WeakSet[Any] = WeakSet()
        self._trained: set[int] = set()
        """Tensors of models that are attached."""
        self._timer = threading.Timer(WITHOUT_TORCH_SECONDS, self._torch_stays_away)
        self._timer.daemon = True

    @property
    def steps_aside(self) -> bool:
        """Whether the program records itself."""
        return bool(self.run_dirs)

    def watch(self) -> None:
        """Record from now on, until the process ends."""
        lifecycle.launcher = self
        atexit.register(self._at_exit, os.getpid())
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)
        after_import("torch", self._torch_came)
        if not self._has_torch:
            self._timer.start()

    def finish(self) -> None:
        """The program has run: nothing begins any more, and what records ends at exit."""
        self._timer.cancel()
        with self._lock:
            self._is_over = True

    def said(self) -> str:
        """What to tell the user at the end; empty: nothing."""
        run_dir = None if self.recorder is None else self._settings.run_dir
        return ending(run_dir, self.run_dirs, self.num_steps)

    # What every recorder of the process tells, ours and the program's own.

    def settings_of(self, config: Any) -> tuple[Any, Mapping[str, Any]]:
        """What the command line makes of the settings of a recorder that begins.

        Its files, where the program names none; and single settings, which win over all
        others, the program's own too.
        """
        with self._lock:
            if self._is_beginning:  # ours was given them
                return config, {}
        files = self._settings.config if config is None else config
        return files, self._settings.keywords

    def recording_begins(self, run_dir: Path) -> Path:
        """A recorder is about to be made for a directory; returns the one to take.

        Of the program's own ones, ours ends.
        """
        with self._lock:
            if self._is_beginning:
                return run_dir
            self.run_dirs.append(run_dir)
            ours, self.recorder = self.recorder, None
        self._timer.cancel()
        if ours is not None:
            self._guarded("step aside", lambda: discard(ours))
        return run_dir

    def recording_begun(self, note: lifecycle.Note) -> None:
        """A recorder lives; `note` writes notes into its file. Here there are none."""

    def recording_ends(self, note: lifecycle.Note, error: BaseException | None) -> None:
        """It is about to close, by the exception where there is one."""

    def step_taken(self, recorder: Any) -> None:
        """A step of a live recorder is done; may raise what is no Exception."""
        self.num_steps += 1
        if recorder is self.recorder and not self._is_stepping:
            self._program_steps = True

    # What optimizers tell.

    @untraced
    def _before_step(self, optimizer: Any, *_: Any) -> None:
        if self.recorder is not None:
            self._guarded("attach", lambda: self._attach(optimizer))
        # Its caller is what calls the hooks, and then the step.
        self._iterations.before_step(optimizer, sys._getframe(1))  # noqa: SLF001

    @untraced
    def _after_step(self, optimizer: Any, *_: Any) -> None:
        self._iterations.after_step(optimizer)

    def iterated(self) -> None:
        """An iteration of the training is over."""
        recorder = self.recorder
        if recorder is None or self._program_steps:
            return
        self._is_stepping = True
        try:
            recorder.step()
        finally:
            self._is_stepping = False

    def _attach(self, optimizer: Any) -> None:
        """Attach an optimizer that steps for the first time, and what it trains."""
        recorder = self.recorder
        if recorder is None or optimizer in self._optimizers:
            return
        self._optimizers.add(optimizer)
        models = []
        if not self._is_trained(optimizer):
            models = models_of([optimizer])
            for model in models:
                self._trained.update(map(id, listed(model, "parameters")))
        recorder.attach(model=models or None, optimizer=optimizer)

    def _is_trained(self, optimizer: Any) -> bool:
        """Whether it trains a model that is attached: one of its tensors tells."""
        tensors = (
            tensor for group in optimizer.param_groups for tensor in group["params"]
        )
        return id(next(tensors, None)) in self._trained

    # How it begins and ends.

    def _torch_came(self) -> None:
        self._guarded("begin", self._begin_with_torch)

    def _begin_with_torch(self) -> None:
        self._has_torch = True
        self._timer.cancel()
        without, self.recorder = self.recorder, None
        if without is not None:
            without.close()
        self._begin()
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        # After the recorder: what it times of an optimizer has then ended.
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)

    def _torch_stays_away(self) -> None:
        if "torch" not in sys.modules:
            off = dict.fromkeys(_OF_TORCH, False)
            self._guarded("begin", lambda: self._begin(device="off", **off))

    def _begin(self, **also: Any) -> None:
        with self._lock:
            if self._is_over or self.steps_aside or self.recorder is not None:
                return
            self._is_beginning = True
            try:
                keywords = {**self._settings.keywords, **also}
                recorder = record(
                    self._settings.run_dir, config=self._settings.config, **keywords
                )
            finally:
                self._is_beginning = False
            if recorder.attempt:  # else it is switched off, or could not start
                self.recorder = recorder

    def _at_exit(self, pid: int) -> None:
        """Recorders are closed by now: they are asked before."""
        if os.getpid() != pid:
            return
        if self.recorder is not None:
            self.recorder.close()
        if os.environ.get("RANK", "0") == "0" and (sentence := self.said()):
            with contextlib.suppress(OSError, ValueError):
                print(f"memboard: {sentence}", file=sys.stderr, flush=True)  # noqa: T201

    def _after_fork(self) -> None:
        """A child of the program's is not recorded."""
        lifecycle.launcher = None
        self._lock = threading.RLock()
        self._is_over, self.recorder = True, None

    def _guarded(self, action: str, call: Any) -> None:
        with Block(partial(self._failed, action)):
            call()

    def _failed(self, action: str, error: BaseException) -> None:
        if isinstance(error, ConfigError):
            self._warn_once(action, "%s It is not recorded.", error)
            return
        self._warn_once(
            action,
            "`memboard run` failed to %s; the program goes on. Please report this.",
            action,
            error=error,
        )


def ending(run_dir: Path | None, run_dirs: list[Path], num_steps: int) -> str:
    """Where the run lies and how to see it; `run_dirs`: where the program recorded."""
    if run_dirs:
        where = " and ".join(dict.fromkeys(map(_shown, run_dirs)))
        logdir = _shown(run_dirs[-1].parent)
        return (
            f"the program recorded itself in {where}. To see it:"
            f" tensorboard --logdir {shlex.quote(logdir)}"
        )
    if run_dir is None:
        return "nothing is recorded: the program ended before it imported torch."
    recorded_text = f"{counted(num_steps, 'step')} recorded in"
    if not num_steps:
        recorded_text = (
            "no optimizer of torch stepped in this process; its host is recorded in"
        )
    return (
        f"{recorded_text} {_shown(run_dir)}. To see it:"
        f" tensorboard --logdir {shlex.quote(_shown(run_dir.parent))}"
    )


def _shown(path: Path) -> str:
    """Relative to the working directory where it is below it."""
    try:
        return str(path.relative_to(Path.cwd())) or "."
    except (ValueError, OSError):
        return os.fspath(path)


def discard(recorder: Recorder) -> None:
    """Close it; where it has no step, remove its file and the folders that are empty then.

    One with a mirror stays: its file may be there already.
    """
    recorder.close()
    path, run_dir = recorder.path, recorder.run_dir
    is_mirrored = recorder._session.engine.remote.is_on  # noqa: SLF001  # our own
    if path is None or recorder.num_steps or is_mirrored:
        return
    path.unlink(missing_ok=True)
    folder = path.parent
    with contextlib.suppress(OSError):  # others are in it, or it is gone
        while folder != run_dir.parent:
            folder.rmdir()
            folder = folder.parent


def models_of(optimizers: Iterable[Any]) -> list[Any]:
    """The outermost modules that hold a parameter of these, the largest first.

    Looks at every object that the garbage collector knows: some 0.1 s per million. Runs no
    code of theirs but `parameters` and `modules`. May raise what odd models raise.
    """
    from torch import nn

    trained = {
        id(tensor)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for tensor in group["params"]
    }
    # By their type: `isinstance` asks an object for its `__class__`, which may be code.
    every = [
        candidate
        for candidate in gc.get_objects()
        if issubclass(type(candidate), nn.Module)
    ]
    every = [
        module for module in every if "_modules" in module.__dict__
    ]  # else half made
    inside = {
        id(child) for module in every for child in module.__dict__["_modules"].values()
    }
    counted_modules = []
    for module in every:
        if id(module) not in inside:
            parameters = listed(module, "parameters")
            num_trained = sum(id(tensor) in trained for tensor in parameters)
            if num_trained:
                counted_modules.append((num_trained, module))
    counted_modules.sort(key=lambda pair: -pair[0])
    return [module for _, module in counted_modules]
