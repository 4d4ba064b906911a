"""The options of `memboard run` that need a virtual GPU, and the request they make."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from collector.cli.failure import Failure
from tb_plugin.cli.prediction.ranks import DEFAULT_PER_HOST, Ranks, parse_ranks
from tb_plugin.cli.prediction.request import Request, device_of, size_of

if TYPE_CHECKING:
    from collector.running.program import Program
    from collector.running.session import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may stand beside `--on`, and it itself."""
    group = parser.add_argument_group(
        "on a virtual GPU",
        "These need torch's CUDA build, and neither a GPU nor a driver.",
    )
    group.add_argument(
        "--on",
        metavar="GPU",
        help="run on this virtual device: h100, a100-40gb, rtx4090 ..., or any, as"
        " 24GiB,8.9 (memory and compute capability)",
    )
    group.add_argument(
        "--steps",
        type=int,
        default=2,
        metavar="N",
        help="steps to run after one to warm up (default: %(default)s)",
    )
    group.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="S",
        help="seconds a process may take (default: %(default)g)",
    )
    group.add_argument(
        "--alloc-conf",
        default="",
        metavar="SETTINGS",
        help="torch's PYTORCH_CUDA_ALLOC_CONF, such as expandable_segments:True",
    )
    group.add_argument(
        "--world-size",
        type=int,
        metavar="N",
        help="run single ranks of a job of N, one after the other; the others need not run",
    )
    group.add_argument(
        "--ranks",
        metavar="RANKS",
        help="which of them, as in 0,7,60-63 (default: 0)",
    )
    group.add_argument(
        "--nproc",
        type=int,
        metavar="N",
        help="run a job of N ranks, all of them at the same time",
    )
    group.add_argument(
        "--per-host",
        type=int,
        metavar="N",
        help=f"ranks of a host (default: all up to {DEFAULT_PER_HOST})",
    )
    group.add_argument(
        "--devices",
        type=int,
        metavar="N",
        help="devices that a process sees (default: 1, or one of each process of a host)",
    )
    group.add_argument(
        "--sweep",
        metavar="NAME=V1,V2",
        help="one prediction for each value, which takes the place of {NAME} in the"
        " program's arguments, in --env and in --alloc-conf: --sweep batch=1,2,4 train.py"
        " --batch-size {batch}",
    )
    group.add_argument(
        "--largest",
        metavar="NAME[=START]",
        help="find the largest whole number in place of {NAME} that fits",
    )
    group.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of the program's environment",
    )
    group.add_argument(
        "--outside",
        metavar="SIZE",
        help="what lies outside of torch's allocator on the real device, where it was"
        " measured (1.2GiB); takes the place of all estimates",
    )
    group.add_argument(
        "--python",
        metavar="PATH",
        help="the Python that has torch's CUDA build (default: this one)",
    )
    group.add_argument("--json", action="store_true", help="the answer as JSON")
    group.add_argument(
        "--verbose",
        action="store_true",
        help="also list the calls of NVIDIA's libraries that nothing answered",
    )


def check_absent(options: argparse.Namespace) -> None:
    """Refuse what needs `--on`, where that is not given.

    Raises:
        Failure: names the option.
    """
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for action in parser._actions:  # noqa: SLF001  # there is no other way to list them
        given = getattr(options, action.dest, action.default)
        if action.dest not in {"help", "on"} and given != action.default:
            flag = action.option_strings[0]
            raise Failure(
                f"{flag} was given without --on",
                remedy="Name a virtual device with --on, such as --on h100.",
                code=2,
            )


def request_of(
    options: argparse.Namespace, program: Program, settings: Settings
) -> Request:
    """What the options ask for.

    Raises:
        Failure: an option cannot be right.
    """
    if options.steps < 1:
        raise Failure(
            f"--steps is {options.steps}", remedy="Give 1 step or more.", code=2
        )
    if not options.timeout > 0:
        raise Failure(
            f"--timeout is {options.timeout:g}", remedy="Give seconds above 0.", code=2
        )
    ranks = _ranks(options)
    outside = None
    if options.outside is not None:
        try:
            outside = size_of(options.outside)
        except ValueError as error:
            raise Failure(f"--outside: {error}", code=2) from error
    return Request(
        program=program,
        device=device_of(options.on),
        python=_python(options.python),
        run_dir=settings.run_dir,
        ranks=ranks,
        num_devices=options.devices or ranks.per_host,
        steps=options.steps,
        timeout_seconds=options.timeout,
        alloc_conf=options.alloc_conf,
        config=None if settings.config is None else tuple(settings.config),
        keywords=settings.keywords,
        variables=dict(_pair(text, "--env") for text in options.env),
        outside_bytes=outside,
        is_verbose=options.verbose,
    )


def run(options: argparse.Namespace, request: Request) -> int:
    """Predict what is requested, once or for several values; returns the exit code.

    Raises:
        Failure: the values cannot be right, or there can be no virtual device.
    """
    from tb_plugin.cli.prediction.answer import EXIT_CODES
    from tb_plugin.cli.prediction.predicting import predict, say

    if options.sweep is None and options.largest is None:
        return predict(request, json_wanted=options.json)
    from tb_plugin.cli.prediction import sweep

    if options.sweep is not None and options.largest is not None:
        raise Failure("--sweep was given with --largest", remedy="Give one.", code=2)
    if options.sweep is not None:
        name, values = _pair(options.sweep, "--sweep")
        tried = sweep.swept(request, name, values.split(","))
    else:
        name, start = _start(options.largest)
        tried = sweep.largest(request, name, start)
    if options.json:
        say(sweep.to_json(request, name, tried))
    else:
        say(sweep.as_text(request, name, tried))
        if options.largest is not None:
            say([sweep.largest_text(name, tried)])
    return EXIT_CODES[sweep.best(tried)]


def _pair(text: str, flag: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise Failure(f"{flag} is {text!r}", remedy=f"Write {flag} NAME=VALUE.", code=2)
    return name, value


def _start(text: str) -> tuple[str, int]:
    name, _, start = text.partition("=")
    if not name or not (start or "1").isdecimal() or int(start or 1) < 1:
        raise Failure(
            f"--largest is {text!r}",
            remedy="Write --largest NAME, or NAME=START with a number from 1 on.",
            code=2,
        )
    return name, int(start or 1)


def _ranks(options: argparse.Namespace) -> Ranks:
    """The ranks that are to run.

    Raises:
        Failure: the numbers cannot be right.
    """
    for name in ("world_size", "nproc", "per_host", "devices"):
        value = getattr(options, name)
        if value is not None and value < 1:
            flag = f"--{name.replace('_', '-')}"
            raise Failure(f"{flag} is {value}", remedy="Give 1 or more.", code=2)
    if options.nproc is not None and (options.world_size or options.ranks):
        raise Failure(
            "--nproc was given with --world-size or --ranks",
            remedy="--nproc runs every rank of a job; --world-size and --ranks run some"
            " ranks of a larger one.",
            code=2,
        )
    if options.ranks is not None and options.world_size is None:
        raise Failure(
            "--ranks was given without --world-size",
            remedy="Say how many ranks the job has: --world-size 64 --ranks 0,63",
            code=2,
        )
    size = options.nproc or options.world_size
    if size is None:
        return Ranks()
    per_host = min(options.per_host or DEFAULT_PER_HOST, size)
    if options.nproc is not None:
        return Ranks("all", size, options.per_host or size, tuple(range(size)))
    try:
        chosen = parse_ranks(options.ranks or "0", size)
    except ValueError as error:
        raise Failure(f"--ranks: {error}", code=2) from error
    return Ranks("lone", size, per_host, chosen)


def _python(named: str | None) -> str:
    if named is None:
        return sys.executable
    found = shutil.which(named)
    if found is None:
        raise Failure(
            f"--python is {named!r}, which cannot be run",
            remedy="Give the path of a Python that has torch's CUDA build.",
            code=2,
        )
    return found
