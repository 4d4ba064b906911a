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
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from collector.format.columns import STEP_TABLE
from collector.format.names import RANK_FILES_DIR, rank_file_name
from collector.format.records import Note, Schema
from collector.loop.progress import TRAIN
from collector.rank import new_attempt
from collector.trouble import remedy_for, warn
from collector.writing.append import DeletedError
from collector.writing.bell import Bell
from collector.writing.captures import TOO_SLOW, Captures
from collector.writing.rank_file import RankFile
from collector.writing.scalars import Scalars

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from collector.format.records import Capture, Header
    from collector.rank import Identity
    from collector.trouble import Troubles
    from collector.writing.tables import Row

_PERIOD_SHARE: Final = 0.75
"""Of `flush_seconds`: leaves a late wake-up room before the promise is broken."""

_HOLD_SECONDS: Final = 1.0
"""How long an unsettled rank may yet settle before its file gets a name."""

_CLOCK_SECONDS: Final = 60.0
_DROPPED_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = (1.0, 30.0)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterPlan:
    """What a writer needs to know."""

    run_dir: Path
    flush_seconds: float
    queue_rows: int
    max_file_bytes: int
    scalars: bool
    identify: Callable[[], Identity]
    make_header: Callable[[Identity, str], Header]
    """Called with the identity and the attempt, on the writer's thread."""
    watch: Callable[[], None]
    """Called on the writer's thread before each flush; must not raise or block."""


class Writer:
    """See the module. `put_*` are for any thread and take about a microsecond."""

    def __init__(
        self, plan: WriterPlan, identity: Identity, attempt: str, troubles: Troubles
    ) -> None:
        self.identity = identity
        self.attempt = attempt
        self._plan = plan
        self._queue: deque[tuple[int, Row] | Note | Schema] = deque()
        self._wake_at = max(1, plan.queue_rows // 2)
        self._dropped: dict[int, int] = {}
        self._num_notes_dropped = 0
        self._num_rows_lost = 0
        self._dropped_told: dict[tuple[str, str], int] = {}
        self._num_user_notes = 0
        self._file = RankFile(max_bytes=plan.max_file_bytes)
        self._scalars = Scalars(plan.run_dir, self._header, self._tell_no_scalars)
        self._troubles = troubles
        self._captures = Captures(troubles)
        self._num_failures = 0
        self._num_faults = 0
        self._retry_at = 0.0
        self._next_clock = 0.0
        self._next_dropped = 0.0
        self._end: tuple[Literal["closed", "exception"], str] | None = None
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
            self._dropped[schema_id] = self._dropped.get(schema_id, 0) + 1
            return
        self._queue.append((schema_id, row))
        if queued == self._wake_at:
            self._wake.ring()

    def put_capture(self, capture: Capture) -> bool:
        """Queue a capture; False where it was dropped (and counted)."""
        if not self._captures.put(capture):
            return False
        if self._captures.num_bytes >= _MANY_CAPTURE_BYTES:
            self._wake.ring()
        return True

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
            self._num_user_notes += 1
            if self._num_user_notes > _NOTES_PER_FLUSH:
                self._num_notes_dropped += 1
                return
        if len(self._queue) >= _NOTES_ROOM * self._plan.queue_rows:
            self._num_notes_dropped += 1
            return
        self._queue.append(
            Note(kind=kind, time_ns=time.time_ns(), step=step, data=data)
        )

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
        return self._num_failures == 0

    def close(
        self, how: Literal["closed", "exception"], message: str, timeout: float
    ) -> None:
        """Write what is queued and end the file; give up after `timeout` seconds."""
        self._end = (how, message)
        self._wake.ring()
        self._thread.join(timeout)
        self._await_captures()
        if self._thread.is_alive():
            warn(
                "%s could not be completed within %g s: the disk is slow. What was"
                " flushed before is readable.",
                self._file.path or self._plan.run_dir,
                timeout,
            )

    def _await_captures(self) -> None:
        """Wait for what was captured, as long as it is being written."""
        next_seconds, all_seconds = _CAPTURE_SECONDS
        started = last = time.monotonic()
        waiting = len(self._captures)
        if not waiting:
            return
        while self._thread.is_alive() and not self._num_failures:
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
        self._file.release()
        self._scalars.release()

    @property
    def path(self) -> Path | None:
        """The rank's file; None until it is created."""
        return self._file.path

    @property
    def num_dropped(self) -> int:
        """Rows, notes and captures dropped so far, for whatever reason."""
        by_queue = sum(self._dropped.values()) + self._num_notes_dropped
        by_queue += sum(self._captures.dropped.values())
        return by_queue + self._num_rows_lost + self._file.num_over_budget

    # On the writer's thread, in the order of a round.

    def _run(self) -> None:
        period = self._plan.flush_seconds * _PERIOD_SHARE
        if not self.identity.settled:
            self._wake.wait(min(_HOLD_SECONDS, period))
        end = None
        while end is None and self._num_faults < _MAX_FAULTS:
            self._num_started += 1
            end = self._end
            self._round(end)
            with self._flushed:
                self._num_finished = self._num_started
                self._flushed.notify_all()
            if self._end is None:
                self._wake.wait(period)
        self._captures.end()
        if end is None:
            warn(
                "recording into %s is switched off after %d faults; training goes on",
                self._plan.run_dir,
                _MAX_FAULTS,
            )

    def _round(self, end: tuple[Literal["closed", "exception"], str] | None) -> None:
        try:
            self._plan.watch()
            self._write(end)
        except Exception as error:  # noqa: BLE001  # the border: nothing reaches training
            self._num_faults += 1
            num_rows = self._file.discard_pending()
            self._num_rows_lost += num_rows
            self._troubles.tell(
                "fault",
                "the writer failed and dropped %d rows; training and recording go on."
                " Please report this.",
                num_rows,
                error=error,
            )
            if end is not None:
                with contextlib.suppress(Exception):  # told above, or much the same
                    self._end_file(end)

    def _write(self, end: tuple[Literal["closed", "exception"], str] | None) -> None:
        now = time.monotonic()
        if end is None and now < self._retry_at:
            return
        try:
            try:
                self._write_file(end, now)
            except DeletedError:
                self._troubles.tell(
                    "deleted",
                    "%s was deleted while recording; it is started anew, earlier rows"
                    " are lost. Delete a run's directory only after training.",
                    self._file.path,
                )
                self._file.release()
                if self._file.path is not None and self._file.path.exists():
                    self.attempt = new_attempt(time.time_ns())  # leave what is there
                self._write_file(end, now)
        except OSError as error:
            self._fail(error, closing=end is not None)
        else:
            self._num_failures = 0
        if self._file.is_full:
            self._troubles.tell(
                "full",
                "%s has reached max_file_bytes; from now on only the coarse course of"
                " the run is recorded. Raise max_file_bytes, or set it to 0 for no"
                " limit.",
                self._file.path,
            )
        if self._plan.scalars:
            self._scalars.flush(closing=end is not None)

    def _write_file(
        self, end: tuple[Literal["closed", "exception"], str] | None, now: float
    ) -> None:
        self._open()
        self._drain(everything=end is not None)
        self._note_clock(now)
        while len(self._captures):
            # What is small goes first: a large capture may take a second.
            self._file.flush()
            self._captures.write_next(self._file, closing=end is not None)
            self._drain(everything=end is not None)
        self._note_dropped(now, closing=end is not None)
        if end is None:
            self._file.flush()
        else:
            self._end_file(end)

    def _end_file(self, end: tuple[Literal["closed", "exception"], str]) -> None:
        self._file.close(*end, num_dropped=self.num_dropped, time_ns=time.time_ns())

    def _open(self) -> None:
        """Make sure that the file is there and has the right name."""
        if not self.identity.settled:
            identity = self._plan.identify()
            moved = _numbers(identity) != _numbers(self.identity)
            self.identity = identity
            if moved and self._file.is_open:
                self._move()
        if not self._file.is_open:
            self._file.open(self._new_path(), self._header())

    def _move(self) -> None:
        """Other numbers than at the start: go on under the name they give."""
        if self._new_path() == self._file.path:
            self.attempt = new_attempt(time.time_ns())
        self._file.move(self._new_path(), self._header())
        if self.identity.rank != 0:
            self._scalars.remove()

    def _drain(self, *, everything: bool) -> None:
        """Take over what is queued; not more than a queue's worth waits beyond it."""
        self._num_user_notes = 0
        room = self._plan.queue_rows - self._file.num_pending
        for _ in range(len(self._queue) if everything else min(len(self._queue), room)):
            item = self._queue.popleft()
            if isinstance(item, tuple):
                self._file.add_row(*item)
                if self._plan.scalars and self.identity.rank == 0:
                    self._scalars.add(*item)
            elif isinstance(item, Schema):
                self._file.add_schema(item)
                if (item.table, item.phase) == (STEP_TABLE, TRAIN):
                    self._scalars.take_schema(item)
            elif not (item.kind == "span" and self._file.is_full):
                self._file.notes.add(item)

    def _fail(self, error: OSError, *, closing: bool) -> None:
        first, longest = _RETRY_SECONDS
        pause = min(longest, first * 2**self._num_failures)
        self._num_failures += 1
        self._retry_at = time.monotonic() + pause
        where = self._file.path or self._plan.run_dir
        self._troubles.tell(
            "disk",
            "%s cannot be written: %s. Training goes on; up to %d rows wait in memory,"
            " more are dropped and counted. %s",
            where,
            error.strerror or error,
            self._plan.queue_rows,
            remedy_for(error),
        )
        if closing:
            self._file.release()
            warn(
                "%d rows and notes could not be written to %s",
                self._file.num_pending + len(self._queue),
                where,
            )

    def _note_clock(self, now: float) -> None:
        if now >= self._next_clock:
            self._next_clock = now + _CLOCK_SECONDS
            self._add_note("clock", {"monotonic_ns": time.monotonic_ns()})

    def _note_dropped(self, now: float, *, closing: bool) -> None:
        """Say how many rows are missing, where that has changed."""
        if now < self._next_dropped and not closing:
            return
        counts = {
            ("notes", "too many at once"): self._num_notes_dropped,
            ("all", "the writer failed"): self._num_rows_lost,
            ("all", "max_file_bytes is reached"): self._file.num_over_budget,
        }
        for schema_id, num_rows in tuple(self._dropped.items()):
            table = self._file.tables.get(schema_id)
            name = "all" if table is None else table.schema.table
            key = name, TOO_SLOW
            counts[key] = counts.get(key, 0) + num_rows
        for reason, number in tuple(self._captures.dropped.items()):
            counts["captures", reason] = number
        for key, num_rows in counts.items():
            if num_rows != self._dropped_told.get(key, 0):
                self._next_dropped = now + _DROPPED_SECONDS
                self._dropped_told[key] = num_rows
                data = {"table": key[0], "num_rows": num_rows, "reason": key[1]}
                self._add_note("dropped", data)

    def _tell_no_scalars(self, reason: str, remedy: str) -> None:
        self._troubles.tell("scalars", "no scalars: %s. %s", reason, remedy)
        data = {"name": "scalars", "status": "failed", "reason": reason}
        self._add_note("source", {**data, "remedy": remedy, "cost": ""})

    def _add_note(self, kind: str, data: dict[str, Any]) -> None:
        self._file.notes.add(
            Note(kind=kind, time_ns=time.time_ns(), step=None, data=data)
        )

    def _new_path(self) -> Path:
        name = rank_file_name(self.identity.rank, self.attempt)
        return self._plan.run_dir.joinpath(*RANK_FILES_DIR, name)

    def _header(self) -> Header:
        return self._plan.make_header(self.identity, self.attempt)


def _numbers(identity: Identity) -> tuple[int, int, int]:
    return identity.rank, identity.local_rank, identity.world_size
