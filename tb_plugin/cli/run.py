"""Record any PyTorch program as it is; no line of it changes.

    memboard run train.py --lr 3e-4
    torchrun --nproc-per-node 4 --no-python memboard run -m package.train

Options of MemBoard stand before the program, which runs in this process as Python would
run it. A step is one `optimizer.step()`. A program that records itself is left alone.

    memboard run --on h100 train.py

predicts on a virtual H100 whether the program fits (memboard docs predict).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memboard.collector.cli.failure import Failure, UsageError
from memboard.collector.process.run_dir import free_run_dir
from memboard.tb_plugin.cli.prediction import request as prediction

# More is imported where it is needed: the program shares this process.

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from memboard.collector.running.program import Program
    from memboard.collector.running.session import Settings

_LAUNCHERS: Final = frozenset(
    {
        "torchrun",
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate",
        "accelerate.commands.launch",
        "deepspeed",
        "deepspeed.launcher.runner",
        "mpirun",
        "mpiexec",
        "srun",
    }
)
"""Programs that start the ranks, and train nothing themselves."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard run`."""
    parser.usage = "memboard run [options] (SCRIPT | -m MODULE) [arguments]"
    parser.add_argument(
        "--logdir",
        type=Path,
        default=Path("memboard-runs"),
        metavar="DIR",
        help="where runs lie (default: %(default)s)",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="the run's name (default: the program's)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="a setting, such as history=true; wins over all others",
    )
    parser.add_argument(
        "--config",
        action="append",
        type=Path,
        metavar="FILE",
        help="a YAML file of settings; of several, a later one wins",
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs="...",
        metavar="MODULE",
        help="run a module, as python -m does",
    )
    parser.add_argument(
        "program", nargs="...", metavar="SCRIPT", help="a script to run"
    )
    prediction.add_arguments(parser)


def run(options: argparse.Namespace) -> int | Callable[[], int]:
    """Predict; or return the function that runs and records the program."""
    program = _program(options)
    settings = _settings(options, program)
    if options.on is not None:
        return _predict(options, prediction.request_of(options, program, settings))
    prediction.check_absent(options)

    def start() -> int:
        from memboard.collector.running import program as running
        from memboard.collector.running.session import Session

        session = Session(settings)
        session.watch()
        try:
            running.run(program)
        finally:
            session.finish()
        return 0

    return start


def _predict(options: argparse.Namespace, request: prediction.Request) -> int:
    from memboard.collector.cli.tensorboard import ending_in_order
    from memboard.tb_plugin.cli.prediction.answer import predict
    from memboard.tb_plugin.cli.prediction.sweep import predict_values

    as_json = options.json
    with ending_in_order():
        if options.sweep is not None:
            placeholder, values = options.sweep
            return predict_values(
                request, placeholder, values.split(","), as_json=as_json
            )
        if options.largest is not None:
            return predict_values(request, *options.largest, as_json=as_json)
        return predict(request, as_json=as_json)


def _program(options: argparse.Namespace) -> Program:
    from memboard.collector.running.program import parse

    is_module = options.module is not None
    command_line = options.module if is_module else options.program
    if command_line and command_line[0] == "--":
        command_line = command_line[1:]
    program = parse(command_line, is_module=is_module)
    if program is None:
        raise UsageError(
            "there is no program to run: name a script, or a module behind -m"
        )
    if program.target in _LAUNCHERS or Path(program.target).name in _LAUNCHERS:
        raise Failure(
            "a launcher trains nothing itself",
            where=program.target,
            remedy="let it start memboard on every rank:"
            " torchrun --nproc-per-node 4 --no-python memboard run train.py",
        )
    if not is_module and not os.access(program.target, os.R_OK):
        is_there = Path(program.target).exists()
        raise Failure(
            f"the program cannot be {'read' if is_there else 'found'}",
            where=program.target,
            remedy="give the script's path; a module is named behind -m",
        )
    return program


def _settings(options: argparse.Namespace, program: Program) -> Settings:
    """What and where to record, checked before the program starts."""
    from memboard.collector.config import load
    from memboard.collector.config.layers import from_assignments
    from memboard.collector.config.settings import check_code
    from memboard.collector.errors import ConfigError
    from memboard.collector.process.rank import identify
    from memboard.collector.process.run_dir import run_dir_of
    from memboard.collector.running.session import Settings

    try:
        keywords = from_assignments(options.settings, "--set")
        config = load(options.config, **keywords)
        check_code(config)
        logdir = run_dir_of(options.logdir)
    except ConfigError as error:
        raise Failure(str(error)) from error
    run_name = options.name or program.name
    if os.sep in run_name or run_name in {"", ".", ".."}:
        raise UsageError(
            f"--name is {run_name!r}: give one folder's name; where runs lie is --logdir"
        )
    alone = identify(config).world_size == 1 and options.name is None
    run_dir = free_run_dir(logdir, run_name) if alone else logdir / run_name
    return Settings(run_dir=run_dir, config=options.config, keywords=keywords)
