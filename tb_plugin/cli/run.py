"""Record any PyTorch program as it is; no line of it changes.

    memboard run train.py --lr 3e-4
    memboard run --set history=true -m package.train --lr 3e-4
    torchrun --nproc-per-node 4 --no-python memboard run train.py

Options of ours stand before the program, all that comes after it is the program's. It runs
in this process as Python would run it: arguments, exit code, exceptions and what it prints
are its own. A step is one iteration: an `optimizer.step()`, or one of each optimizer.
Programs that record themselves, or whose trainer does, are left to do so.

The run lies in LOGDIR/NAME; where that is taken, in NAME-2. The ranks of a launcher share
NAME, and each start of theirs is another attempt of it.

    memboard run --on h100 train.py

asks whether it would fit: torch's own allocator runs on a virtual H100, without GPU or
driver, for one step to warm up and two more. The answer is a peak, what is estimated beside
it, and one of: fits (exit code 0), does not fit (1), too close to say (3). Where nothing
can be said the exit code is 2.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from collector.core.run_dir import free_run_dir
from tb_plugin.cli.prediction import options as prediction

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from collector.running.program import Program
    from collector.running.session import Settings

HELP = "record a program as it is"

DEFAULT_LOGDIR: Final = "memboard-runs"

_LAUNCHERS: Final = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "torchrun"}
)
"""Programs that start the ranks, and train nothing themselves."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard run`."""
    parser.usage = "memboard run [options] (SCRIPT | -m MODULE) [arguments]"
    parser.add_argument(
        "--logdir",
        type=Path,
        default=Path(DEFAULT_LOGDIR),
        metavar="DIR",
        help="where runs lie, for tensorboard --logdir (default: %(default)s)",
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
        help="a setting, such as history=true or schedule.active=2; wins over all others",
    )
    parser.add_argument(
        "--config",
        action="append",
        type=Path,
        metavar="FILE",
        help="a YAML file of settings; of several, a later one wins",
    )
    prediction.add_arguments(parser)
    parser.add_argument(
        "-m",
        dest="module",
        nargs="...",
        metavar="MODULE",
        help="run a module, as python -m does; all that follows is its own",
    )
    parser.add_argument("program", nargs="...", metavar="SCRIPT", help="what to run")


def run(options: argparse.Namespace) -> int | Callable[[], int]:
    """Do what the options ask; what is to run in this process comes back."""
    program = _program(options)
    settings = _settings(options, program)
    if options.on is not None:
        request = prediction.request_of(options, program, settings)
        return prediction.run(options, request)
    prediction.check_absent(options)

    def start() -> int:
        from collector.running import program as running
        from collector.running.session import Session

        session = Session(settings)
        session.watch()
        try:
            running.run(program)
        finally:
            session.finish()
        return 0

    return start


def _program(options: argparse.Namespace) -> Program:
    from collector.running.program import parse

    is_module = options.module is not None
    words = options.module if is_module else options.program
    if words and words[0] == "--":
        words = words[1:]
    program = parse(words, is_module=is_module)
    if program is None:
        raise Failure(
            "there is no program to run",
            remedy="Name a script, or a module behind -m: memboard run train.py",
            code=2,
        )
    if not is_module and not os.access(program.target, os.R_OK):
        is_there = Path(program.target).exists()
        raise Failure(
            f"the program cannot be {'read' if is_there else 'found'}",
            where=program.target,
            remedy="Give the script's path; a module is named behind -m.",
            code=2,
        )
    if program.target in _LAUNCHERS or Path(program.target).name in _LAUNCHERS:
        raise Failure(
            "a launcher trains nothing itself",
            where=program.target,
            remedy="Have it start us on every rank:"
            " torchrun --nproc-per-node 4 --no-python memboard run train.py",
            code=2,
        )
    return program


def _settings(options: argparse.Namespace, program: Program) -> Settings:
    """What and where to record, checked before the program starts.

    Raises:
        Failure: a setting cannot be right, or the logdir is no directory.
    """
    from collector.config import load
    from collector.config.layers import from_assignments
    from collector.config.settings import check_code
    from collector.core.rank import identify
    from collector.core.run_dir import run_dir_of
    from collector.errors import ConfigError
    from collector.running.session import Settings

    try:
        keywords = from_assignments(options.settings, "--set")
        config = load(options.config, **keywords)
        check_code(config)
        logdir = run_dir_of(options.logdir)
    except ConfigError as error:
        raise Failure(str(error), code=2) from error
    name = options.name or program.name
    if os.sep in name or name in {"", ".", ".."}:
        raise Failure(
            f"--name is {name!r}",
            remedy="Give one folder's name; where runs lie is --logdir.",
            code=2,
        )
    alone = identify(config).world_size == 1 and options.name is None
    run_dir = free_run_dir(logdir, name) if alone else logdir / name
    return Settings(run_dir=run_dir, config=options.config, keywords=keywords)
