"""Logdirs for tests: rank files written through the disk contract alone.

    run = RunBuilder(tmp_path / "exp1")
    rank = run.rank(0)
    rank.steps(range(100), allocated_peak_bytes=[...])
    rank.close()
    path = rank.path

Nothing of the recorder is used, so a fault in it cannot hide one in the reader, and any
state of a file can be written: no digest, no close, a step that goes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from memboard.collector.format.capture import (
    CAPTURE,
    decode_part,
    encode_body,
    split_body,
)
from memboard.collector.format.columns import AXES, STEP_TABLE, Column
from memboard.collector.format.digest import DIGEST, TableRollup, encode_digest
from memboard.collector.format.encoding.framing import frame_record, frame_version
from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.encoding.payload import pack
from memboard.collector.format.names import RANK_FILES_DIR, rank_file_name
from memboard.collector.format.records import (
    CHUNK,
    Capture,
    CaptureEntry,
    ChunkRef,
    ClockAnchor,
    Close,
    Header,
    Note,
    Schema,
    StepCounts,
    decode_chunk_ref,
    encode_chunk,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

START_NS = 1_780_000_000 * 10**9
"""When the first attempt of built runs begins; in the past, so nothing is live."""

STEP_NS = 10**9
"""Rows of built runs are a second apart unless told otherwise."""

GIB = 1 << 30

COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Column(name="allocated_peak_bytes", unit="bytes", group="device", kind="peak", headline=True),
        Column(name="allocated_bytes", unit="bytes", group="device", headline=True),
        Column(name="reserved_peak_bytes", unit="bytes", group="device", kind="peak", headline=True),
        Column(name="reserved_bytes", unit="bytes", group="device", headline=True),
        Column(name="num_alloc_retries", unit="count", group="device", kind="counter"),
        Column(name="num_ooms", unit="count", group="device", kind="counter"),
        Column(name="device_used_bytes", unit="bytes", group="device", headline=True),
        Column(name="rss_bytes", unit="bytes", group="process", headline=True),
        Column(name="workers_rss_bytes", unit="bytes", group="process", headline=True),
        Column(name="step_time_seconds", unit="seconds", group="timing", dtype="f4", headline=True),
        Column(name="cpu_total_pct", unit="percent", group="host", dtype="f4", headline=True),
        Column(name="memory_used_bytes", unit="bytes", group="host", headline=True),
        Column(name="memory_limit_used_bytes", unit="bytes", group="host"),
        Column(name="requested_bytes", unit="bytes", group="device"),
        Column(name="cpu_steal_pct", unit="percent", group="host", dtype="f4"),
        Column(name="cpu_runnable_pct", unit="percent", group="host", dtype="f4"),
    )
}  # fmt: skip
"""Columns the builders know by name; give a `Column` for any other."""


class RankBuilder:
    """One rank's file of one attempt, growing on disk record by record."""

    def __init__(
        self,
        folder: Path,
        rank: int,
        attempt: str,
        header: Header | None,
        *,
        segment: int | None = None,
        named_rank: int | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = rank_file_name(
            rank if named_rank is None else named_rank, attempt, segment
        )
        self.path = folder / name
        self.rank = rank
        self.header = header
        self.digest_offset = 0
        self.offsets: list[tuple[str, int, int]] = []
        """(kind, start, end) of every record, in order."""
        self._notes: list[Note] = []
        self._tables: dict[tuple[str, str, tuple[Column, ...]], TableRollup] = {}
        self._num_dropped = 0
        self._chunks: list[ChunkRef] = []
        self._captures: list[CaptureEntry] = []
        self._captures_before = 0
        self._next_ns = START_NS if header is None else header.started.wall_ns
        self.path.write_bytes(frame_version(self._next_ns / 1e9))
        if header is not None:
            self.record(header)

    def steps(
        self, steps: Iterable[int], *, rows_per_chunk: int = 50, **columns: Any
    ) -> None:
        """Rows of the step table, in chunks; `phase`, `times` and columns by name."""
        self.rows(STEP_TABLE, steps, rows_per_chunk=rows_per_chunk, **columns)

    def rows(
        self,
        table: str,
        steps: Iterable[int],
        *,
        phase: str = "train",
        times: Sequence[int] | None = None,
        rows_per_chunk: int = 50,
        extra: Sequence[Column] = (),
        rolled_up: bool = True,
        timed: bool | None = None,
        **columns: Sequence[float | None] | np.ndarray,
    ) -> None:
        """Rows of any table; None in a column is "not recorded".

        `timed`: sampled by the clock, so without phases; default: all but the step table.
        """
        step = np.array(list(steps), np.int64)
        if times is None:
            times = self._next_ns + STEP_NS * np.arange(
                1, len(step) + 1, dtype=np.int64
            )
        time_ns = np.array(times, np.int64)
        if len(time_ns):
            self._next_ns = int(time_ns[-1])
        known = {**COLUMNS, **{column.name: column for column in extra}}
        chosen = tuple(known[name] for name in columns)
        timed = table != STEP_TABLE and rolled_up if timed is None else timed
        held = self._table(table, phase, chosen, rolled_up=rolled_up, timed=timed)
        values = [stored(known[name], column) for name, column in columns.items()]
        for start in range(0, len(step), rows_per_chunk):
            part = slice(start, start + rows_per_chunk)
            self._chunk(held, [time_ns[part], step[part], *(v[part] for v in values)])

    def note(
        self,
        kind: str,
        step: int | None = None,
        time_ns: int | None = None,
        **data: Any,
    ) -> None:
        """Something that happened."""
        when = self._next_ns if time_ns is None else time_ns
        note = Note(kind=kind, time_ns=when, step=step, data=data)
        self._notes.append(note)
        self.record(note)

    def capture(
        self, kind: str = "modules", function: str = "step", **fields: Any
    ) -> CaptureEntry:
        """A capture; `tables`, `meta` and any other field of `Capture` by name."""
        known = {"time_ns": self._next_ns, "step": 0, "phase": "train", "iteration": 1}
        capture = Capture(kind=kind, function=function, **{**known, **fields})
        start = self.path.stat().st_size
        parts = split_body(
            capture, encode_body(capture), digest_offset=self.digest_offset
        )
        for part in parts:
            self.append(CAPTURE, part)
        entry = decode_part(parts[0])[0].entry_at(start, self.path.stat().st_size)
        self._captures.append(entry)
        return entry

    def source(
        self, name: str, status: str = "recorded", reason: str = "", remedy: str = ""
    ) -> None:
        """What a source says about itself."""
        self.note(
            "source", name=name, status=status, reason=reason, remedy=remedy, cost=""
        )

    def digest(self) -> None:
        """Index and pre-aggregate of everything so far."""
        start = self.path.stat().st_size
        payload = encode_digest(
            list(self._tables.values()),
            self._chunks,
            self._notes,
            self._captures,
            previous_offset=self.digest_offset,
            captures_before=self._captures_before,
        )
        self.append(DIGEST, payload)
        self._chunks = []
        self.digest_offset = start
        if self._captures:
            self._captures, self._captures_before = [], start

    def close(
        self,
        how: str = "closed",
        message: str = "",
        *,
        digest: bool = True,
        step: int | None = None,
        phase: str = "",
        is_complete: bool = True,
        steps: StepCounts | None = None,
    ) -> None:
        """The orderly end; not complete: cut before all was written."""
        if digest:
            self.digest()
        self.record(
            Close(
                time_ns=self._next_ns,
                how=how,
                message=message,
                step=step,
                phase=phase,
                digest_offset=self.digest_offset,
                num_dropped=self._num_dropped,
                is_complete=is_complete,
                steps=steps,
            )
        )

    def record(self, record: Any) -> None:
        """Append a text record."""
        self.append(kind_of(record), pack(record))

    def append(self, kind: str, payload: bytes) -> None:
        """Append a frame with any payload."""
        data = frame_record(kind, payload, wall_time=self._next_ns / 1e9, step=0)
        start = self.path.stat().st_size
        with self.path.open("ab") as file:
            file.write(data)
        self.offsets.append((kind, start, start + len(data)))

    def _table(
        self,
        table: str,
        phase: str,
        columns: tuple[Column, ...],
        *,
        rolled_up: bool,
        timed: bool,
    ) -> TableRollup:
        key = (table, phase, columns)
        if key not in self._tables:
            schema = Schema(
                schema_id=len(self._tables) + 1,
                table=table,
                phase=phase,
                columns=(*AXES, *columns),
                interval_seconds=1.0 if timed else None,
                rolled_up=rolled_up,
            )
            self._tables[key] = TableRollup(schema)
            self.record(schema)
        return self._tables[key]

    def _chunk(self, table: TableRollup, columns: list[np.ndarray]) -> None:
        payload = encode_chunk(
            table.schema,
            columns,
            digest_offset=self.digest_offset,
            first_row=table.num_on_disk,
        )
        start = self.path.stat().st_size
        self.append(CHUNK, payload)
        end = self.path.stat().st_size
        self._chunks.append(decode_chunk_ref(payload, start, end)[0])
        table.add(columns)


class RunBuilder:
    """A run directory and the rank files in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder.joinpath(*RANK_FILES_DIR)
        self.files.mkdir(parents=True, exist_ok=True)

    def rank(
        self,
        rank: int = 0,
        *,
        attempt: int = 0,
        start_ns: int | None = None,
        job: str = "",
        world_size: int = 8,
        headless: bool = False,
        segment: int | None = None,
        named_rank: int | None = None,
        **header: Any,
    ) -> RankBuilder:
        """A new file of a rank. Attempts begin a day apart unless `start_ns` is given."""
        when = START_NS + attempt * 86_400 * 10**9 if start_ns is None else start_ns
        name = attempt_name(when, attempt)
        made = make_header(rank, name, when, job=job, world_size=world_size)
        made = msgspec.structs.replace(made, **header)
        written = None if headless else made
        return RankBuilder(
            self.files, rank, name, written, segment=segment, named_rank=named_rank
        )

    def simple(
        self, num_ranks: int, num_steps: int, *, close: bool = True, **header: Any
    ) -> list[RankBuilder]:
        """Ranks whose peak at step s is `peak_of(rank, s)`."""
        built = []
        for number in range(num_ranks):
            rank = self.rank(number, world_size=num_ranks, **header)
            steps = np.arange(num_steps)
            rank.steps(steps, allocated_peak_bytes=peak_of(number, steps))
            if close:
                rank.close()
            built.append(rank)
        return built


def peak_of(rank: int, step: Any) -> Any:
    """What `RunBuilder.simple` records: different for every rank and step."""
    return 10_000_000 + rank * 1000 + (step * 7919) % 997


def attempt_name(start_ns: int, number: int) -> str:
    """The attempt part of a file's name."""
    import time

    seconds, rest = divmod(start_ns, 10**9)
    text = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
    return f"{text}{rest // 10**6:03d}-{number:08x}"


def make_header(
    rank: int, attempt: str, start_ns: int, *, job: str = "", world_size: int = 8
) -> Header:
    """A header with an accelerator of 80 GiB."""
    return Header(
        run_id="run",
        attempt=attempt,
        job=job,
        rank=rank,
        local_rank=rank % 8,
        world_size=world_size,
        local_world_size=8,
        node_rank=rank // 8,
        host=f"host{rank // 8}",
        pid=1000 + rank,
        started=ClockAnchor(wall_ns=start_ns, monotonic_ns=0),
        device_type="cuda",
        device_index=rank % 8,
        device_name="Test accelerator",
        device_total_bytes=80 * GIB,
        memory_total_bytes=512 * GIB,
        versions={"memboard": "0.1.0", "torch": "2.13.0"},
    )


def stored(column: Column, values: Sequence[float | None] | np.ndarray) -> np.ndarray:
    """A column as the writer holds it: int64 with ABSENT, or float64 with NaN."""
    if column.dtype == "i8":
        return np.array([ABSENT if v is None else int(v) for v in values], np.int64)
    return np.array([np.nan if v is None else float(v) for v in values], np.float64)


def flip_bit(path: Path, offset: int, bit: int = 0) -> None:
    """Damage one bit of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(bytes(data))


def age(path: Path, seconds: float = 3600.0) -> None:
    """Make files look as if nobody wrote to them for a while."""
    import os
    import time

    for file in path.rglob("*"):
        if file.is_file():
            when = time.time() - seconds
            os.utime(file, (when, when))
