"""Finished traces on their way to the disk, on a thread of their own.

Measured with torch 2.13 and 200,000 events: to end a trace takes torch 7 us per event on
the thread that trains; to write it 2.4 us, to hand out its events 4 us and to free them
4 us, all of them holding the interpreter, so that training waits whichever thread asks.
Only packing (gzip) runs beside it. All else is read in small portions with pauses between.

At most `MAX_WAITING` traces wait: each holds its events in memory, about a kilobyte each.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from collector.config_code import resolve
from collector.sources.contract import SourceInfo
from collector.torch_profiler.digest import digest_of
from collector.torch_profiler.files import free_name, place_of, write_text, write_trace
from collector.torch_profiler.kept import Kept
from collector.torch_profiler.moments import identity_values
from collector.torch_profiler.report import capture_of
from collector.trouble import remedy_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.config_torch_profiler import TorchProfilerConfig
    from collector.profiling.contract import Sink
    from collector.rank import Identity
    from collector.torch_profiler.digest import Digest
    from collector.torch_profiler.kept import Remote
    from collector.torch_profiler.source import Trace
    from collector.trouble import Troubles

MAX_WAITING: Final = 2

CLOSE_SECONDS: Final = 60.0
"""The longest that the end of a recording waits for traces to be saved."""

CALM_SECONDS: Final = 30.0
"""The longest that a trace waits for torch to record no stacks: it records those of every
thread, and what goes on here would fill the next trace."""

PLACE_SECONDS: Final = 10.0
"""How long the first trace waits for the rank's file, whose neighbour it becomes."""

_LEAST_FREE_BYTES: Final = 2**26

INFO: Final = SourceInfo(
    name="torch_profiler.memory_timeline", cost="50 us per event, beside training"
)


class Exporter:
    """See the module; `source.Taker`."""

    def __init__(
        self,
        settings: TorchProfilerConfig,
        *,
        sink: Sink,
        identify: Callable[[], Identity],
        run_dir: Path,
        remote: Callable[[], Remote | None],
        flush: Callable[[float], object],
        troubles: Troubles,
    ) -> None:
        """`flush` has the rank's file made, if it is not there yet, within seconds."""
        self.kept = Kept(settings.num_traces_to_keep, remote)
        self._settings = settings
        self._sink = sink
        self._identify = identify
        self._run_dir = run_dir
        self._flush = flush
        self._troubles = troubles
        self._post_process = (
            None
            if settings.post_process is None
            else resolve(settings.post_process, "torch_profiler.post_process")
        )
        self._waiting: deque[Trace] = deque()
        self._changed = threading.Condition()
        self._is_busy = False
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
        """See `source.Taker`."""
        if len(self._waiting) + self._is_busy > MAX_WAITING:
            return "the traces before it are still being saved"
        if self.kept.num_bytes_beside >= self._settings.max_bytes:
            return "torch_profiler.max_bytes is reached"
        return ""

    def put(self, trace: Trace) -> None:
        """See `source.Taker`."""
        with self._changed:
            self._waiting.append(trace)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="memboard-traces", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def recording(self, is_on: bool) -> None:
        """See `source.Taker`."""
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
                self._troubles.tell(
                    "torch_profiler close",
                    "after %d s a trace is still being saved and may be lost. Record"
                    " less of each step, or fewer steps.",
                    seconds,
                )
        self.kept.settle()

    def forget(self) -> None:
        """In a forked child: no thread is ours. Takes no lock: it may be held."""
        self._is_over = True
        self._thread = None
        self._waiting.clear()

    # On its own thread.

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._is_over:
                    self._changed.wait()
                if not self._waiting:
                    return
                trace = self._waiting.popleft()
                self._is_busy = True
            try:
                self._calm.wait(CALM_SECONDS)
                self._export(trace)
            except Exception as error:  # noqa: BLE001  # the next one may be saved
                self._tell_lost(trace, error)
            finally:
                trace.profile = None
                del trace
                self._is_busy = False

    def _export(self, trace: Trace) -> None:
        folder = self._folder()
        values = {
            **identity_values(self._identify(), self._run_dir.name),
            **trace.moment,
        }
        path = self._place(folder, self._settings.filename, values, trace=True)
        self._check_room(folder)
        write_trace(trace.profile, path, compress=path.name.endswith(".gz"))
        size = path.stat().st_size
        self._largest = max(self._largest, size)
        paths, problems = [path], [trace.problem]
        if self.kept.num_bytes_beside + size > self._settings.max_bytes:
            path.unlink(missing_ok=True)
            raise OverBudgetError(f"{size:,} bytes more than torch_profiler.max_bytes")
        problems.append(self._post_processed(path))
        digest = digest_of(
            trace, self._settings, rank=self._sink.rank, pause=self._pause
        )
        if digest.why_no_timeline:
            why, remedy = digest.why_no_timeline
            self._sink.note_kind(INFO, "absent", why, remedy)
        problems += digest.problems
        problems += self._write_beside(digest, folder, values, paths, trace)
        stays, url = self.kept.add(trace.end_ns, trace.last_step, paths, values)
        self._sink.put_capture(
            capture_of(
                trace,
                digest,
                path=path.relative_to(folder).as_posix(),
                num_bytes=size,
                beside=[p.relative_to(folder).as_posix() for p in paths[1:]],
                kept=stays,
                remote=url,
                problem="; ".join(filter(None, problems)),
            )
        )

    def _pause(self, seconds: float) -> None:
        """Let training have the interpreter, and torch its recording."""
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

    def _place(
        self,
        folder: Path,
        template: str,
        values: dict[str, Any],
        *,
        trace: bool = False,
    ) -> Path:
        settings = self._settings
        suffix = ".gz" if trace and settings.gzip else ""
        path = place_of(folder, settings.folder, template, values, suffix=suffix)
        return path if settings.overwrite else free_name(path, self.kept.is_taken)

    def _check_room(self, folder: Path) -> None:
        """Refuse before the last bytes of a disk are taken from the recording itself."""
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        needed = max(_LEAST_FREE_BYTES, self._largest)
        if free < needed:
            raise NoRoomError(f"{free:,} bytes are free, and it may take {needed:,}")

    def _post_processed(self, path: Path) -> str:
        if self._post_process is None:
            return ""
        try:
            self._post_process(path)
        except Exception as error:  # noqa: BLE001  # the user's own
            self._troubles.tell(
                "torch_profiler.post_process",
                "torch_profiler.post_process failed for %s; the trace is there all the"
                " same, and the rest goes on. Correct the function.",
                path,
                error=error,
            )
            return f"post_process failed: {type(error).__name__}: {error}"[:500]
        return ""

    def _write_beside(
        self,
        digest: Digest,
        folder: Path,
        values: dict[str, Any],
        paths: list[Path],
        trace: Trace,
    ) -> list[str]:
        """Write what belongs to the trace, and add it to `paths`; what went wrong."""
        settings = self._settings
        problems: list[str] = []
        title = f"{self._run_dir.name}, rank {self._sink.rank}: memory by category"
        facts = f"Steps {trace.first_step} to {trace.last_step}, cycle {trace.cycle}."
        page = digest.page(title, facts) if settings.memory_filename else None
        for template, text in (
            (settings.stacks_filename, digest.stacks),
            (settings.memory_filename, page),
        ):
            if text is None:
                continue
            path = self._place(folder, template, values)
            try:
                write_text(text, path, compress=path.name.endswith(".gz"))
                paths.append(path)
            except OSError as error:
                problems.append(f"{path.name} was not written: {error}")
                self._tell_file(path, error)
        return problems

    def _tell_file(self, path: Path, error: OSError) -> None:
        self._troubles.tell(
            f"torch_profiler {type(error).__name__} {error.errno}",
            "%s could not be written: %s. %s",
            path,
            error,
            remedy_for(error),
        )

    def _tell_lost(self, trace: Trace, error: Exception) -> None:
        remedy = "Please report this."
        if isinstance(error, OverBudgetError):
            remedy = (
                "Raise it, or keep fewer traces (torch_profiler.num_traces_to_keep)."
            )
        elif isinstance(error, OSError):
            remedy = remedy_for(error)
        known = isinstance(error, (OSError, OverBudgetError))
        self._troubles.tell(
            f"torch_profiler save {type(error).__name__}",
            "the trace of steps %d to %d was not saved and nothing of it is left: %s."
            " Training and recording go on. %s",
            trace.first_step,
            trace.last_step,
            error,
            remedy,
            error=None if known else error,
        )
        self._sink.put_capture(
            capture_of(
                trace, None, problem=f"not saved: {type(error).__name__}: {error}"[:500]
            )
        )


class OverBudgetError(Exception):
    """A trace that was larger than what is left of `max_bytes`."""


class NoRoomError(OSError):
    """The disk is nearly full."""

    def __init__(self, text: str) -> None:
        import errno

        super().__init__(errno.ENOSPC, text)
