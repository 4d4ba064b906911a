"""`memboard demo --simulate`: a simulated run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from collector.cli.failure import Failure
from collector.core.run_dir import free_run_dir
from collector.simulate import SimulatedRun, available_processes, write_run

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
    what = f"{num_ranks} ranks x {num_steps} steps"
    print(f"Simulating {what} into {directory} ...", flush=True)
    started = time.perf_counter()
    try:
        written = write_run(run, directory, num_processes=available_processes())
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
