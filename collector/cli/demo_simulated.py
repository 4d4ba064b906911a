"""`memboard demo --simulate`: a simulated run, and rank 0's scalars beside it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from collector.cli.failure import Failure
from collector.core.run_dir import free_run_dir
from collector.format.codec import decode_record
from collector.format.columns import STEP_TABLE
from collector.format.framing import Framed, read_frames
from collector.format.names import RANK_FILES_DIR
from collector.format.records import Chunk, Header, Schema
from collector.simulate import SimulatedRun, write_run
from collector.simulate.run import available_processes
from collector.writing.scalars import ScalarsFile

if TYPE_CHECKING:
    from pathlib import Path

    from collector.simulate import Metrics

MIB = 1 << 20


def write_simulated(
    logdir: Path, num_ranks: int, num_steps: int, metrics: Metrics, seed: int
) -> Path:
    """Write a simulated run into `logdir` and say what it holds; returns its directory.

    Raises:
        Failure: the numbers are out of range, or the disk refuses.
    """
    try:
        run = SimulatedRun(
            num_ranks=num_ranks, num_steps=num_steps, metrics=metrics, seed=seed
        )
    except ValueError as error:
        raise Failure(str(error)) from error
    directory = free_run_dir(logdir, f"simulated-{num_ranks}x{num_steps}")
    print(
        f"Simulating {num_ranks} ranks x {num_steps} steps into {directory} ...",
        flush=True,
    )
    started = time.perf_counter()
    try:
        written = write_run(run, directory, num_processes=available_processes())
        _write_scalars(directory)
    except OSError as error:
        raise Failure(
            f"the simulated run could not be written: {error.strerror or error}",
            where=str(error.filename or directory),
            remedy="Free some space, or name another directory with --out.",
        ) from error
    seconds = time.perf_counter() - started
    print(
        f"Wrote {written.num_files} files, {written.num_bytes / MIB:.0f} MiB,"
        f" in {seconds:.1f} s. All of it is simulated. Planted faults:"
    )
    for words in written.planted:
        print(f"  {words}")
    return directory


def _write_scalars(directory: Path) -> None:
    """Rank 0's headline scalars, as its recorder would have written them."""
    first = min(directory.joinpath(*RANK_FILES_DIR).iterdir())
    header: Header | None = None
    scalars: ScalarsFile | None = None
    schema_id = -1
    for framed in read_frames(first.read_bytes()):
        if not isinstance(framed, Framed) or not framed.kind:
            continue
        record = decode_record(framed.kind, framed.payload)
        if isinstance(record, Header):
            header = record
        elif isinstance(record, Schema) and record.table == STEP_TABLE and header:
            schema_id = record.schema_id
            scalars = ScalarsFile(directory, header, record)
        elif isinstance(record, Chunk) and record.schema_id == schema_id and scalars:
            columns = [column.tolist() for column in record.columns]
            for row in zip(*columns, strict=True):
                scalars.add(row)
    if scalars is not None:
        scalars.close()
