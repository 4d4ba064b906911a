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

from collector.core.guard import Block, Retry
from collector.core.warn_once import warn
from collector.writing.capture_queue import CaptureQueue
from collector.writing.output import End, Output, WriterPlan
from collector.writing.row_queue import RowQueue

if TYPE_CHECKING:
    from pathlib import Path

    from collector.core.rank import Identity
    from collector.core.warn_once import WarnOnce
    from collector.format.records import Capture, How

__all__ = ["Writer", "WriterPlan"]

_PERIOD_SHARE: Final = 0.75
"""Of `flush_seconds`: leaves a late wake-up room before the promise is broken."""

_HOLD_SECONDS: Final = 1.0
"""Time for an unsettled rank to settle before its file gets a name."""

_FLUSH_POLL_SECONDS: Final = 0.05
_CAPTURE_SECONDS: Final = (2.0, 10.0)
"""Further wait of the end of a recording for captures: for the next to be written,
and for all of them."""

_MANY_CAPTURE_BYTES: Final = 1 << 24
"""So much waiting wakes the writer, which is what empties it."""
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
        self._queue = RowQueue(plan.queue_rows, self._wake.set)
        self.put_row = self._queue.put_row
        self.put_schema = self._queue.put_schema
        self.put_note = self._queue.put_note
        self.wake = self._wake.set
        """Have what is queued written soon."""
        self._captures = CaptureQueue(warn_once)
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
        """In a row."""
        self._retry = Retry()
        self._end: End | None = None
        self._flushed = threading.Condition()
        self._num_started = 0
        self._num_finished = 0
        self._thread = threading.Thread(
            target=self._run, name="memboard-writer", daemon=True
        )

    # For the training thread.

    def start(self) -> None:
        """Start the thread; it creates the file."""
        self._thread.start()

    def put_capture(self, capture: Capture) -> bool:
        """Queue a capture; False where it was dropped (and counted)."""
        if not self._captures.put(capture):
            return False
        if self._captures.holds(_MANY_CAPTURE_BYTES):
            self._wake.set()
        return True

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

    def close(
        self,
        how: How,
        message: str,
        timeout: float,
        *,
        step: int | None = None,
        phase: str = "",
    ) -> None:
        """Write what is queued and end the file; give up after `timeout` seconds.

        Takes no lock, so that a signal handler may call it; the first end stands.
        """
        if self._end is None:
            self._end = End(how, message, step, phase)
        self._wake.set()
        self._thread.join(timeout)
        self._await_captures()
        if self._thread.is_alive():
            warn(
                "%s could not be completed within %g s: the disk is slow. What was"
                " flushed before is readable.",
                self.path or self._plan.run_dir,
                timeout,
            )

    def _await_captures(self) -> None:
        """Wait for what was captured, as long as it is being written."""
        next_seconds, all_seconds = _CAPTURE_SECONDS
        started = last = time.monotonic()
        waiting = len(self._captures)
        if not waiting:
            return
        while self._thread.is_alive() and not self._output.is_refused:
            now = time.monotonic()
            if now - last > next_seconds or now - started > all_seconds:
                return
            self._thread.join(_FLUSH_POLL_SECONDS)
            if len(self._captures) < waiting:
                waiting, last = len(self._captures), now

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
        """Rows, notes and captures dropped so far, for whatever reason."""
        return self._output.num_dropped

    # On the writer's thread, in the order of a round.

    def _run(self) -> None:
        period = self._plan.flush_seconds * _PERIOD_SHARE
        if not self.identity.settled:
            self._wake.wait(min(_HOLD_SECONDS, period))
        end = None
        while end is None:
            self._num_started += 1
            end = self._end
            self._round(end)
            with self._flushed:
                self._num_finished = self._num_started
                self._flushed.notify_all()
            if self._end is None:
                self._wake.wait(period)
        self._captures.end()

    def _round(self, end: End | None) -> None:
        if end is None and self._is_off and not self._retry.is_due():
            return
        with Block(partial(self._failed, end)):
            self._plan.watch()
            self._output.write(end)
            self._num_faults = 0

    def _failed(self, end: End | None, error: BaseException) -> None:
        self._num_faults += 1
        num_rows = self._output.discard(end)
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
