"""Finished traces on their way to the disk, on a thread of their own.

No trace of the schedule's is dropped because others are on their way. One whose
file is there is recorded, counted and sent to the mirror at once; what is read out of it is
recorded later, when none waits to be saved. Where too much waits in memory, the step that
has ended a trace waits too, as it does for torch's own handler, which writes it there.

Measured with torch 2.13 and 200,000 events: to end a trace takes torch 7 us per event on
the thread that trains; to write it 2.4 us, to hand out its events 4 us and to free them
4 us, all of them holding the interpreter, so that training waits whichever thread asks.
Only packing (gzip) runs beside it. All else is read in small portions with pauses between.

A trace that has ended is announced before it is saved, so that of a process which is killed
in between the recording says which one is missing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from memboard.collector.clock.thread_progress import ThreadProgress
from memboard.collector.core.guard import Block
from memboard.collector.core.source import SourceInfo
from memboard.collector.core.warn_once import remedy_for
from memboard.collector.format.capture import TRACE_ENDED
from memboard.collector.process.own_threads import leave_profilers, own_thread
from memboard.collector.torch_profiler.digest.digest import digest_of
from memboard.collector.torch_profiler.digest.report import (
    NOT_YET,
    SavedTrace,
    capture_of,
)
from memboard.collector.torch_profiler.lost_traces import LostTraces
from memboard.collector.torch_profiler.saving import OverBudgetError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memboard.collector.config.sections import TorchProfilerConfig
    from memboard.collector.core.calls import Sink
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.torch_profiler.digest.digest import Digest
    from memboard.collector.torch_profiler.saving import TraceFiles
    from memboard.collector.torch_profiler.trace import Trace

_NAME: Final = "torch_profiler"

MAX_WAITING: Final = 2
"""Traces that may wait to be saved while training goes on, and be held by whatever size."""

MAX_UNREAD: Final = 64
"""Traces that may be saved and not yet read: each keeps its file open."""

MAX_UNREAD_BYTES: Final = 2**28
"""Of memory, about, that further traces may take which are saved and not yet read."""

_MEMORY_PER_BYTE: Final = 3
"""A trace's memory, as a multiple of its file: about a kilobyte per event."""

STALLED_SECONDS: Final = 60.0
"""Nobody waits longer where nothing moves: a disk or `post_process` that hangs."""

CLOSE_SECONDS: Final = 60.0
"""The longest that the end of a recording waits for traces to be read."""

SAVE_SECONDS: Final = 600.0
"""The longest that a step, or the end of a recording, waits for traces to be saved."""

CALM_SECONDS: Final = 30.0
"""The longest that a trace waits for torch to record no stacks, and torch for the work on a
trace to pause: it records the calls of every thread."""

TOLD_SECONDS: Final = 1.0
"""A shorter wait of a step is no news."""

_POLL_SECONDS: Final = 0.05

INFO: Final = SourceInfo(
    name="torch_profiler.memory_timeline", cost="50 us per event, beside training"
)


class Exporter:
    def __init__(
        self,
        files: TraceFiles,
        settings: TorchProfilerConfig,
        *,
        sink: Sink,
        warn_once: WarnOnce,
    ) -> None:
        self._files = files
        self.kept = files.kept
        self.lost = LostTraces(sink)
        self._settings = settings
        self._sink = sink
        self._warn_once = warn_once
        self._waiting: deque[Trace] = deque()
        """Traces that are to be saved."""
        self._saving: Trace | None = None
        self._saved: deque[SavedTrace] = deque()
        """Traces that are to be read."""
        self._reading: SavedTrace | None = None
        self._changed = threading.Condition()
        self._is_over = False
        self._is_awaited = False
        """Whether training waits for memory."""
        self._num_moves = 0
        """Rises with whatever is done here."""
        self._thread: threading.Thread | None = None
        self._calm = threading.Event()
        """Set while torch does not record what this thread does."""
        self._calm.set()
        self._rests = threading.Event()
        """Set while the thread does nothing that would be recorded."""
        self._rests.set()

    # For the training thread.

    @property
    def why_not(self) -> str:
        """Why a further trace could not be saved just now; empty where it could."""
        with self._changed:
            if not self._has_room:
                return "the traces before it could not be saved, as nothing moves"
        return self._files.why_full

    def put(self, trace: Trace) -> None:
        """Save it, on the thread; waits while memory has no room for a further one."""
        self._sink.put_capture(capture_of(trace, context=TRACE_ENDED, problem=NOT_YET))
        with self._changed:
            self._waiting.append(trace)
            if self._thread is None:
                self._thread = own_thread("traces", self._work)
                self._thread.start()
            self._changed.notify_all()
            if not self._has_room:
                self._await_room(self._thread)

    def recording(self, is_on: bool) -> None:
        """Torch begins or ends to record: other threads' Python calls are recorded too."""
        if not is_on:
            self._calm.set()
        elif self._settings.with_stack:
            self._calm.clear()
            self._rests.wait(CALM_SECONDS)

    def close(self) -> None:
        """Save and read what waits, as long as that goes on."""
        with self._changed:
            self._is_over = True
            self._calm.set()
            self._changed.notify_all()
        thread, began = self._thread, time.monotonic()
        if thread is not None:
            progress = ThreadProgress(thread, self._moves)
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
                with self._changed:
                    limit = SAVE_SECONDS if self._unsaved() else CLOSE_SECONDS
                seconds = time.monotonic() - began
                if seconds > limit or progress.idle_seconds() > STALLED_SECONDS:
                    self._give_up(seconds)
                    break
        self.lost.close()
        self.kept.settle()

    def after_fork(self) -> None:
        """This is a forked child: no thread is ours. Takes no lock: it may be held."""
        self._is_over = True
        self._thread = None
        self._waiting.clear()
        self._saved.clear()

    @property
    def _has_room(self) -> bool:
        """For one more trace, in memory; hold `_changed`, as for the next two."""
        unsaved, unread = self._unsaved(), self._unread()
        if len(unsaved) + len(unread) <= MAX_WAITING:
            return True
        unread_bytes = sum(saved.num_plain_bytes for saved in unread) * _MEMORY_PER_BYTE
        has_files = len(unread) < MAX_UNREAD
        return (
            len(unsaved) <= MAX_WAITING
            and has_files
            and unread_bytes <= MAX_UNREAD_BYTES
        )

    def _unsaved(self) -> list[Trace]:
        return [*filter(None, (self._saving,)), *self._waiting]

    def _unread(self) -> list[SavedTrace]:
        return [*filter(None, (self._reading,)), *self._saved]

    def _moves(self) -> int:
        return self._num_moves

    def _await_room(self, thread: threading.Thread) -> None:
        # Hold `_changed`
        began, progress = time.monotonic(), ThreadProgress(thread, self._moves)
        self._is_awaited = True
        try:
            while not (self._has_room or self._is_over):
                self._changed.wait(_POLL_SECONDS)
                seconds = time.monotonic() - began
                if progress.idle_seconds() > STALLED_SECONDS or seconds > SAVE_SECONDS:
                    break
        finally:
            self._is_awaited = False
        if time.monotonic() - began < TOLD_SECONDS:
            return
        self._warn_once(
            f"{_NAME} waits",
            "a training step has waited %.1f s for traces to be saved and read, and"
            " others may: traces come faster than that. Nothing is left out. Trace fewer"
            " cycles (schedule.wait, schedule.repeat), or record less of each step.",
            time.monotonic() - began,
        )

    def _give_up(self, seconds: float) -> None:
        """The recording ends before all is done; name what is lost."""
        with self._changed:
            unsaved, unread = self._unsaved(), self._unread()
        for trace in unsaved:
            why = f"the recording ended, and in {seconds:.0f} s it was not saved"
            self.lost.add(trace, why, "Record less of each step, or fewer steps.")
        if unread:
            self._warn_once(
                f"{_NAME} close",
                "after %d s traces are still being read: %d files are saved, their"
                " operators are not recorded. Record less of each step, or fewer steps.",
                seconds,
                len(unread),
            )

    # On its own thread.

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._saved or self._is_over):
                    self._changed.wait()
                    leave_profilers()
                if not (self._waiting or self._saved):
                    return
                self._rests.clear()
                if not self._waiting:
                    self._reading = self._saved.popleft()
            try:
                self._rest()
                self._save_waiting()
                if self._reading is not None:
                    self._digest(self._reading)
            finally:
                self._rests.set()
                with self._changed:
                    self._reading = None
                    self._changed.notify_all()

    def _rest(self) -> None:
        """Do nothing while torch records it."""
        if not self._calm.is_set():
            self._rests.set()
            self._calm.wait(CALM_SECONDS)
            leave_profilers()
            self._rests.clear()

    def _save_waiting(self) -> None:
        """Save all that wait, first of all else."""
        while True:
            with self._changed:
                if not self._waiting:
                    return
                trace = self._saving = self._waiting.popleft()
            with Block(partial(self._unsavable, trace)):
                self._save(trace)
            with self._changed:
                self._saving = None
                self._num_moves += 1
                self._changed.notify_all()
            del trace

    def _save(self, trace: Trace) -> None:
        """Write the file, and have it known and copied before anything is read of it."""
        saved = self._files.write(trace)
        self._num_moves += 1
        self._put(saved, None)
        self._rests.set()  # what is the user's may be recorded
        try:
            problem = self._files.hand_on(saved)
        finally:
            self._rests.clear()
            self._rest()
        problem = "; ".join(filter(None, (saved.problem, problem)))
        with self._changed:
            self._saved.append(replace(saved, problem=problem))

    def _unsavable(self, trace: Trace, error: BaseException) -> None:
        trace.profile = None
        remedy = "Please report this."
        if isinstance(error, OverBudgetError):
            remedy = "Keep fewer traces (torch_profiler.num_traces_to_keep)."
        elif isinstance(error, OSError):
            remedy = remedy_for(error)
        is_understood = isinstance(error, (OSError, OverBudgetError))
        self.lost.add(
            trace,
            f"{type(error).__name__}: {error}",
            remedy,
            error=None if is_understood else error,
        )

    def _digest(self, saved: SavedTrace) -> None:
        trace = saved.trace
        with Block(partial(self._unreadable, saved.path)):
            with saved.file as file:
                digest = digest_of(
                    trace,
                    file,
                    self._settings,
                    rank=self._sink.rank,
                    pause=self._pause,
                )
            if digest.why_no_timeline:
                self._sink.note_kind(INFO, "absent", *digest.why_no_timeline)
            beside, problems = self._files.write_beside(digest, saved)
            self._put(saved, digest, beside, (*digest.problems, *problems))
        trace.profile = None

    def _unreadable(self, path: Path, error: BaseException) -> None:
        self._warn_once(
            f"{_NAME} digest {type(error).__name__}",
            "the trace %s is saved, but it could not be read: its operators are not"
            " recorded. Training and recording go on. Please report this.",
            path,
            error=error,
        )

    def _put(
        self,
        saved: SavedTrace,
        digest: Digest | None,
        beside: Sequence[Path] = (),
        problems: Sequence[str] = (),
    ) -> None:
        problem = "; ".join(filter(None, (saved.problem, *problems)))
        self._sink.put_capture(
            capture_of(saved.trace, digest, saved, beside=beside, problem=problem)
        )

    def _pause(self, seconds: float) -> None:
        """Let training have the interpreter, and torch its recording; save what waits."""
        self._num_moves += 1
        if not (self._is_over or self._is_awaited):
            time.sleep(seconds)
        self._rest()
        self._save_waiting()
