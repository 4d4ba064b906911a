"""Rows, notes and captures of one recorder, from the training thread to its files.

The training thread appends to a bounded queue and never waits. A daemon thread empties
it into the rank's file, and on rank 0 into the scalars file, so often that nothing is
older than `flush_seconds` when it reaches the disk. Whatever happens to the disk stays
here: rows wait, then are dropped and counted, and one warning names the remedy.

After a fork the child's copy is dead: its threads do not exist there, and what it holds
belongs to the parent's file.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from collector.clock.process_clock import now_ns
from collector.core.retry import Retry
from collector.core.warn_once import warn
from collector.format.records import Note
from collector.writing.bell import Bell
from collector.writing.captures import Captures
from collector.writing.output import End, Output
from collector.writing.waiting import Waiting, WriterPlan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from collector.core.rank import Identity
    from collector.core.warn_once import Troubles
    from collector.format.records import Capture, How, Schema
    from collector.writing.tables import Row

__all__ = ["Writer", "WriterPlan"]

_PERIOD_SHARE: Final = 0.75
"""Of `flush_seconds`: leaves a late wake-up room before the promise is broken."""

_HOLD_SECONDS: Final = 1.0
"""How long an unsettled rank may yet settle before its file gets a name."""

_NOTES_ROOM: Final = 2
"""Times `queue_rows`: notes still fit where rows do not, but not without end."""

_FLUSH_POLL_SECONDS: Final = 0.05
_CAPTURE_SECONDS: Final = (2.0, 10.0)
"""How much longer the end of a recording waits for captures: for the next to be written,
and for all of them."""

_MANY_CAPTURE_BYTES: Final = 1 << 24
"""So much waiting wakes the writer, which is what empties it."""
_MAX_FAULTS: Final = 8
_NOTES_PER_FLUSH: Final = 256
"""Notes a user's code may cause between two flushes; more are dropped and counted."""


class Writer:
    """See the module. `put_*` are for any thread and take about a microsecond."""

    def __init__(
        self, plan: WriterPlan, identity: Identity, attempt: str, troubles: Troubles
    ) -> None:
        self._plan = plan
        self._wake_at = max(1, plan.queue_rows // 2)
        self._waiting = Waiting()
        self._queue = self._waiting.queue
        self._captures = Captures(troubles)
        self._output = Output(
            plan,
            identity,
            attempt,
            waiting=self._waiting,
            captures=self._captures,
            troubles=troubles,
        )
        self._troubles = troubles
        self._num_faults = 0
        """In a row."""
        self._retry = Retry()
        self._end: End | None = None
        self._wake = Bell()
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

    def put_row(self, schema_id: int, row: Row) -> None:
        """Queue a row, or count it as dropped where the queue is full."""
        queued = len(self._queue)
        if queued >= self._plan.queue_rows:
            dropped = self._waiting.dropped
            dropped[schema_id] = dropped.get(schema_id, 0) + 1
            return
        self._queue.append((schema_id, row))
        if queued == self._wake_at:
            self._wake.ring()

    def put_capture(self, capture: Capture) -> bool:
        """Queue a capture; False where it was dropped (and counted)."""
        if not self._captures.put(capture):
            return False
        if self._captures.holds(_MANY_CAPTURE_BYTES):
            self._wake.ring()
        return True

    def put_urgent(self, capture: Capture, seconds: float) -> bool:
        """Have a small capture on the disk before all else; whether that was done.

        Waits for it, `seconds` at most; it stays queued where the disk is slower.
        """
        urgent = self._captures.put_urgent(capture)
        if urgent is None:
            return False
        self._output.hurry()  # what is told now may be the last that is told
        deadline = time.monotonic() + seconds
        while not urgent.is_settled.is_set():
            rest = deadline - time.monotonic()
            if rest <= 0 or not self._thread.is_alive():
                return False
            self._wake.ring()
            urgent.is_settled.wait(min(rest, _FLUSH_POLL_SECONDS))
        return urgent.is_on_disk

    def wake(self) -> None:
        """Have what is queued written soon."""
        self._wake.ring()

    def put_schema(self, schema: Schema) -> None:
        """Queue a table's schema, before its first row."""
        self._queue.append(schema)

    def put_note(
        self,
        kind: str,
        step: int | None,
        data: Mapping[str, Any],
        *,
        user: bool = False,
    ) -> None:
        """Queue a note. Notes that a user's loop causes are bounded per flush."""
        if user:
            self._waiting.num_user_notes += 1
            if self._waiting.num_user_notes > _NOTES_PER_FLUSH:
                self._waiting.num_notes_dropped += 1
                return
        if len(self._queue) >= _NOTES_ROOM * self._plan.queue_rows:
            self._waiting.num_notes_dropped += 1
            return
        self._queue.append(Note(kind=kind, time_ns=now_ns(), step=step, data=data))

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
                self._wake.ring()
                self._flushed.wait(min(rest, _FLUSH_POLL_SECONDS))
        return self._output.num_failures == 0 and not self._is_off

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
        self._wake.ring()
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
        while self._thread.is_alive() and not self._output.num_failures:
            now = time.monotonic()
            if now - last > next_seconds or now - started > all_seconds:
                return
            self._thread.join(_FLUSH_POLL_SECONDS)
            if len(self._captures) < waiting:
                waiting, last = len(self._captures), now

    def forget(self) -> None:
        """In a forked child: drop everything and touch no file."""
        self._queue.clear()
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
        return self._waiting.lost

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
        try:
            self._plan.watch()
            self._output.write(end)
        except Exception as error:  # noqa: BLE001  # the border: nothing reaches training
            self._num_faults += 1
            num_rows = self._output.discard(end)
            self._troubles.tell(
                "fault",
                "the writer failed and dropped %d rows; training and recording go on."
                " Please report this.",
                num_rows,
                error=error,
            )
            if self._is_off:
                pause = self._retry.failed()
                self._troubles.tell(
                    "off",
                    "recording into %s is off for now after %d faults in a row; training"
                    " goes on, and it is tried again after %g s, then after longer and"
                    " longer pauses",
                    self._plan.run_dir,
                    self._num_faults,
                    pause,
                )
        else:
            self._num_faults = 0

    @property
    def _is_off(self) -> bool:
        """Whether so much failed in a row that it is only tried now and then."""
        return self._num_faults >= _MAX_FAULTS
