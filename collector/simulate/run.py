"""Writer of a simulated run: one file per rank, by several processes."""

from __future__ import annotations

import math
import os
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memboard.collector.format import columns as catalogue
from memboard.collector.format.capture import encode_body
from memboard.collector.format.columns import AXES, STEP_TABLE
from memboard.collector.format.names import RANK_FILES_DIR, rank_file_name
from memboard.collector.format.records import (
    Capture,
    ClockAnchor,
    Close,
    Header,
    Note,
    Schema,
)
from memboard.collector.process.bound_process import end_with
from memboard.collector.process.child_python import SAFE_PATH, variables_of_children
from memboard.collector.simulate.captures import (
    NUM_TRACKED,
    module_captures,
    span_captures,
)
from memboard.collector.simulate.faults import RANKS_PER_HOST, host_name
from memboard.collector.simulate.histories import (
    NUM_HISTORIES,
    SETTINGS,
    history_captures,
    last_words,
)
from memboard.collector.simulate.host import HOST_MEMORY_BYTES, TIMED_TABLES, timed_rows
from memboard.collector.simulate.memory import DEVICE_TOTAL_BYTES
from memboard.collector.simulate.series import (
    DEVICE_PEAK_FLOPS,
    STARTED_NS,
    STEPS_PER_EPOCH,
    rank_series,
    scenario_of,
)
from memboard.collector.writing.rank_file import RankFile
from memboard.collector.writing.scalars import ScalarsFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from memboard.collector.format.columns import Column
    from memboard.collector.simulate.series import RankSeries, Scenario, SimulatedRun

    _Table: TypeAlias = tuple[Schema, list[tuple[Any, ...]]]
    """A schema and its rows, the axes first."""

EIGHT_METRICS: Final = (
    "step_time_seconds",
    "rss_bytes",
    "allocated_bytes",
    "allocated_peak_bytes",
    "active_peak_bytes",
    "reserved_bytes",
    "reserved_peak_bytes",
    "inactive_split_bytes",
)

STEP_COLUMNS: Final = (
    *catalogue.TIMING,
    *catalogue.PROGRESS,
    *catalogue.PARTS,
    *catalogue.FLOPS,
    *catalogue.device_byte_columns(),
    *catalogue.DEVICE_COUNTERS,
    *catalogue.RSS,
)

_ATTEMPT_TIME: Final = "20260105T090000000"
_PID: Final = 4000
_RANKS_AT_A_TIME: Final = 16
_STEPS_PER_CHUNK: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRun:
    directory: Path
    """The run: the rank files lie in `plugins/memboard` below it."""
    num_files: int
    num_bytes: int
    planted: tuple[str, ...]


def write_run(
    run: SimulatedRun, directory: Path, *, num_processes: int = 1
) -> WrittenRun:
    """Write a run's rank files below `directory`, which must hold none yet.

    Whoever looks meanwhile sees whole files only, and first those of the ranks that run
    out of memory. More than one process needs a main module that can be imported again (spawn).

    Raises:
        FileExistsError: the directory holds rank files already.
        OSError: the directory cannot be written.
    """
    target = directory.joinpath(*RANK_FILES_DIR)
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise FileExistsError(f"{target} is not empty: choose another run directory")
    scenario = scenario_of(run)
    dying = [r for fault in scenario.faults if fault.kind == "oom" for r in fault.ranks]
    write = partial(_write_ranks, scenario, directory)
    sizes = [write(dying)]
    ranks = [rank for rank in range(run.num_ranks) if rank not in dying]
    batches = [
        ranks[start : start + _RANKS_AT_A_TIME]
        for start in range(0, len(ranks), _RANKS_AT_A_TIME)
    ]
    if num_processes <= 1 or len(batches) <= 1:
        sizes += map(write, batches)
    else:
        with (
            variables_of_children(SAFE_PATH),
            ProcessPoolExecutor(
                min(num_processes, len(batches)),
                mp_context=get_context("spawn"),
                initializer=end_with,
                initargs=(os.getpid(),),
            ) as pool,
        ):
            sizes += pool.map(write, batches)
    return WrittenRun(
        directory=directory,
        num_files=run.num_ranks,
        num_bytes=sum(sizes),
        planted=tuple(fault.words for fault in scenario.faults),
    )


def available_processes() -> int:
    """Processors this process may use, at most 16."""
    if hasattr(os, "sched_getaffinity"):
        return min(16, len(os.sched_getaffinity(0)))
    return min(16, os.cpu_count() or 1)


def _write_ranks(scenario: Scenario, directory: Path, ranks: Sequence[int]) -> int:
    """Write the files of a few ranks; returns their size in bytes."""
    return sum(_write_rank(scenario, directory, rank) for rank in ranks)


def _write_rank(scenario: Scenario, directory: Path, rank: int) -> int:
    series = rank_series(scenario, rank)
    header = _header(scenario, rank)
    tables = list(_tables(scenario, series))
    happened: list[Note | Capture] = list(_notes(scenario, series))
    if scenario.run.metrics == "all":
        happened += _captures(scenario, series, header.pid)
    happened.sort(key=lambda record: record.time_ns)
    path = directory.joinpath(*RANK_FILES_DIR) / rank_file_name(rank, header.attempt)
    unfinished = path.with_name(f".{path.name}.part")
    file = RankFile(max_bytes=0)
    for schema, _ in tables:
        file.add_schema(schema)
    file.open(unfinished, header)
    try:
        _write_rows(file, tables, happened)
        if scenario.fault_of(rank, "oom") is None:
            end_ns = int(series.time_ns[-1])
            file.close(Close(time_ns=end_ns, how="closed", message=""))
    finally:
        file.release()
    unfinished.replace(path)
    if rank == 0:
        scalars = ScalarsFile(directory, header, tables[0][0])
        for row in tables[0][1]:
            scalars.add(row)
        scalars.close()
    return path.stat().st_size


def _write_rows(
    file: RankFile, tables: Sequence[_Table], happened: Sequence[Note | Capture]
) -> None:
    """Window by window: so many steps, and whatever else there is by their end."""
    step_times = [row[0] for row in tables[0][1]]
    ends = [*step_times[_STEPS_PER_CHUNK - 1 : -1 : _STEPS_PER_CHUNK], math.inf]
    later = [deque(rows) for _, rows in tables]
    waiting = deque(happened)
    for end in ends:
        while waiting and waiting[0].time_ns <= end:
            record = waiting.popleft()
            if isinstance(record, Capture):
                file.write_capture(record, encode_body(record))
            else:
                file.notes.add(record)
        for (schema, _), rows in zip(tables, later, strict=True):
            while rows and rows[0][0] <= end:
                file.add_row(schema.schema_id, rows.popleft())
        file.flush()


def _tables(scenario: Scenario, series: RankSeries) -> Iterator[_Table]:
    """The step table and the timed ones."""
    columns, end = STEP_COLUMNS, series.num_rows
    if scenario.run.metrics != "all":
        columns = tuple(
            column for column in STEP_COLUMNS if column.name in EIGHT_METRICS
        )
    values = [series.columns[column.name][:end].tolist() for column in columns]
    rows = zip(series.time_ns[:end].tolist(), range(end), *values, strict=True)
    yield _schema(0, STEP_TABLE, columns, None), list(rows)
    if scenario.run.metrics == "all":
        is_hungry = scenario.fault_of(series.rank, "dataloader") is not None
        timed = timed_rows(series, is_hungry=is_hungry)
        for number, (table, sampled) in enumerate(timed, 1):
            schema = _schema(number, table.name, table.columns, table.interval_seconds)
            lists = [column.tolist() for column in sampled]
            yield schema, list(zip(*lists, strict=True))


def _captures(scenario: Scenario, series: RankSeries, pid: int) -> Iterator[Any]:
    """Captures of a rank that has any, and the note of an error."""
    if scenario.is_chosen(series.rank, NUM_TRACKED):
        yield from module_captures(scenario, series)
        yield from span_captures(scenario, series, pid)
    if scenario.fault_of(series.rank, "oom") is not None:
        yield from last_words(scenario, series)
    elif scenario.is_chosen(series.rank, NUM_HISTORIES):
        yield from history_captures(scenario, series)


def _notes(scenario: Scenario, series: RankSeries) -> Iterator[Note]:
    """The sources, epochs and faults, as a recorder would note them."""
    rank, end = series.rank, max(1, series.num_rows)
    for data in _sources(scenario, rank):
        yield Note(kind="source", time_ns=STARTED_NS, step=None, data=data)
    if scenario.run.metrics == "all":
        for epoch, step in enumerate(range(0, end, STEPS_PER_EPOCH)):
            data = {"epoch": epoch, "length": STEPS_PER_EPOCH}
            yield Note(
                kind="epoch", time_ns=series.began_ns(step), step=step, data=data
            )
    for fault in scenario.faults:
        # Said by the (first) rank concerned, and by rank 0, which speaks for the run.
        if rank in (0, fault.ranks[0]):
            yield Note(
                kind="mark",
                time_ns=int(series.time_ns[min(fault.first_step, end - 1)]),
                step=fault.first_step,
                data={"label": f"planted: {fault.words}"},
            )


def _sources(scenario: Scenario, rank: int) -> Iterator[dict[str, Any]]:
    """What a real rank says about its sources, with a simulated run's reasons."""
    everything = scenario.run.metrics == "all"
    is_first = rank % RANKS_PER_HOST == 0
    is_tracked = scenario.is_chosen(rank, NUM_TRACKED)
    recorded = {"device": True, "rss": True}
    for table in TIMED_TABLES:
        recorded[table.name] = everything and (is_first or not table.is_per_host)
    if everything:
        recorded["modules"] = recorded["spans"] = is_tracked
        recorded["history"] = scenario.is_chosen(rank, NUM_HISTORIES)
    off = (
        "in a simulated run some ranks stand for all: one of each host, some of the run"
    )
    remedy = "Look at a rank that does, for example rank 0."
    if not everything:
        off, remedy = "this simulated run holds eight metrics", "Simulate it with all."
    for source, is_recorded in recorded.items():
        yield {
            "name": source,
            "status": "recorded" if is_recorded else "off",
            "reason": "" if is_recorded else off,
            "remedy": "" if is_recorded else remedy,
            "cost": "none: simulated",
        }


def _schema(
    schema_id: int, table: str, columns: Sequence[Column], pace: float | None
) -> Schema:
    return Schema(
        schema_id=schema_id,
        table=table,
        phase="train",
        columns=(*AXES, *columns),
        interval_seconds=None if pace is None else float(pace),
    )


def _header(scenario: Scenario, rank: int) -> Header:
    run, num_shards = scenario.run, min(scenario.run.num_ranks, 64)
    local_rank = rank % RANKS_PER_HOST
    return Header(
        run_id=f"simulated-{run.num_ranks}x{run.num_steps}-{run.seed}",
        attempt=f"{_ATTEMPT_TIME}-{(rank * 2654435761 + run.seed) % 2**32:08x}",
        job=f"simulated-{run.seed}",
        rank=rank,
        local_rank=local_rank,
        world_size=run.num_ranks,
        local_world_size=min(RANKS_PER_HOST, run.num_ranks),
        node_rank=rank // RANKS_PER_HOST,
        host=host_name(rank),
        pid=_PID + local_rank,
        started=ClockAnchor(wall_ns=STARTED_NS, monotonic_ns=10**12),
        device_type="cuda",
        device_index=0,  # each process is given a device of its own
        device_name="Simulated 80 GiB accelerator",
        device_uuid=f"SIM-{rank:08x}",
        device_total_bytes=DEVICE_TOTAL_BYTES,
        memory_total_bytes=HOST_MEMORY_BYTES,
        mesh={"dp_replicate": rank // num_shards, "dp_shard": rank % num_shards},
        versions={"memboard": "simulated", "torch": "simulated"},
        allocator_settings=SETTINGS,
        config=_config(scenario),
        simulated=True,
        planted=tuple(fault.words for fault in scenario.faults),
    )


def _config(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """The settings that the page reads."""
    if scenario.run.metrics != "all":
        return {"spans": {"enabled": False}}
    per_token = scenario.flops_per_token
    return {
        "spans": {"enabled": True, "automatic": True},
        "flops": {"per_token": per_token, "device_peak": DEVICE_PEAK_FLOPS},
    }
