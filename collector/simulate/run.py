"""Writes the logdir of a simulated run: one file per rank, by several processes."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from collector.format import columns as catalogue
from collector.format.columns import AXES, STEP_TABLE
from collector.format.names import RANK_FILES_DIR, rank_file_name
from collector.format.records import ClockAnchor, Header, Schema
from collector.simulate.curves import (
    DEVICE_TOTAL_BYTES,
    model_curves,
    training_shape,
)
from collector.simulate.faults import RANKS_PER_HOST, host_name, plan_faults
from collector.simulate.history.captures import Histories, history_captures
from collector.simulate.host import HOST_MEMORY_BYTES, timed_rows
from collector.simulate.modules.captures import module_captures
from collector.simulate.notes import rank_notes
from collector.simulate.rank_file import TableRows, rank_file_bytes
from collector.simulate.ranks import STARTED_NS, derive_batch
from collector.simulate.span_captures import span_captures
from collector.simulate.step_parts import (
    DEVICE_PEAK_FLOPS,
    flops_per_token,
    part_columns,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.format.columns import Column
    from collector.simulate.curves import StepCurves
    from collector.simulate.faults import Fault
    from collector.simulate.host import TimedRows
    from collector.simulate.ranks import RankBatch

Metrics: TypeAlias = Literal["all", "8"]
"""All tables and columns of a real run; or eight columns of the step table alone."""

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

NUM_MODELLED_RANKS: Final = 3
_BATCH_RANKS: Final = 32
"""Ranks derived together. Part of the seeding: another number, other values."""

_ATTEMPT_TIME: Final = "20260105T090000000"
_PID: Final = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """What to simulate. Equal settings give equal bytes."""

    num_ranks: int
    num_steps: int = 200
    metrics: Metrics = "all"
    seed: int = 0
    rows_per_chunk: int = 256

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated.

        Raises:
            ValueError: says which number is out of range.
        """
        if not 1 <= self.num_ranks <= 100_000:
            raise ValueError(
                f"{self.num_ranks} simulated ranks: give a number from 1 to 100000"
            )
        if not 1 <= self.num_steps <= 10_000_000:
            raise ValueError(
                f"{self.num_steps} simulated steps: give a number from 1 to 10000000"
            )
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed {self.seed}: give a number from 0 to 4294967295")
        if not 1 <= self.rows_per_chunk <= 1 << 20:
            raise ValueError(
                f"{self.rows_per_chunk} rows per chunk: give a number from 1 to 1048576"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRun:
    """What was written."""

    directory: Path
    """The run: the rank files lie in `plugins/memboard` below it."""
    num_files: int
    num_bytes: int
    planted: tuple[str, ...]


def write_run(
    run: SimulatedRun, directory: Path, *, num_processes: int = 1
) -> WrittenRun:
    """Write a run's rank files below `directory`, which must hold none yet.

    More than one process needs a main module that can be imported again (spawn).

    Raises:
        FileExistsError: the directory holds rank files already.
        OSError: the directory cannot be written.
    """
    target = directory.joinpath(*RANK_FILES_DIR)
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise FileExistsError(f"{target} is not empty: choose another run directory")
    shape = training_shape(run.num_ranks)
    num_modelled = min(run.num_ranks, NUM_MODELLED_RANKS)
    curves = [
        model_curves(shape, run.seed * 1000 + index, run.num_steps)
        for index in range(num_modelled)
    ]
    faults = plan_faults(run.num_ranks, run.num_steps)
    job = _Job(run, target, curves, faults)
    batches = [
        range(start, min(start + _BATCH_RANKS, run.num_ranks))
        for start in range(0, run.num_ranks, _BATCH_RANKS)
    ]
    if num_processes <= 1 or len(batches) == 1:
        sizes = [_write_batch(job, batch) for batch in batches]
    else:
        with ProcessPoolExecutor(
            min(num_processes, len(batches)),
            mp_context=get_context("spawn"),
            initializer=_remember,
            initargs=(job,),
        ) as pool:
            sizes = list(pool.map(_write_remembered, batches))
    return WrittenRun(
        directory=directory,
        num_files=run.num_ranks,
        num_bytes=sum(sizes),
        planted=tuple(fault.words for fault in faults),
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """All that a process needs to write any batch of ranks."""

    run: SimulatedRun
    target: Path
    curves: Sequence[StepCurves]
    faults: Sequence[Fault]


_remembered: list[_Job] = []
"""In a worker process: the job, sent once instead of with every batch."""


def _remember(job: _Job) -> None:
    _remembered[:] = [job]


def _write_remembered(ranks: range) -> int:
    return _write_batch(_remembered[0], ranks)


def _write_batch(job: _Job, ranks: range) -> int:
    """Write the files of a few ranks; returns their size in bytes."""
    run = job.run
    batch = derive_batch(ranks, job.curves, job.faults, run.seed)
    if run.metrics == "all":
        shape = training_shape(run.num_ranks)
        parts = part_columns(batch, job.faults, run.seed, shape)
        batch = replace(batch, columns={**batch.columns, **parts})
    timed = timed_rows(batch, job.faults, run.seed) if run.metrics == "all" else []
    total = 0
    for row, rank in enumerate(ranks):
        header = _header(run, rank, job.faults)
        histories = Histories()
        if run.metrics == "all":
            histories = history_captures(
                batch, row, job.faults, run.num_ranks, run.seed
            )
            histories.correct(batch, row)
        content = rank_file_bytes(
            header,
            rank_notes(
                batch,
                row,
                job.faults,
                run.num_ranks,
                everything=run.metrics == "all",
            ),
            _tables(run, batch, timed, row),
            (
                *module_captures(batch, row, job.curves, job.faults, run.num_ranks),
                *histories.captures,
                *span_captures(batch, row, job.faults, header.pid),
            )
            if run.metrics == "all"
            else (),
            rows_per_chunk=run.rows_per_chunk,
            close=not any(f.kind == "oom" and rank in f.ranks for f in job.faults),
        )
        path = job.target / rank_file_name(rank, header.attempt)
        path.write_bytes(content)
        total += len(content)
    return total


def _tables(
    run: SimulatedRun, batch: RankBatch, timed: Sequence[TimedRows], row: int
) -> list[TableRows]:
    num_steps = int(batch.num_steps[row])
    columns = step_columns(run.metrics)
    steps = np.arange(num_steps, dtype=np.int64)
    values = [batch.columns[column.name][row, :num_steps] for column in columns]
    axes = [batch.time_ns[row, :num_steps], steps]
    tables = [TableRows(_schema(0, STEP_TABLE, columns, None), [*axes, *values])]
    for index, sampled in enumerate(timed, 1):
        if row not in sampled.rows:
            continue
        at = sampled.rows.index(row)
        num = int(sampled.num_samples[at])
        table = sampled.table
        values = [sampled.columns[column.name][at, :num] for column in table.columns]
        axes = [sampled.time_ns[at, :num], sampled.step[at, :num]]
        schema = _schema(index, table.name, table.columns, table.interval_seconds)
        tables.append(TableRows(schema, [*axes, *values]))
    return tables


def step_columns(metrics: Metrics) -> tuple[Column, ...]:
    """Columns of the step table behind the axes."""
    if metrics == "all":
        return STEP_COLUMNS
    return tuple(column for column in STEP_COLUMNS if column.name in EIGHT_METRICS)


def _schema(
    schema_id: int, table: str, columns: Sequence[Column], pace: float | None
) -> Schema:
    return Schema(
        schema_id=schema_id,
        table=table,
        phase="train",
        columns=(*AXES, *columns),
        # As settings have it: schemas that are equal are encoded once, and 1 equals 1.0.
        interval_seconds=None if pace is None else float(pace),
    )


def _header(run: SimulatedRun, rank: int, faults: Sequence[Fault]) -> Header:
    num_shards = min(run.num_ranks, 64)
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
        allocator_settings="",
        config=_config(run),
        simulated=True,
        planted=tuple(fault.words for fault in faults),
    )


def _config(run: SimulatedRun) -> dict[str, dict[str, float]]:
    """The settings that the page reads."""
    if run.metrics != "all":
        return {}
    per_token = flops_per_token(training_shape(run.num_ranks))
    return {"flops": {"per_token": per_token, "device_peak": DEVICE_PEAK_FLOPS}}


def available_processes() -> int:
    """Processors this process may use, at most 16."""
    if hasattr(os, "sched_getaffinity"):
        return min(16, len(os.sched_getaffinity(0)))
    return min(16, os.cpu_count() or 1)
