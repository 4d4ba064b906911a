"""Rows, notes and captures of one recorder, from the training thread to its files.

The training thread appends to a bounded queue and never waits. A daemon thread empties
it into the rank's file, and on rank 0 into the scalars file, so often that nothing is
older than `flush_seconds` when it reaches the disk. Whatever happens to the disk stays
here: rows wait, then are dropped and counted, and one warning names the remedy.

After a fork the child's copy is dead: its threads do not exist there, and what it holds
belongs to the parent's file.
"""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from memboard.collector.clock.thread_progress import ThreadProgress
from memboard.collector.core.guard import Block, Retry
from memboard.collector.core.warn_once import warn
from memboard.collector.format.sizes import counted
from memboard.collector.process.own_threads import leave_profilers, own_thread
from memboard.collector.writing.output import End, Output, WriterPlan
from memboard.collector.writing.queues.captures import CaptureQueue
from memboard.collector.writing.queues.rows import RowQueue

if TYPE_CHECKING:
    from pathlib import Path

    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.format.records import Capture, How
    from memboard.collector.process.rank import Identity

__all__ = ["Writer", "WriterPlan"]

_PERIOD_SHARE: Final = 0.75
"""Of `flush_seconds`: leaves a late wake-up room before the promise is broken."""

_HOLD_SECONDS: Final = 1.0
"""Time for an unsettled rank to settle before its file gets a name."""

_FLUSH_POLL_SECONDS: Final = 0.05
STALLED_SECONDS: Final = 2.0
"""A writer that has neither written a byte nor computed for so long has a disk that hangs:
the end of a recording waits for it no longer. So long it waits without a word, too."""

_MAX_FAULTS: Final = 8


class WakeEvent:
    """Wakes one waiting thread.

    An `Event.set` takes a lock, so a signal handler that interrupts it and sets it again
    would wait for itself; a `SimpleQueue` may be entered again at any point.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Wake who waits, or who will."""
        self._queue.put(None)

    def wait(self, timeout: float) -> None:
        """Until set, at most `timeout` seconds; clears it."""
        with contextlib.suppress(Empty):
            self._queue.get(timeout=timeout)
            while True:
                self._queue.get_nowait()


class Writer:
    """Of one recorder. `put_*` are for any thread and take about a microsecond."""

    def __init__(
        self, plan: WriterPlan, identity: Identity, attempt: str, warn_once: WarnOnce
    ) -> None:
        self._plan = plan
        self._wake = WakeEvent()
        self._queue = RowQueue(plan.queue_rows, self._wake.set, full=self._warn_full)
        self.put_row = self._queue.put_row
        self.put_schema = self._queue.put_schema
        self.put_note = self._queue.put_note
        self.wake = self._wake.set
        """Have what is queued written soon."""
        self._captures = CaptureQueue(warn_once, self._wake.set)
        self.put_capture = self._captures.put
        self._output = Output(
            plan,
            identity,
            attempt,
            queue=self._queue,
            captures=self._captures,
            warn_once=warn_once,
        )
        self._warn_once = warn_once
        self._num_faults = 0
        self._retry = Retry()
        self._is_closing = False
        self._is_given_up = False
        """Whether the end did not wait until all was written."""
        self._flushed = threading.Condition()
        self._num_started = 0
        self._num_finished = 0
        self._thread = own_thread("writer", self._run)

    # For the training thread.

    def start(self) -> None:
        """Start the thread; it creates the file."""
        self._thread.start()

    def put_urgent(self, capture: Capture, seconds: float) -> bool:
        """Have a small capture on the disk before all else; whether that was done.

        Waits for it, `seconds` at most; it stays queued where the disk is slower.
        """
        urgent = self._captures.put_urgent(capture)
        if urgent is None:
            return False
        self._output.retry_soon()  # this may be the last that is written
        deadline = time.monotonic() + seconds
        while not urgent.is_settled.is_set():
            rest = deadline - time.monotonic()
            if rest <= 0 or not self._thread.is_alive():
                return False
            self._wake.set()
            urgent.is_settled.wait(min(rest, _FLUSH_POLL_SECONDS))
        return urgent.is_on_disk

    def _warn_full(self) -> None:
        self._output.warn_full()

    def flush(self, timeout: float) -> bool:
        """Have everything queued written now; whether that was done in time."""
        deadline = time.monotonic() + timeout
        with self._flushed:
            # The round under way may have passed this call's rows: the next one counts.
            target = self._num_started + 1
            while self._num_finished < target:
                rest = deadline - time.monotonic()
                if rest <= 0 or not self._thread.is_alive():
                    return False
                self._wake.set()
                self._flushed.wait(min(rest, _FLUSH_POLL_SECONDS))
        return not (self._output.is_refused or self._is_off)

    def end(
        self, how: How, message: str, *, step: int | None = None, phase: str = ""
    ) -> None:
        """The program ends: have that written before all that waits.

        Takes no lock, so that a signal handler may call it; the first end stands.
        """
        if self._output.end is None:
            self._output.end = End(how, message, step, phase)
            self._output.retry_soon()
        self._wake.set()

    def close(
        self,
        how: How,
        message: str,
        seconds: float,
        *,
        step: int | None = None,
        phase: str = "",
    ) -> None:
        """Write what is queued and end the file, as long as that goes on.

        Takes no lock either.

        Args:
            how: as for `end`, which may have been called before.
            message: likewise, as are `step` and `phase`.
            seconds: the longest wait in all; where nothing is written and nothing computed,
                it is `STALLED_SECONDS`.
            step: the training step under way.
            phase: the phase under way.
        """
        self.end(how, message, step=step, phase=phase)
        self._is_closing = True
        self._wake.set()
        began, is_said = time.monotonic(), False
        progress = ThreadProgress(self._thread, lambda: self._output.file.num_written)
        while self._thread.is_alive():
            self._thread.join(_FLUSH_POLL_SECONDS)
            is_stalled = progress.idle_seconds() > STALLED_SECONDS
            waited = time.monotonic() - began
            if is_stalled or waited > seconds:
                self._give_up(waited, is_stalled=is_stalled)
                return
            if not is_said and waited > STALLED_SECONDS:
                is_said = True
                warn(
                    "%s: %d rows, notes and captures are still being written; this waits"
                    " for them, %g s at most",
                    self.path or self._plan.run_dir,
                    self._output.num_waiting,
                    seconds,
                )
        self._warn_lost()

    def _warn_lost(self) -> None:
        """Count the steps that are missing, although the file is complete."""
        end = self._output.file.end
        counts = None if end is None else end.steps
        if counts is not None and counts.dropped:
            warn(
                "%d of %d steps are not in %s: they were dropped, because the disk was slower"
                " than training or refused.",
                counts.dropped,
                counts.taken,
                self.path,
            )

    def _give_up(self, seconds: float, *, is_stalled: bool) -> None:
        self._is_given_up = True
        output = self._output
        steps, dropped = output.num_steps_waiting, output.num_steps_dropped
        before = f"; dropped before: {counted(dropped, 'step')}" if dropped else ""
        reason = "The machine is overloaded, or the disk is slow."
        if is_stalled:
            reason = "The disk does not answer."
        warn(
            "%s is not complete: %s and %s could not be written within"
            " %.1f s%s. %s What was flushed before is readable.",
            self.path or self._plan.run_dir,
            counted(steps, "step"),
            counted(output.num_waiting - steps, "other record"),
            seconds,
            before,
            reason,
        )

    def forget(self) -> None:
        """In a forked child: drop everything and touch no file."""
        self._queue.items.clear()
        self._captures.end()
        self._output.release()

    @property
    def identity(self) -> Identity:
        """Who this process is, by now."""
        return self._output.identity

    @property
    def attempt(self) -> str:
        """Name of this start, part of the file's name."""
        return self._output.attempt

    @property
    def path(self) -> Path | None:
        """The rank's file or newest segment; None until it is created."""
        return self._output.path

    @property
    def stem(self) -> str:
        """The name of the rank's file without segment and ending."""
        return self._output.stem

    @property
    def lost(self) -> dict[tuple[str, str], int]:
        """What others have dropped so far, by table and reason."""
        return self._queue.lost

    @property
    def num_dropped(self) -> int:
        """Rows, notes and captures dropped so far, for whatever reason.

        Of a recording that was closed before all was written, also what still waits.
        """
        is_over = self._is_closing and not self._thread.is_alive()
        if is_over or self._is_given_up:
            return self._output.num_dropped + self._output.num_waiting
        return self._output.num_dropped

    # On the writer's thread, in the order of a round.

    def _run(self) -> None:
        period = self._plan.flush_seconds * _PERIOD_SHARE
        if not self.identity.settled:
            self._wake.wait(min(_HOLD_SECONDS, period))
        closing = False
        while not closing:
            self._num_started += 1
            closing = self._is_closing
            self._round(closing=closing)
            with self._flushed:
                self._num_finished = self._num_started
                self._flushed.notify_all()
            if not self._is_closing:
                self._wake.wait(period)
                leave_profilers()
        self._captures.end()

    def _round(self, *, closing: bool) -> None:
        if not closing and self._is_off and not self._retry.is_due():
            return
        with Block(partial(self._failed, closing)):
            self._plan.watch()
            self._output.write(closing=closing)
            self._num_faults = 0

    def _failed(self, closing: bool, error: BaseException) -> None:
        self._num_faults += 1
        num_rows = self._output.discard(closing=closing)
        self._warn_once(
            "fault",
            "the writer failed and dropped %d rows; training and recording go on."
            " Please report this.",
            num_rows,
            error=error,
        )
        if self._is_off:
            pause = self._retry.failed()
            self._warn_once(
                "off",
                "recording into %s is off for now after %d faults in a row; training"
                " goes on, and it is tried again after %g s, then after longer and"
                " longer pauses",
                self._plan.run_dir,
                self._num_faults,
                pause,
            )

    @property
    def _is_off(self) -> bool:
        """Whether so much failed in a row that it is only tried now and then."""
        return self._num_faults >= _MAX_FAULTS
