"""Files of one recorder: what is queued goes to the rank's file and the scalars, in rounds.

The rank's file is created by the first round, goes on under another name where this
process turns out to be another rank, and is started anew where somebody deleted it. A
disk that refuses is tried again after a growing pause; what is lost meanwhile is counted
and named in notes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from memboard.collector.clock.process_clock import PROCESS_CLOCK, now_ns
from memboard.collector.core.guard import Retry
from memboard.collector.core.plain import forgiving
from memboard.collector.core.warn_once import remedy_for, warn
from memboard.collector.format.columns import STEP_TABLE
from memboard.collector.format.names import (
    RANK_FILES_DIR,
    parse_rank_file_name,
    rank_file_name,
    rank_file_stem,
)
from memboard.collector.format.records import OVER_BUDGET, Close, Note, Schema
from memboard.collector.process.rank import new_attempt
from memboard.collector.writing.append import DeletedError
from memboard.collector.writing.queues.captures import TOO_SLOW
from memboard.collector.writing.rank_file import RankFile
from memboard.collector.writing.scalars import Scalars, tags_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.format.records import Header, How
    from memboard.collector.process.rank import Identity
    from memboard.collector.writing.queues.captures import CaptureQueue
    from memboard.collector.writing.queues.rows import RowQueue
    from memboard.collector.writing.segments import SegmentPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterPlan:
    """What a writer needs to know."""

    run_dir: Path
    flush_seconds: float
    queue_rows: int
    max_file_bytes: int
    scalars: bool | Literal["composer"]
    """The setting of that name."""
    identify: Callable[[], Identity]
    make_header: Callable[[Identity, str], Header]
    """Called with the identity and the attempt, on the writer's thread."""
    watch: Callable[[], None]
    """Called on the writer's thread before each flush; must not raise or block."""
    segments: SegmentPlan | None = None
    """None: the rank's file is one that grows."""


class End(NamedTuple):
    """How the program ended, as the file's `Close` records have it."""

    how: How
    message: str
    step: int | None = None
    phase: str = ""


_CLOCK_SECONDS: Final = 60.0
_DROPPED_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = (1.0, 30.0)


class Output:
    """The files of one recorder. For the writer's thread, but for what says otherwise."""

    def __init__(
        self,
        plan: WriterPlan,
        identity: Identity,
        attempt: str,
        *,
        queue: RowQueue,
        captures: CaptureQueue,
        warn_once: WarnOnce,
    ) -> None:
        self.identity = identity
        self.attempt = attempt
        self.file = RankFile(max_bytes=plan.max_file_bytes, segments=plan.segments)
        self.end: End | None = None
        """Once the program ends. Set on any thread; written before all else."""
        self._retry = Retry(*_RETRY_SECONDS)
        self._plan = plan
        self._queue = queue
        self._captures = captures
        self._warn_once = warn_once
        self._scalars = Scalars(
            plan.run_dir, self._header, self._note_scalars, tags_of(plan.scalars)
        )
        self._noted_drops: dict[tuple[str, str], int] = {}
        self._next_clock = 0.0
        self._next_dropped = 0.0

    @property
    def path(self) -> Path | None:
        """The rank's file or newest segment; None until it is created."""
        return self.file.path

    @property
    def stem(self) -> str:
        """The name of the rank's file without segment and ending."""
        path = self.file.path
        rank_file = None if path is None else parse_rank_file_name(path.name)
        if rank_file is None:
            return rank_file_stem(self.identity.rank, self.attempt)
        return rank_file_stem(rank_file.rank, rank_file.attempt)

    @property
    def num_dropped(self) -> int:
        """Rows, notes and captures dropped so far, for whatever reason. Any thread."""
        queued = self._queue.num_dropped + self._captures.dropped.total()
        return queued + self.file.num_discarded + self.file.num_over_budget

    @property
    def num_waiting(self) -> int:
        """Rows, notes and captures that are not on the disk yet. Any thread."""
        queued = len(self._queue.items) + len(self._captures)
        return queued + self.file.num_pending

    @property
    def num_steps_dropped(self) -> int:
        """Steps that found no room in the queue. Any thread."""
        dropped = 0
        for schema_id, num_rows in tuple(self._queue.rows_dropped.items()):
            table = self.file.tables.get(schema_id)
            if table is not None and table.schema.table == STEP_TABLE:
                dropped += num_rows
        return dropped

    @property
    def num_steps_waiting(self) -> int:
        """Of these, steps. Any thread."""
        tables = self.file.tables
        steps = {
            schema_id
            for schema_id, table in tuple(tables.items())
            if table.schema.table == STEP_TABLE
        }
        queued = 0
        for item in tuple(self._queue.items):
            if isinstance(item, tuple):
                queued += item[0] in steps
            elif isinstance(item, Schema) and item.table == STEP_TABLE:
                steps.add(item.schema_id)
        return queued + sum(
            tables[schema_id].num_pending for schema_id in steps if schema_id in tables
        )

    def retry_soon(self) -> None:
        """Try a disk that refused again at once. Any thread."""
        self._retry.make_due()

    @property
    def is_refused(self) -> bool:
        """Whether the disk refused the last round. Any thread."""
        return self._retry.num_failures > 0

    def warn_full(self) -> None:
        """Say once that rows are dropped, unless the disk's refusal was said. Any thread."""
        if not self.is_refused:
            self._warn_once(
                "dropped",
                "%s cannot take rows as fast as they come: up to %d wait in memory, more are"
                " dropped and counted. Training goes on. Record into a faster directory.",
                self.file.path or self._plan.run_dir,
                self._plan.queue_rows,
            )

    def release(self) -> None:
        """In a forked child: touch no file."""
        self.file.release()
        self._scalars.release()

    def discard(self, *, closing: bool) -> int:
        """After a fault: drop what waits in tables, and end the file where all ends.

        The number of rows that are lost.
        """
        num_rows = self.file.discard_pending()
        if closing:
            with forgiving:  # warned already, or much the same
                self.file.close(self._closed())
        return num_rows

    def write(self, *, closing: bool) -> None:
        """A round: write what waits; `closing`: nothing follows, and the files end."""
        now = time.monotonic()
        if not (closing or self._retry.is_due()):
            return
        try:
            try:
                self._write_file(now, closing=closing)
            except DeletedError:
                self._warn_once(
                    "deleted",
                    "%s was deleted while recording; it is started anew, earlier rows"
                    " are lost. Delete a run's directory only after training.",
                    self.file.path,
                )
                self.file.release()
                self.attempt = new_attempt(time.time_ns())  # some of it may be there
                self._write_file(now, closing=closing)
        except OSError as error:
            self._fail(error, closing=closing)
        else:
            self._retry.works()
            if self._queue.rows_dropped:
                self.warn_full()
        if self.file.is_full:
            self._warn_once(
                "full",
                "%s has reached max_file_bytes; from now on only the coarse course of"
                " the run is recorded. Raise max_file_bytes, or set it to 0 for no"
                " limit.",
                self.file.path,
            )
        if self._plan.scalars:
            self._scalars.flush(closing=closing)
            scalars = self._scalars.path
            if closing and self._plan.segments is not None and scalars:
                self._plan.segments.finished(scalars)

    def _write_file(self, now: float, *, closing: bool) -> None:
        self._open()
        self._write_first(closing=closing)
        self._drain(everything=closing)
        self._note_clock(now)
        while len(self._captures):
            # What is small goes first: a large capture may take a second.
            self.file.flush()
            self._write_first(closing=closing)
            self._captures.write_next(self.file, closing=closing)
            self._drain(everything=closing)
        self._note_dropped(now, closing=closing)
        if closing:
            self.file.close(self._closed())
        else:
            self.file.flush()

    def _write_first(self, *, closing: bool) -> None:
        """How the program ended, and captures that go before rows."""
        if self.end is not None and self.file.end is None:
            self._drain(everything=True)
            self.file.write_end(self._closed())
        while self._captures.goes_first(has_ended=self.end is not None):
            self._captures.write_next(self.file, closing=closing)

    def _closed(self) -> Close:
        """How the program ended, with the account of its steps."""
        end = self.end or End("closed", "")
        return Close(
            time_ns=now_ns(),
            how=end.how,
            message=end.message,
            step=end.step,
            phase=end.phase,
            num_dropped=self.num_dropped,
            steps=self.file.step_counts(self.num_steps_dropped),
        )

    def _open(self) -> None:
        """Make sure that the file is there and has the right name."""
        if not self.identity.settled:
            self.identity = self._plan.identify()
        if not self.file.is_open:
            self.file.open(self._new_path(), self._header())
        elif self.file.header and _numbers(self.file.header) != _numbers(self.identity):
            self.file.go_on(self._new_path(), self._header())
            if self.identity.rank != 0:
                self._scalars.remove()

    def _drain(self, *, everything: bool) -> None:
        """Take over what is queued; not more than a queue's worth waits beyond it."""
        items = self._queue.items
        self._queue.num_user_notes = 0
        count = len(items)
        if not everything:
            count = min(count, self._plan.queue_rows - self.file.num_pending)
        for _ in range(count):
            item = items.popleft()
            if isinstance(item, tuple):
                self.file.add_row(*item)
                if self._plan.scalars and self._is_rank_0():
                    self._scalars.add(*item)
            elif isinstance(item, Schema):
                self.file.add_schema(item)
                if item.table == STEP_TABLE:
                    self._scalars.take_schema(item)
            elif not (item.kind == "span" and self.file.is_full):
                self.file.notes.add(item)

    def _is_rank_0(self) -> bool:
        """Whether the scalars are this process's to write.

        Asked again before their file is made, which would lock out that of rank 0: who
        this is may have come out since the round began, and rows since then.
        """
        if self.identity.settled or not self._scalars.is_to_open:
            return self.identity.rank == 0
        return self._plan.identify().rank == 0

    def _fail(self, error: OSError, *, closing: bool) -> None:
        self._retry.failed()
        where = self.file.path or self._plan.run_dir
        self._warn_once(
            "disk",
            "%s cannot be written: %s. Training goes on; up to %d rows wait in memory,"
            " more are dropped and counted. %s",
            where,
            error.strerror or error,
            self._plan.queue_rows,
            remedy_for(error),
        )
        if closing:
            self.file.finish()
            steps = self.num_steps_waiting
            warn(
                "%s is not complete: %d steps and %d other records could not be written",
                where,
                steps,
                self.num_waiting - steps,
            )

    def _note_clock(self, now: float) -> None:
        if now >= self._next_clock:
            self._next_clock = now + _CLOCK_SECONDS
            ahead = PROCESS_CLOCK.ahead_ns()
            data = {"monotonic_ns": time.monotonic_ns(), "wall_ahead_ns": ahead}
            self._add_note("clock", data)

    def _note_dropped(self, now: float, *, closing: bool) -> None:
        """Note how many rows are missing, where that has changed."""
        if now < self._next_dropped and not closing:
            return
        counts = {
            ("notes", "too many at once"): self._queue.num_notes_dropped,
        }
        for table in self.file.tables.values():
            name = table.schema.table
            for reason, num_rows in (
                ("the writer failed", table.num_discarded),
                (OVER_BUDGET, table.num_over_budget),
            ):
                counts[name, reason] = counts.get((name, reason), 0) + num_rows
        for schema_id, num_rows in tuple(self._queue.rows_dropped.items()):
            dropped = self.file.tables.get(schema_id)
            name = "all" if dropped is None else dropped.schema.table
            key = name, TOO_SLOW
            counts[key] = counts.get(key, 0) + num_rows
        counts.update(self._queue.lost)
        for reason, number in tuple(self._captures.dropped.items()):
            counts["captures", reason] = number
        for key, num_rows in counts.items():
            if num_rows != self._noted_drops.get(key, 0):
                self._next_dropped = now + _DROPPED_SECONDS
                self._noted_drops[key] = num_rows
                data = {"table": key[0], "num_rows": num_rows, "reason": key[1]}
                self._add_note("dropped", data)

    def _note_scalars(self, reason: str, remedy: str) -> None:
        if reason:
            self._warn_once("scalars", "no scalars: %s. %s", reason, remedy)
        status = "failed" if reason else "recorded"
        data = {"name": "scalars", "status": status, "reason": reason}
        self._add_note("source", {**data, "remedy": remedy, "cost": ""})

    def _add_note(self, kind: str, data: dict[str, Any]) -> None:
        self.file.notes.add(Note(kind=kind, time_ns=now_ns(), step=None, data=data))

    def _new_path(self) -> Path:
        file_name = rank_file_name(self.identity.rank, self.attempt)
        return self._plan.run_dir.joinpath(*RANK_FILES_DIR, file_name)

    def _header(self) -> Header:
        return self._plan.make_header(self.identity, self.attempt)


def _numbers(who: Identity | Header) -> tuple[int, int, int]:
    return who.rank, who.local_rank, who.world_size
