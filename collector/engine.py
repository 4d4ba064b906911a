"""What works behind a recorder: device, sources, sampler and writer of one recording.

The recorder knows what training says; the engine knows what is measured and where it
goes. A source that fails is switched off here, with a note and one warning, and its
columns are absent from then on.
"""

from __future__ import annotations

import contextlib
import threading
import time
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from collector.dumps import Dumps
from collector.format.columns import AXES, PROGRESS, STEP_TABLE, TIMING
from collector.format.records import Schema
from collector.loop.progress import TRAIN
from collector.loop.spans import SpanTotals
from collector.rank import identify, is_distributed, new_attempt
from collector.sampler import Sampler
from collector.sources import TIMED, open_step_sources, open_timed_sources
from collector.sources.accelerator import DeviceIdentity, find_device
from collector.writer import Writer, WriterPlan
from collector.writing.header import (
    clock_anchor,
    device_fields,
    host_memory,
    make_header,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from collector.config import RecordConfig
    from collector.format.columns import Column
    from collector.format.records import Capture, Header
    from collector.loop.progress import Progress
    from collector.rank import Identity
    from collector.sources import Opened
    from collector.sources.contract import SourceInfo, StepSource, TimedSource
    from collector.trouble import Troubles

STOP_SECONDS: Final = 2.0
"""The longest that the end of a recording waits for sources and the disk; while captures
are being written, a few seconds more."""

_SAMPLER_SHARE: Final = 0.25
"""Of `STOP_SECONDS`: what a slow source may take; the rest is the disk's."""

_MAX_REASON: Final = 1000

_MAX_TABLES: Final = 512
"""A program may invent names of functions without end; each table costs memory."""

_HEAD: Final = (*AXES, *TIMING, *PROGRESS)
"""The columns of a step's row that the recorder itself fills."""


class Engine:
    """Runs from its making to `stop`. Safe to use from any thread."""

    def __init__(
        self,
        run_dir: Path,
        config: RecordConfig,
        mesh: dict[str, int],
        progress: Progress,
        troubles: Troubles,
    ) -> None:
        self.mesh = mesh
        self._run_dir = run_dir
        self._config = config
        self._progress = progress
        self._troubles = troubles
        self._started = clock_anchor()
        self._dumps = Dumps(config.dumps, run_dir)
        self.spans = SpanTotals()
        self._lock = threading.RLock()
        self._schema_ids = count()
        self._schemas: dict[tuple[str, str], int] = {}
        self._sink_tables: dict[
            tuple[str, str], list[tuple[tuple[Column, ...], int]]
        ] = {}
        """By table and phase, what kinds write there: columns and their schema."""
        self._num_sink_schemas = 0
        identity = self._identity = identify(config)
        self.device = find_device(config.device, local_rank=identity.local_rank)
        self._told_device = self._known_device()
        plan = WriterPlan(
            run_dir=run_dir,
            flush_seconds=config.flush_seconds,
            queue_rows=config.queue_rows,
            max_file_bytes=config.max_file_bytes,
            scalars=config.scalars,
            identify=self._identify,
            make_header=self._header,
            watch=self._watch,
        )
        attempt = new_attempt(self._started.wall_ns)
        self.writer = Writer(plan, identity, attempt, troubles)
        opened = open_step_sources(config, self.device)
        self._note_sources(opened)
        self._sources: list[StepSource | None] = list(opened.sources)
        self._samples: list[Callable[[], Sequence[int | float | None]]] = [
            source.sample for source in opened.sources
        ]
        self._columns: tuple[Column, ...] = _HEAD
        for source in opened.sources:
            self._columns += tuple(source.columns)
        self._width = len(self._columns)
        self._sampler = Sampler(self._open_timed, self)
        _import_ahead()
        try:
            self.writer.start()
            self._sampler.start()
        except BaseException:  # no thread to be had: leave torch as it was
            self._close_sources()
            raise

    def write_step(self, phase: str, row: list[int | float | None]) -> None:
        """Queue a step's row: `row` holds the head's values, the sources add theirs."""
        for index, sample in enumerate(self._samples):
            try:
                row += sample()
            except Exception as error:  # noqa: BLE001, PERF203  # one must not cost all
                row += self._switch_off(index, error)
        if len(row) != self._width:
            self._switch_off_odd()
            return
        # Here too, because the process group may be gone before the next flush.
        if not self._identity.settled and is_distributed():
            self._identify()
        schema_id = self._schemas.get((STEP_TABLE, phase))
        if schema_id is None:
            schema_id = self._add_schema(STEP_TABLE, phase, self._columns, None)
        self.writer.put_row(schema_id, row)

    def note(
        self, kind: str, data: dict[str, Any], *, step: int | None, user: bool = False
    ) -> None:
        """Queue a note; `user`: a user's loop may cause it, so it is bounded."""
        self.writer.put_note(kind, step, data, user=user)

    # For kinds: see `profiling.contract.Sink`.

    def put_capture(self, capture: Capture) -> bool:
        """Queue a capture; False where it was dropped (and counted)."""
        return self.writer.put_capture(capture)

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
            self._troubles.tell(
                f"table {table}",
                "rows of %s do not fit their columns and are dropped. Please report"
                " this.",
                table,
            )
            return
        schema_id = self._sink_schema(table, phase, columns, rolled_up=rolled_up)
        if schema_id is not None:
            self.writer.put_row(schema_id, row)

    def note_kind(
        self, info: SourceInfo, status: str, reason: str, remedy: str
    ) -> None:
        """Say that a kind records, or why it does not."""
        self._note_source(info, status, reason, remedy)

    @property
    def rank(self) -> int:
        """This process's rank, as far as it is known by now."""
        return self.writer.identity.rank

    def artifact_dir(self) -> Path | None:
        """Where files of the rank's go; None as long as it has no file of its own."""
        path = self.writer.path
        return None if path is None else path.with_suffix("")

    def step_values(self) -> dict[str, int | float | None]:
        """What the step sources say now, by column; those that fail are left out."""
        values: dict[str, int | float | None] = {}
        for source in self._sources:
            if source is not None:
                names = (column.name for column in source.columns)
                try:
                    values.update(zip(names, source.sample(), strict=True))
                except Exception as error:  # noqa: BLE001  # said while failing anyway
                    self._note_failed(source.info, error)
        return values

    def stop(self, how: Literal["closed", "exception"], message: str) -> None:
        """Stop sampling, write what is queued and end the file, in bounded time.

        Then the dumps, where any were asked for.
        """
        deadline = time.monotonic() + STOP_SECONDS
        self._sampler.stop(STOP_SECONDS * _SAMPLER_SHARE)
        self._close_sources()
        self.writer.close(how, message, max(0.1, deadline - time.monotonic()))
        self._dumps.write(self.writer.path)

    def forget(self) -> None:
        """In a forked child: nothing here is ours."""
        self._sampler.forget()
        self.writer.forget()

    # For the sampler, on its thread.

    def _open_timed(self) -> Sequence[TimedSource]:
        # Where the rank is not known yet it counts as the host's first: better told twice.
        rank = self._identity.local_rank
        opened = open_timed_sources(self._config, self.device, rank)
        self._note_sources(opened)
        return opened.sources

    def sampled(
        self, source: TimedSource, values: Sequence[int | float | None]
    ) -> None:
        """See `sampler.Listener`."""
        table = source.info.name
        schema_id = self._schemas.get((table, TRAIN))
        if schema_id is None:
            columns = (*AXES, *source.columns)
            schema_id = self._add_schema(table, TRAIN, columns, source.interval_seconds)
        row = [time.time_ns(), self._progress.train_step, *values]
        self.writer.put_row(schema_id, row)

    def failed(self, source: TimedSource, error: BaseException) -> None:
        """See `sampler.Listener`."""
        self._note_failed(source.info, error)

    # For the writer, on its thread.

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
        except Exception as error:  # noqa: BLE001  # a driver's trouble is not ours
            self._troubles.tell("device", "the device does not answer", error=error)
            return DeviceIdentity(
                device_type=self.device.type, device_index=self.device.index
            )

    def _watch(self) -> None:
        stuck = self._sampler.replace_if_stuck()
        if stuck is not None:
            self._note_failed(stuck.info, TimeoutError("a sample did not come back"))
        for data in self.spans.take():
            self.note("span", data, step=self._progress.train_step)
        known = self._known_device()
        if known != self._told_device:  # training has begun to use it
            self._told_device = known
            self.note("device", device_fields(known), step=None)

    # Sources that do not record.

    def _switch_off(self, index: int, error: BaseException) -> tuple[None, ...]:
        """The source's columns stay in the schema, absent from now on."""
        source = self._sources[index]
        if source is None:
            return ()
        nothing = (None,) * len(source.columns)
        self._samples[index] = lambda: nothing
        self._note_failed(source.info, error)
        self._close_source(index)
        return nothing

    def _switch_off_odd(self) -> None:
        """Some source gave more or fewer values than it has columns: the row is lost."""
        for index, source in enumerate(self._sources):
            if source is not None:
                found, expected = len(source.sample()), len(source.columns)
                if found != expected:
                    error = ValueError(f"{found} values for {expected} columns")
                    self._switch_off(index, error)

    def _close_sources(self) -> None:
        for index in range(len(self._sources)):
            self._close_source(index)

    def _close_source(self, index: int) -> None:
        source, self._sources[index] = self._sources[index], None
        if source is not None:
            try:
                source.close()
            except Exception as error:  # noqa: BLE001  # it is being left behind anyway
                self._troubles.tell("close", "a source did not close", error=error)

    def _note_sources(self, opened: Opened[Any]) -> None:
        for source in opened.sources:
            self._note_source(source.info, "recorded", "", "")
        for missing in opened.not_opened:
            info, reason = missing.info, missing.reason
            self._note_source(info, missing.status, reason, missing.remedy)
            if missing.status == "failed":
                self._troubles.tell(
                    f"source {info.name}",
                    "the source %s could not be opened and is off. %s",
                    info.name,
                    missing.remedy,
                    error=missing.error,
                )

    def _note_failed(self, info: SourceInfo, error: BaseException) -> None:
        reason = f"{type(error).__name__}: {error}"
        remedy = f"Switch it off with {info.name}=False, and report this."
        self._note_source(info, "failed", reason, remedy)
        self._troubles.tell(
            f"source {info.name}",
            "the source %s failed and is off from now on; the others go on. %s",
            info.name,
            remedy,
            error=error,
        )

    def _note_source(
        self, info: SourceInfo, status: str, reason: str, remedy: str
    ) -> None:
        data = {
            "name": info.name,
            "status": status,
            "reason": reason[:_MAX_REASON],
            "remedy": remedy,
            "cost": info.cost,
        }
        self.note("source", data, step=None)

    def _sink_schema(
        self, table: str, phase: str, columns: tuple[Column, ...], *, rolled_up: bool
    ) -> int | None:
        """The schema of a kind's table, new or not; None where there are too many."""
        with self._lock:
            known = self._sink_tables.get((table, phase), [])
            for held, schema_id in known:
                if held is columns or held == columns:
                    return schema_id
            if self._num_sink_schemas >= _MAX_TABLES:
                self._troubles.tell(
                    "tables",
                    "more than %d tables of functions: %s and further ones are not"
                    " recorded. Give functions and spans names without a number that"
                    " grows.",
                    _MAX_TABLES,
                    table,
                )
                return None
            schema_id = self._put_schema(
                table, phase, columns, None, rolled_up=rolled_up
            )
            self._num_sink_schemas += 1
            self._sink_tables[table, phase] = [*known, (columns, schema_id)]
        return schema_id

    def _add_schema(
        self,
        table: str,
        phase: str,
        columns: tuple[Column, ...],
        interval_seconds: float | None,
    ) -> int:
        with self._lock:
            schema_id = self._put_schema(table, phase, columns, interval_seconds)
            self._schemas[table, phase] = schema_id
        return schema_id

    def _put_schema(
        self,
        table: str,
        phase: str,
        columns: tuple[Column, ...],
        interval_seconds: float | None,
        *,
        rolled_up: bool = True,
    ) -> int:
        schema = Schema(
            schema_id=next(self._schema_ids),
            table=table,
            phase=phase,
            columns=columns,
            interval_seconds=interval_seconds,
            rolled_up=rolled_up,
        )
        self.writer.put_schema(schema)
        return schema.schema_id


def _import_ahead() -> None:
    """Import on this thread what the sampler would import on its own.

    A module half imported by another thread at a fork stays locked in the child for
    ever: a dataloader worker that imports it too would hang.
    """
    for name in (*(f"collector.sources.{name}" for name in TIMED), "psutil", "pynvml"):
        with contextlib.suppress(Exception):  # told when the source opens
            import_module(name)
