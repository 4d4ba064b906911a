"""The files of one recording's traces: written, bounded, handed to the user and the mirror."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.config.values import resolve
from memboard.collector.core.guard import Block
from memboard.collector.core.warn_once import remedy_for
from memboard.collector.format.sizes import counted
from memboard.collector.torch_profiler.digest.report import SavedTrace
from memboard.collector.torch_profiler.files import (
    free_name,
    place_of,
    write_text,
    write_trace,
)
from memboard.collector.torch_profiler.retention import TraceRetention
from memboard.collector.torch_profiler.template_variables import identity_values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memboard.collector.config.sections import TorchProfilerConfig
    from memboard.collector.config.templates import Kind
    from memboard.collector.core.calls import Sink
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.mirror.mirror import Mirror
    from memboard.collector.process.rank import Identity
    from memboard.collector.torch_profiler.digest.digest import Digest
    from memboard.collector.torch_profiler.trace import Trace

_NAME: Final = "torch_profiler"

MAX_BYTES: Final = 20 * 2**30
"""Disk budget of one rank's traces and what belongs to them; no more is saved then."""

PLACE_SECONDS: Final = 10.0
"""Longest wait of a trace for the rank's file, whose neighbour it becomes."""

_LEAST_FREE_BYTES: Final = 2**26


class OverBudgetError(Exception):
    """A trace that was larger than what is left of the budget."""


class NoRoomError(OSError):
    """The disk is nearly full."""


class TraceFiles:
    """Of one recording; all but `why_full` is for one thread."""

    def __init__(
        self,
        settings: TorchProfilerConfig,
        *,
        sink: Sink,
        identify: Callable[[], Identity],
        run_dir: Path,
        remote: Callable[[], Mirror | None],
        flush: Callable[[float], object],
        warn_once: WarnOnce,
    ) -> None:
        """`flush` has the rank's file made, if it is not there yet, within seconds."""
        self.kept = TraceRetention(settings.num_traces_to_keep, remote)
        self._settings = settings
        self._sink = sink
        self._identify = identify
        self._run_dir = run_dir
        self._flush = flush
        self._warn_once = warn_once
        self._post_process = (
            None
            if settings.post_process is None
            else resolve(settings.post_process, "torch_profiler.post_process")
        )
        self._largest = 0
        """Bytes of the largest trace so far."""

    @property
    def why_full(self) -> str:
        """Why there is no room for a further trace; empty where there is."""
        if self.kept.num_bytes_beside < MAX_BYTES:
            return ""
        return (
            f"the traces on this disk take {MAX_BYTES:,} bytes, which is all they may"
        )

    def write(self, trace: Trace) -> SavedTrace:
        """Write a trace's file, and count it.

        Raises:
            OSError: it could not be written.
            OverBudgetError: it is too large.
        """
        folder = self._folder()
        values = {
            **identity_values(self._identify(), self._run_dir.name),
            **trace.moment,
        }
        below = place_of(folder, self._settings.folder, values)
        path = self._place(below, self._settings.filename, values)
        self._check_room(folder)
        plain = write_trace(trace.profile, path, compress=path.name.endswith(".gz"))
        size = path.stat().st_size
        self._largest = max(self._largest, plain)
        if self.kept.num_bytes_beside + size > MAX_BYTES:
            path.unlink(missing_ok=True)
            raise OverBudgetError(
                f"it is beyond the {MAX_BYTES:,} bytes that traces may take"
            )
        file = path.open("rb")
        stays, url = self.kept.add(trace.end_ns, trace.last_step, path, values)
        return SavedTrace(
            trace=trace,
            folder=folder,
            path=path,
            file=file,
            num_bytes=size,
            num_plain_bytes=plain,
            values=values,
            kept=stays,
            remote=url,
            problem=trace.problem,
        )

    def hand_on(self, saved: SavedTrace) -> str:
        """Give a trace to the user's function, then to the mirror; what went wrong."""
        self._flush(PLACE_SECONDS)
        failed: list[BaseException] = []
        if self._post_process is not None:
            with Block(failed.append):
                self._post_process(saved.path)
        self.kept.send("traces", saved.path, saved.values, stays=saved.kept)
        for error in failed:
            self._warn_once(
                f"{_NAME}.post_process",
                "torch_profiler.post_process failed for %s; the trace is there all the"
                " same, and the rest goes on. Correct the function.",
                saved.path,
                error=error,
            )
            return f"post_process failed: {type(error).__name__}: {error}"[:500]
        return ""

    def write_beside(
        self, digest: Digest, saved: SavedTrace
    ) -> tuple[list[Path], list[str]]:
        """Write what belongs to the trace: the files, and what went wrong."""
        settings = self._settings
        paths: list[Path] = []
        problems: list[str] = []
        trace = saved.trace
        title = f"Rank {saved.values['rank']}, steps {trace.first_step} to {trace.last_step}"
        memory = digest.memory_text(settings.memory_filename, title)
        beside: tuple[tuple[Kind, str, str | None], ...] = (
            ("stacks", settings.stacks_filename, digest.stacks),
            ("memory", settings.memory_filename, memory),
        )
        for kind, template, text in beside:
            if text is None:
                continue
            path = self._place(saved.path.parent, template, saved.values)
            try:
                write_text(text, path, compress=path.name.endswith(".gz"))
            except OSError as error:
                problems.append(f"{path.name} was not written: {error}")
                self._warn_once(
                    f"{_NAME} {type(error).__name__} {error.errno}",
                    "%s could not be written: %s. %s",
                    path,
                    error,
                    remedy_for(error),
                )
            else:
                paths.append(path)
                self.kept.add_beside(kind, saved.path, path, saved.values)
        return paths, problems

    def _folder(self) -> Path:
        folder = self._sink.artifact_dir()
        if folder is None:
            self._flush(PLACE_SECONDS)
            folder = self._sink.artifact_dir()
        if folder is None:
            raise OSError("the rank's file, beside which it belongs, cannot be written")
        return folder

    def _place(self, folder: Path, template: str, values: dict[str, Any]) -> Path:
        path = place_of(folder, template, values)
        return free_name(path, self.kept.is_taken)

    def _check_room(self, folder: Path) -> None:
        """Refuse before the last bytes of a disk are taken from the recording itself."""
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        needed = max(_LEAST_FREE_BYTES, self._largest)
        if free < needed:
            text = f"it may take {counted(needed, 'byte')}, and {free:,} are free"
            raise NoRoomError(errno.ENOSPC, text)
