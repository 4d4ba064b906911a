"""The options of `memboard run` that need a virtual GPU, and the request they make."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from collector.cli.failure import Failure
from collector.cli.prediction.request import Request, device_of, size_of

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
        "--devices",
        type=int,
        metavar="N",
        help="devices that a process sees (default: 1, or one of each process of a host)",
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
        num_devices=options.devices or 1,
        steps=options.steps,
        timeout_seconds=options.timeout,
        alloc_conf=options.alloc_conf,
        config=None if settings.config is None else tuple(settings.config),
        keywords=settings.keywords,
        outside_bytes=outside,
        is_verbose=options.verbose,
    )


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
