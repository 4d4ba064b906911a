"""Record a small real training and watch it live in TensorBoard.

Without --simulate it trains a small FSDP2 transformer (on the GPUs where there are any,
else on the CPU) with every rank recorded, and needs PyTorch. With --simulate N it writes
a simulated run of N ranks instead, with planted faults, marked as simulated on every
page; that needs no PyTorch.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from collector.core.run_dir import free_run_dir

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from collector.simulate import Metrics

_NO_START: Final = (
    "Choose another port with --port, or write the logdir alone with --no-serve."
)
DEFAULT_OUT: Final = "memboard-demo"
DEFAULT_STEPS: Final = 200
"""Of a real training: about 45 s with four ranks on two CPU cores."""
DEFAULT_SIMULATED_STEPS: Final = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard demo`."""
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(DEFAULT_OUT),
        metavar="DIR",
        help="logdir to write; a run that is there already stays (default: %(default)s)",
    )
    parser.add_argument(
        "--ranks",
        type=int,
        default=None,
        metavar="N",
        help="ranks to train with (default: 4, or one per GPU where there are GPUs)",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=None,
        metavar="N",
        help=f"training steps (default: {DEFAULT_STEPS})",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=0,
        metavar="P",
        help="port of TensorBoard (default: a free one)",
    )
    parser.add_argument(
        "--no-serve",
        action="store_true",
        help="write the logdir and exit, without TensorBoard",
    )
    parser.add_argument(
        "--simulate",
        type=int,
        default=None,
        metavar="N",
        help="write a simulated run of N ranks instead of training",
    )
    parser.add_argument(
        "--metrics",
        choices=("all", "8"),
        default="all",
        help="with --simulate: all that a real run records, or eight columns of the"
        " step table (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="equal seeds give equal simulated runs and equal batches"
        " (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Do what the options ask; returns the exit code."""
    _check(options)
    write = _simulating(options) if options.simulate else _training(options)
    logdir: Path = options.out
    try:
        logdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(
            f"the logdir cannot be created: {error.strerror}",
            where=str(logdir),
            remedy="Name a directory you may write to with --out.",
        ) from error
    from collector.cli.tensorboard import ending_in_order, serving

    with ending_in_order():
        if options.no_serve:
            write(logdir)
            print(f"Look at it with:\n  tensorboard --logdir {logdir}")
            return 0
        # Started first, so that the open tab grows while the run is written.
        with serving(logdir, options.port, remedy=_NO_START) as server:
            print(f"TensorBoard: {server.url}#{server.tab}", flush=True)
            write(logdir)
            server.wait(f"Serving {server.url}#{server.tab} until Ctrl-C.")
    return 0


def _check(options: argparse.Namespace) -> None:
    for name in ("ranks", "steps", "simulate"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise Failure(
                f"--{name} is {value}", remedy=f"Give --{name} a number from 1 on."
            )
    if not 0 <= options.port <= 65535:
        raise Failure(
            f"--port is {options.port}",
            remedy="Give a port from 1 to 65535, or 0 for a free one.",
        )
    if options.simulate and options.ranks is not None:
        raise Failure(
            "--ranks and --simulate were both given",
            remedy="--simulate N is the number of simulated ranks; leave --ranks out.",
        )
    if not options.simulate and options.metrics != "all":
        raise Failure(
            "--metrics was given without --simulate",
            remedy="A training records by its configuration; --metrics is for"
            " simulated runs.",
        )


def _simulating(options: argparse.Namespace) -> Callable[[Path], None]:
    def write(logdir: Path) -> None:
        steps = options.steps or DEFAULT_SIMULATED_STEPS
        _write_simulated(logdir, options.simulate, steps, options.metrics, options.seed)

    return write


def _write_simulated(
    logdir: Path, num_ranks: int, num_steps: int, metrics: Metrics, seed: int
) -> None:
    from collector.simulate import SimulatedRun, available_processes, write_run

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
        f"Wrote {written.num_files} files, {written.num_bytes / (1 << 20):.0f} MiB,"
        f" in {seconds:.1f} s. All of it is simulated. Planted faults:"
    )
    for words in written.planted:
        print(f"  {words}")


def _training(options: argparse.Namespace) -> Callable[[Path], None]:
    from collector.cli.demo.launch import plan_training

    plan = plan_training(options.ranks, options.steps or DEFAULT_STEPS, options.seed)

    def write(logdir: Path) -> None:
        plan.run(free_run_dir(logdir, "demo"))

    return write
