"""Finished traces on their way to the disk, on a thread of their own.

A trace whose file is there is recorded, counted and sent to the mirror at once. Only when
no other one waits to be saved is it digested: what is read out of it is recorded later.

Measured with torch 2.13 and 200,000 events: to end a trace takes torch 7 us per event on
the thread that trains; to write it 2.4 us, to hand out its events 4 us and to free them
4 us, all of them holding the interpreter, so that training waits whichever thread asks.
Only packing (gzip) runs beside it. All else is read in small portions with pauses between.

At most `MAX_IN_MEMORY` traces wait, are saved or are read: each holds its events in memory,
about a kilobyte each.
"""

from __future__ import annotations

import errno
import shutil
import threading
import time
from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from collector.config.values import resolve
from collector.core.guard import Block
from collector.core.source import SourceInfo
from collector.core.warn_once import remedy_for
from collector.format.sizes import counted
from collector.torch_profiler.digest.digest import DigestInterruptedError, digest_of
from collector.torch_profiler.digest.report import Saved, capture_of
from collector.torch_profiler.files import free_name, place_of, write_text, write_trace
from collector.torch_profiler.kept import Kept
from collector.torch_profiler.moments import identity_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from collector.config.sections import TorchProfilerConfig
    from collector.core.calls import Sink
    from collector.core.rank import Identity
    from collector.core.warn_once import WarnOnce
    from collector.mirror.mirror import Mirror
    from collector.torch_profiler.digest.digest import Digest
    from collector.torch_profiler.source import Trace

_NAME: Final = "torch_profiler"

MAX_BYTES: Final = 20 * 2**30
"""Disk budget of one rank's traces and what belongs to them; no more is saved then."""

MAX_IN_MEMORY: Final = 3

CLOSE_SECONDS: Final = 60.0
"""The longest that the end of a recording waits for traces to be saved."""

CALM_SECONDS: Final = 30.0
"""The longest that a trace waits for torch to record no stacks: it records those of every
thread, and what goes on here would fill the next trace."""

PLACE_SECONDS: Final = 10.0
"""Longest wait of the first trace for the rank's file, whose neighbour it becomes."""

_LEAST_FREE_BYTES: Final = 2**26

INFO: Final = SourceInfo(
    name="torch_profiler.memory_timeline", cost="50 us per event, beside training"
)


class OverBudgetError(Exception):
    """A trace that was larger than what is left of the budget."""


class NoRoomError(OSError):
    """The disk is nearly full."""


class Exporter:
    """Of one recording."""

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
        self.kept = Kept(settings.num_traces_to_keep, remote)
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
        self._waiting: deque[Trace] = deque()
        """Traces that are to be saved."""
        self._saved: deque[Saved] = deque()
        """Traces that are to be digested."""
        self._changed = threading.Condition()
        self._is_busy = self._is_saving = False
        self._is_over = False
        self._thread: threading.Thread | None = None
        self._calm = threading.Event()
        """Set while torch does not record what this thread does."""
        self._calm.set()
        self._largest = 0
        """Bytes of the largest trace so far."""

    # For the training thread.

    @property
    def why_not(self) -> str:
        """Why a further trace could not be saved just now; empty where it could."""
        if len(self._waiting) + len(self._saved) + self._is_busy >= MAX_IN_MEMORY:
            return "the traces before it are still being saved or read"
        if self.kept.num_bytes_beside >= MAX_BYTES:
            return f"the traces on this disk take {MAX_BYTES:,} bytes, which is all they may"
        return ""

    def put(self, trace: Trace) -> None:
        """Save it, on the thread."""
        with self._changed:
            self._waiting.append(trace)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="memboard-traces", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def recording(self, is_on: bool) -> None:
        """Torch begins or ends to record: other threads' Python calls are recorded too."""
        if not is_on:
            self._calm.set()
        elif self._settings.with_stack:
            self._calm.clear()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Save what waits, for a bounded time."""
        with self._changed:
            self._is_over = True
            self._calm.set()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                is_lost = self._waiting or self._is_saving
                self._warn_once(
                    f"{_NAME} close",
                    "after %d s a trace is still being %s. Record less of each step, or"
                    " fewer steps.",
                    seconds,
                    "saved and may be lost"
                    if is_lost
                    else "read: its file is saved, its operators are not recorded",
                )
        self.kept.settle()

    def after_fork(self) -> None:
        """This is a forked child: no thread is ours. Takes no lock: it may be held."""
        self._is_over = True
        self._thread = None
        self._waiting.clear()
        self._saved.clear()

    # On its own thread.

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._saved or self._is_over):
                    self._changed.wait()
                if not (self._waiting or self._saved):
                    return
                self._is_busy = True
                trace = self._waiting.popleft() if self._waiting else None
                saved = None if trace else self._saved.popleft()
                self._is_saving = trace is not None
            try:
                self._calm.wait(CALM_SECONDS)
                if trace is not None:
                    self._save(trace)
                elif saved is not None:
                    self._digest(saved)
            finally:
                del trace, saved
                self._is_busy = self._is_saving = False

    def _save(self, trace: Trace) -> None:
        """Write the file, and have it known and copied before anything is read of it."""
        with Block(partial(self._lost, trace)):
            self._saved.append(self._written(trace))

    def _lost(self, trace: Trace, error: BaseException) -> None:
        trace.profile = None
        remedy = "Please report this."
        if isinstance(error, OverBudgetError):
            remedy = "Keep fewer traces (torch_profiler.num_traces_to_keep)."
        elif isinstance(error, OSError):
            remedy = remedy_for(error)
        known = isinstance(error, (OSError, OverBudgetError))
        self._warn_once(
            f"{_NAME} save {type(error).__name__}",
            "the trace of steps %d to %d was not saved and nothing of it is left: %s."
            " Training and recording go on. %s",
            trace.first_step,
            trace.last_step,
            error,
            remedy,
            error=None if known else error,
        )
        problem = f"not saved: {type(error).__name__}: {error}"[:500]
        self._sink.put_capture(capture_of(trace, problem=problem))

    def _written(self, trace: Trace) -> Saved:
        folder = self._folder()
        values = {
            **identity_values(self._identify(), self._run_dir.name),
            **trace.moment,
        }
        path = self._place(folder, self._settings.filename, values)
        self._check_room(folder)
        write_trace(trace.profile, path, compress=path.name.endswith(".gz"))
        size = path.stat().st_size
        self._largest = max(self._largest, size)
        if self.kept.num_bytes_beside + size > MAX_BYTES:
            path.unlink(missing_ok=True)
            raise OverBudgetError(
                f"{counted(size, 'byte')} more than the {MAX_BYTES:,} that traces may take"
            )
        stays, url = self.kept.add(trace.end_ns, trace.last_step, path, values)
        saved = Saved(
            trace=trace,
            folder=folder,
            path=path,
            num_bytes=size,
            values=values,
            kept=stays,
            remote=url,
            problem=trace.problem,
        )
        self._put(saved, None)
        self._flush(PLACE_SECONDS)
        problem = self._post_processed(path)
        self.kept.send(path, values, stays=stays)
        return replace(saved, problem="; ".join(filter(None, (saved.problem, problem))))

    def _digest(self, saved: Saved) -> None:
        trace = saved.trace
        try:
            with Block(partial(self._unread, saved.path), (DigestInterruptedError,)):
                digest = digest_of(
                    trace, self._settings, rank=self._sink.rank, pause=self._pause
                )
                if digest.why_no_timeline:
                    self._sink.note_kind(INFO, "absent", *digest.why_no_timeline)
                beside, problems = self._write_beside(digest, saved)
                self._put(saved, digest, beside, (*digest.problems, *problems))
        except DigestInterruptedError:
            self._saved.appendleft(saved)
            return
        trace.profile = None

    def _unread(self, path: Path, error: BaseException) -> None:
        self._warn_once(
            f"{_NAME} digest {type(error).__name__}",
            "the trace %s is saved, but it could not be read: its operators are not"
            " recorded. Training and recording go on. Please report this.",
            path,
            error=error,
        )

    def _put(
        self,
        saved: Saved,
        digest: Digest | None,
        beside: Sequence[Path] = (),
        problems: Sequence[str] = (),
    ) -> None:
        problem = "; ".join(filter(None, (saved.problem, *problems)))
        self._sink.put_capture(
            capture_of(saved.trace, digest, saved, beside=beside, problem=problem)
        )

    def _pause(self, seconds: float) -> None:
        """Let training have the interpreter, and torch its recording."""
        if self._waiting:
            raise DigestInterruptedError
        if not self._is_over:
            time.sleep(seconds)
            self._calm.wait(CALM_SECONDS)

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

    def _post_processed(self, path: Path) -> str:
        failed: list[BaseException] = []
        if self._post_process is not None:
            with Block(failed.append):
                self._post_process(path)
        for error in failed:
            self._warn_once(
                f"{_NAME}.post_process",
                "torch_profiler.post_process failed for %s; the trace is there all the"
                " same, and the rest goes on. Correct the function.",
                path,
                error=error,
            )
            return f"post_process failed: {type(error).__name__}: {error}"[:500]
        return ""

    def _write_beside(
        self, digest: Digest, saved: Saved
    ) -> tuple[list[Path], list[str]]:
        """Write what belongs to the trace: the files, and what went wrong."""
        settings = self._settings
        paths: list[Path] = []
        problems: list[str] = []
        memory = digest.memory_csv if settings.memory_filename else None
        for template, text in (
            (settings.stacks_filename, digest.stacks),
            (settings.memory_filename, memory),
        ):
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
                self.kept.add_beside(saved.path, path, saved.values)
        return paths, problems
