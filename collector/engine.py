"""The engine behind a recorder: device, sources, sampler and writer of one recording.

The recorder knows what training says; the engine knows what is measured and where it
goes. A source that fails is switched off here, with a note and one warning, and its
columns are absent from then on.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from memboard.collector.afterwards.dumps import Dumps, resume
from memboard.collector.clock.comparing import ClockComparing
from memboard.collector.clock.process_clock import PROCESS_CLOCK, now_ns
from memboard.collector.core.source import TORCH_ERRORS
from memboard.collector.format.columns import AXES, PROGRESS, STEP_TABLE, TIMING
from memboard.collector.format.records import DeviceIdentity
from memboard.collector.mirror.mirror import REMOTE, Mirror
from memboard.collector.process import lifecycle
from memboard.collector.process.rank import identify, is_distributed, new_attempt
from memboard.collector.sources import STEP, TIMED
from memboard.collector.sources.device.accelerator import find_device
from memboard.collector.sources.host.rss import BOUNDARY, open_sizes
from memboard.collector.sources.sampling import Sampler, import_ahead, open_sources
from memboard.collector.steps.cycles import Cycles
from memboard.collector.steps.progress import TRAIN
from memboard.collector.steps.timing import Timing
from memboard.collector.writing.header import (
    device_fields,
    host_memory,
    make_header,
)
from memboard.collector.writing.queues.calls import CallQueue
from memboard.collector.writing.segments import SegmentPlan
from memboard.collector.writing.tables import Schemas
from memboard.collector.writing.writer import Writer, WriterPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from memboard.collector.config import RecordConfig
    from memboard.collector.config.templates import Kind as RemoteKind
    from memboard.collector.core.source import SourceInfo
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.format.columns import Column
    from memboard.collector.format.records import Header, How
    from memboard.collector.process.rank import Identity
    from memboard.collector.sources.sampling import Live
    from memboard.collector.sources.source import Row, Source
    from memboard.collector.steps.progress import Progress

QUEUE_ROWS: Final = 8192
"""Rows that may wait for a slow disk; what does not fit is dropped and counted."""

SEGMENT_BYTES: Final = 2**24
SEGMENT_SECONDS: Final = 60.0
"""A segment that has grown to this, or is this old and holds anything new, is finished. In
a long run segments last longer, so that their number stays bounded."""

SAMPLER_SECONDS: Final = 0.5
"""What a slow source may take at the end of a recording."""

CLOSE_SECONDS: Final = 10.0
"""The longest that the end of a recording waits while what is left is being written."""

_MAX_REASON: Final = 1000

_HEAD: Final = (*AXES, *TIMING, *PROGRESS)
"""The columns of a step's row that the recorder itself fills, besides `Timing.columns`."""


class Engine:
    """Runs from its making to `stop`. Safe to use from any thread."""

    def __init__(
        self,
        run_dir: Path,
        config: RecordConfig,
        mesh: dict[str, int],
        progress: Progress,
        warn_once: WarnOnce,
    ) -> None:
        self.mesh = mesh
        self._run_dir = run_dir
        self._config = config
        self._progress = progress
        self._warn_once = warn_once
        if not lifecycle.all_live():
            PROCESS_CLOCK.restart()
        self._started = PROCESS_CLOCK.anchor()
        self._dumps = Dumps(config, run_dir)
        self.cycles = Cycles(
            config.schedule, progress, warn_once, needed=config.spans.enabled
        )
        """Where the schedule stands; the recorder tells it of steps."""
        self.watchers: list[Callable[[], None]] = []
        """Called on the writer's thread before each flush; may neither raise nor block."""
        self._last_row: Sequence[int | float | None] | None = None
        """The last finished training step's, as it was queued."""
        self._step_schemas: dict[str, int] = {}
        """Of rows of steps, by phase."""
        self._timed_schemas: dict[str, int] = {}
        """Of rows of timed sources, by name."""
        identity = self._identity = identify(config)
        self.device = find_device(config.device, local_rank=identity.local_rank)
        self._told_device = self._known_device()
        plan = WriterPlan(
            run_dir=run_dir,
            flush_seconds=config.flush_seconds,
            queue_rows=QUEUE_ROWS,
            max_file_bytes=config.max_file_bytes,
            scalars=config.scalars,
            identify=self._identify,
            make_header=self._header,
            watch=self._watch,
            segments=self._segment_plan(),
        )
        attempt = new_attempt(self._started.wall_ns)
        self.writer = Writer(plan, identity, attempt, warn_once)
        self.note = self.writer.put_note
        self.put_capture = self.writer.put_capture
        self._calls = CallQueue(self, warn_once)
        self.put_later = self._calls.put
        self.put_all_later = self._calls.put_all
        self._schemas = Schemas(self.writer.put_schema, warn_once)
        self.remote = Mirror(
            config.remote,
            run_dir,
            identify=self._identify,
            stem=lambda: self.writer.stem,
            warn_once=warn_once,
            note=self._note_remote,
        )
        """Takes finished files to the mirror, where there is one."""
        if self.remote.is_on:
            self.remote.start()
            self._note_remote("recorded", "", "")
        self.boundary = BOUNDARY
        self.sizes = open_sizes()
        """Of the process, for all that is recorded around steps and calls."""
        self._sources = self._opened(STEP)
        self._reads = [live.read for live in self._sources]
        self.timing = Timing(
            config,
            self.device,
            self.cycles,
            progress,
            warn_once,
            self._started,
            put=self.writer.put_capture,
            wake=self.writer.wake,
            note=self.note_kind,
        )
        """Spans, and what a step's time goes to; the recorder tells it of steps."""
        self._columns: tuple[Column, ...] = (
            *_HEAD,
            *self.timing.columns,
            *(column for live in self._sources for column in live.columns),
        )
        self._sampler = Sampler(lambda: self._opened(TIMED), self._sampled)
        self._clocks = ClockComparing(config.clock, self.note, self.cycles, warn_once)
        self.watchers.append(self._clocks.look)
        import_ahead()
        if self._dumps.is_on:
            resume(run_dir, identity.rank, self.remote.task_for_later())
        with (
            contextlib.ExitStack() as undo
        ):  # no thread to be had: leave torch as it was
            undo.callback(self.remote.forget)
            undo.callback(self._close_sources)
            self.writer.start()
            self._sampler.start()
            self._clocks.start()
            undo.pop_all()

    def write_step(self, phase: str, row: list[int | float | None]) -> None:
        """Queue a step's row: `row` holds the head's values, the sources add theirs."""
        for read in self._reads:
            row += read()
        # Here too, because the process group may be gone before the next flush.
        if not self._identity.settled and is_distributed():
            self._identify()
        schema_id = self._step_schemas.get(phase)
        if schema_id is None:
            schema_id = self._schemas.add(STEP_TABLE, phase, self._columns)
            self._step_schemas[phase] = schema_id
        self.writer.put_row(schema_id, row)
        if phase == TRAIN:
            self._last_row = row

    def last_step(self) -> dict[str, int | float | None] | None:
        """The last finished training step's row by column; None before the first."""
        if self._last_row is None:
            return None
        names = (column.name for column in self._columns)
        return dict(zip(names, self._last_row, strict=True))

    # For kinds: see `memboard.collector.core.calls`, `Sink` and `Results`.

    def put_row(
        self,
        table: str,
        phase: str,
        columns: tuple[Column, ...],
        row: Sequence[int | float | None],
        *,
        rolled_up: bool = True,
    ) -> None:
        """Queue a row; a table whose columns change gets another schema."""
        if len(row) != len(columns) or columns[:2] != AXES:
            self._warn_once(
                f"table {table}",
                "rows of %s do not fit their columns and are dropped. Please report"
                " this.",
                table,
            )
            return
        schema_id = self._schemas.of_kind(table, phase, columns, rolled_up=rolled_up)
        if schema_id is not None:
            self.writer.put_row(schema_id, row)

    def note_kind(
        self, info: SourceInfo, status: str, reason: str, remedy: str
    ) -> None:
        """Say that a source or kind records, or why it does not."""
        data = {
            "name": info.name,
            "status": status,
            "reason": reason[:_MAX_REASON],
            "remedy": remedy,
            "cost": info.cost,
        }
        self.note("source", data)

    @property
    def rank(self) -> int:
        """This process's rank, as far as it is known by now."""
        return self.writer.identity.rank

    def artifact_dir(self) -> Path | None:
        """Where files of the rank's go; None as long as it has no file of its own."""
        path = self.writer.path
        return None if path is None else path.with_name(self.writer.stem)

    def mirror(self, kind: RemoteKind, path: Path) -> None:
        """Have a finished file copied to the mirror, where there is one."""
        self.remote.put(kind, path)

    def step_values(self) -> dict[str, int | float | None]:
        """What the step sources say now, by column; those that fail are left out."""
        values: dict[str, int | float | None] = {}
        for live in self._sources:
            row = live.read()
            if not live.is_failing:
                names = (column.name for column in live.columns)
                values.update(zip(names, row, strict=True))
        return values

    def stop(self, how: How, message: str, phase: str = "") -> None:
        """Stop sampling, write what is queued and end the file, in bounded time.

        Then what the mirror does not have yet, and what is left for a process of its own.
        """
        self._sampler.stop(SAMPLER_SECONDS)
        self._close_sources()
        seconds = CLOSE_SECONDS
        if lifecycle.launcher is not None:
            seconds = max(seconds, lifecycle.launcher.close_seconds)
        self._calls.write()
        step = self._progress.train_step
        self.writer.close(how, message, seconds, step=step, phase=phase)
        self.remote.close()
        if self._dumps.is_on:
            path, stem = self.writer.path, self.writer.stem
            task = self.remote.task_for_later()
            self._dumps.leave(path, stem, self.rank, task)

    def end(self, how: How, message: str, phase: str) -> None:
        """The program ends so: have that on the disk before all else."""
        step = self._progress.train_step
        self.writer.end(how, message, step=step, phase=phase)

    def end_by(self, signal_name: str, seconds: float) -> None:
        """A signal ends the process: write what is queued and end the file, no more."""
        self.end("signal", signal_name, self._progress.phase.name)
        self.writer.close("signal", signal_name, seconds)

    def after_fork(self) -> None:
        """Nothing here is ours: this is a forked child."""
        self.remote.forget()
        self.cycles.after_fork()
        self._calls.forget()
        self._sampler.after_fork()
        self.writer.forget()

    # For the sampler, on its thread, and at the start and end.

    def _opened(self, sources: Sequence[Source]) -> list[Live]:
        return open_sources(
            sources,
            self._config,
            self.device,
            self.note_kind,
            self._warn_once,
            # Where the rank is not known yet it counts as the first: better told twice.
            is_first=self._identity.local_rank == 0,
        )

    def _close_sources(self) -> None:
        """Leave torch as it was."""
        sources, self._sources, self._reads = self._sources, [], []
        for live in sources:
            live.close()
        self.sizes.close()

    def _sampled(self, live: Live, values: Row) -> None:
        table = live.source.name
        schema_id = self._timed_schemas.get(table)
        if schema_id is None:
            columns, seconds = (*AXES, *live.columns), live.interval_seconds
            schema_id = self._schemas.add(table, TRAIN, columns, seconds)
            self._timed_schemas[table] = schema_id
        row = [now_ns(), self._progress.train_step, *values]
        self.writer.put_row(schema_id, row)

    # For the writer, on its thread.

    def _segment_plan(self) -> SegmentPlan | None:
        """How the rank's file is cut, where it is: by itself or for the mirror."""
        remote = self._config.remote
        is_mirrored = bool(remote.url) and remote.files is not None
        if not (self._config.segments or is_mirrored):
            return None
        return SegmentPlan(
            max_bytes=SEGMENT_BYTES,
            seconds=SEGMENT_SECONDS,
            finished=self._mirror_segment,
        )

    def _mirror_segment(self, path: Path) -> None:
        self.remote.put("events", path)

    def _identify(self) -> Identity:
        """Who this process is; the first settled answer stands."""
        if not self._identity.settled:
            self._identity = identify(self._config)
        return self._identity

    def _header(self, identity: Identity, attempt: str) -> Header:
        return make_header(
            run_dir=self._run_dir,
            attempt=attempt,
            identity=identity,
            started=self._started,
            device=self._known_device(),
            memory=host_memory(),
            mesh=self.mesh,
            config=self._config,
        )

    def _known_device(self) -> DeviceIdentity:
        try:
            return self.device.identity()
        except TORCH_ERRORS as error:
            self._warn_once("device", "the device does not answer", error=error)
            return DeviceIdentity(
                device_type=self.device.type, device_index=self.device.index
            )

    def _watch(self) -> None:
        self._calls.write()
        self._sampler.replace_if_stuck()
        for watcher in self.watchers:
            watcher()
        self.timing.write()
        if self.timing.log.num_dropped:
            lost = self.timing.log.num_dropped
            self.writer.lost[
                "spans", "too many: faster than kept, or beyond their budget"
            ] = lost
        for data in self.timing.log.take_totals():
            self.note("span", data, step=self._progress.train_step)
        device = self._known_device()
        if device != self._told_device:  # training has begun to use it
            self._told_device = device
            self.note("device", device_fields(device))

    def _note_remote(self, status: str, reason: str, remedy: str) -> None:
        self.note_kind(REMOTE, status, reason, remedy)
