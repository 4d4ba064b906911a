"""Open MemBoard on a simulated run of 64 ranks.

It needs no PyTorch and no GPU. One rank runs out of memory; every page marks the run as
simulated. With --train a small FSDP2 transformer is trained and recorded beside it (on
the GPUs where there are any, else on the CPU), which needs PyTorch.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memboard.collector.cli.failure import Failure
from memboard.collector.cli.terminal import say
from memboard.collector.format.sizes import counted
from memboard.collector.process.run_dir import free_run_dir

if TYPE_CHECKING:
    import argparse

    from memboard.collector.cli.demo.launch import TrainingPlan
    from memboard.collector.simulate import Metrics

_NO_START: Final = (
    "Choose another port with --port, or write the logdir alone with --no-serve."
)
DEFAULT_OUT: Final = "memboard-demo"
DEFAULT_SIMULATED_RANKS: Final = 64
DEFAULT_STEPS: Final = 200
DEFAULT_SECONDS: Final = 30


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
        "--simulate",
        type=int,
        default=DEFAULT_SIMULATED_RANKS,
        metavar="N",
        help="ranks of the simulated run; 0: write none (default: %(default)s)",
    )
    parser.add_argument(
        "--train",
        action="store_true",
        help="also train for real, and record it; needs PyTorch",
    )
    parser.add_argument(
        "--ranks",
        type=int,
        default=None,
        metavar="N",
        help="with --train: ranks (default: 4, or one per GPU where there are GPUs)",
    )
    parser.add_argument(
        "--seconds",
        type=int,
        default=DEFAULT_SECONDS,
        metavar="S",
        help="with --train: end after so long (default: %(default)s)",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=DEFAULT_STEPS,
        metavar="N",
        help="steps of the simulated run, and at most of the training"
        " (default: %(default)s)",
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
        "--no-browser", action="store_true", help="print the URL and open no browser"
    )
    parser.add_argument(
        "--metrics",
        choices=("all", "8"),
        default="all",
        help="of the simulated run: all that a real one records, or eight columns of"
        " the step table (default: %(default)s)",
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
    plan = _plan(options) if options.train else None
    logdir: Path = options.out
    try:
        logdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(
            f"the logdir cannot be created: {error.strerror}",
            where=str(logdir),
            remedy="Name a directory you may write to with --out.",
        ) from error
    from memboard.collector.cli.tensorboard import (
        ending_in_order,
        open_browser,
        serving,
    )

    with ending_in_order():
        if options.no_serve:
            _simulate(options)
            _train(plan, logdir)
            print(f"Look at it with:\n  tensorboard --logdir {logdir}")
            return 0
        # Started first: it takes as long as the simulation, and a training is watched.
        with serving(logdir, options.port, remedy=_NO_START) as server:
            url = f"{server.url}#{server.tab}"
            print(f"TensorBoard: {url}", flush=True)
            _simulate(options)
            if not options.no_browser:
                open_browser(url)
            _train(plan, logdir)
            server.wait(f"Serving {url} until Ctrl-C.")
    return 0


def _check(options: argparse.Namespace) -> None:
    for option, lowest in (("ranks", 1), ("steps", 1), ("seconds", 1), ("simulate", 0)):
        value = getattr(options, option)
        if value is not None and value < lowest:
            raise Failure(
                f"--{option} is {value}",
                remedy=f"Give --{option} a number from {lowest} on.",
            )
    if not 0 <= options.port <= 65535:
        raise Failure(
            f"--port is {options.port}",
            remedy="Give a port from 1 to 65535, or 0 for a free one.",
        )
    if not options.train and options.ranks is not None:
        raise Failure(
            "--ranks was given without --train",
            remedy="--ranks is the training's; --simulate N gives the simulated run's.",
        )
    if not options.train and not options.simulate:
        raise Failure(
            "--simulate 0 without --train leaves nothing to show",
            remedy="Add --train, or leave --simulate out.",
        )


def _plan(options: argparse.Namespace) -> TrainingPlan:
    from memboard.collector.cli.demo.launch import plan_training

    return plan_training(options.ranks, options.steps, options.seconds, options.seed)


def _train(plan: TrainingPlan | None, logdir: Path) -> None:
    if plan is not None:
        plan.run(free_run_dir(logdir, "demo"))


def _simulate(options: argparse.Namespace) -> None:
    if options.simulate:
        ranks, steps = options.simulate, options.steps
        _write_simulated(options.out, ranks, steps, options.metrics, options.seed)


def _write_simulated(
    logdir: Path, num_ranks: int, num_steps: int, metrics: Metrics, seed: int
) -> None:
    from memboard.collector.simulate import SimulatedRun, available_processes, write_run

    try:
        run = SimulatedRun(
            num_ranks=num_ranks, num_steps=num_steps, metrics=metrics, seed=seed
        )
    except ValueError as error:
        raise Failure(str(error)) from error
    directory = free_run_dir(logdir, f"simulated-{num_ranks}x{num_steps}")
    size_text = f"{counted(num_ranks, 'rank')} x {counted(num_steps, 'step')}"
    print(f"Simulating {size_text} into {directory} ...", flush=True)
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
    wrote = (
        f"Wrote {counted(written.num_files, 'file')}, {written.num_bytes / (1 << 20):.0f} MiB,"
        f" in {seconds:.1f} s. All of it is simulated. Planted faults:"
    )
    lines = [wrote, *(f"  {planted}" for planted in written.planted)]
    say("\n".join(lines))
