"""Options of `memboard run` on a virtual GPU, and the request that they make."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from memboard.collector.cli.failure import UsageError
from memboard.collector.errors import nearest_of
from memboard.collector.virtual.devices import DEVICES, Device, parse_device
from memboard.tb_plugin.cli.options import positive, rank_set, size_in_bytes
from memboard.tb_plugin.cli.prediction.ranks import DEFAULT_PER_HOST, Ranks
from memboard.tb_plugin.rank_set import RankSet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from memboard.collector.running.program import Program
    from memboard.collector.running.session import Settings

WARM_UP_STEPS: Final = 1
"""Before those of `--steps`: optimizers make their states in the first one."""

_LARGEST: Final = re.compile(r"([^=]+)(?:=([1-9]\d*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One program on one kind of device."""

    program: Program
    device: Device
    python: str
    run_dir: Path
    ranks: Ranks = field(default_factory=Ranks)
    num_devices: int = 1
    steps: int = 2
    """Beside the one to warm up."""
    timeout_seconds: float = 600.0
    alloc_conf: str = ""
    config: tuple[Path, ...] | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the program's environment, beside the caller's own."""
    outside_bytes: int | None = None
    is_verbose: bool = False
    is_quiet: bool = False
    """Whether what the program prints is kept from the terminal."""


class _Help(argparse.Action):
    """Prints the help: options that need `--on` only where it stands before."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: object
    ) -> NoReturn:
        if namespace.on is None:
            for action in namespace.need_device:
                action.help = argparse.SUPPRESS
        parser.print_help()
        parser.exit()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--on`, and the options that need it."""
    parser.add_argument(
        "-h", "--help", action=_Help, nargs=0, help="show this help message and exit"
    )
    group = parser.add_argument_group(
        "on a virtual GPU (needs torch's CUDA build, but no GPU and no driver)"
    )
    need_device: list[argparse.Action] = []

    def add(flag: str, metavar: str, text: str, **more: Any) -> None:
        action = group.add_argument(flag, metavar=metavar, help=text, **more)
        need_device.append(action)

    group.add_argument(
        "--on",
        type=_device,
        metavar="GPU",
        help="h100, a100-40gb, rtx4090 ..., or memory and compute capability: 24GiB,8.9;"
        " --on GPU --help lists its options",
    )
    add("--steps", "N", "steps after one to warm up (2)", type=positive, default=2)
    add("--timeout", "S", "seconds of a process (600)", type=_seconds, default=600.0)
    add("--alloc-conf", "SETTINGS", "PYTORCH_CUDA_ALLOC_CONF", default="")
    add("--world-size", "N", "run single ranks of a job of N", type=positive)
    add("--ranks", "RANKS", "which of them, as in 0,7,60-63 (0)", type=rank_set)
    add("--nproc", "N", "run all ranks of a job of N at once", type=positive)
    add("--per-host", "N", f"ranks of a host ({DEFAULT_PER_HOST})", type=positive)
    add("--devices", "N", "devices that a process sees", type=positive)
    add(
        "--sweep",
        "NAME=V1,V2",
        "try values in place of {NAME} in arguments, --env and --alloc-conf",
        type=_pair,
    )
    add("--largest", "NAME[=START]", "find the largest number that fits", type=_start)
    add(
        "--env",
        "NAME=VALUE",
        "a variable of the program's environment",
        action="append",
        default=[],
        type=_pair,
    )
    add(
        "--outside",
        "SIZE",
        "memory outside of torch's allocator, as measured on a real device",
        type=size_in_bytes,
    )
    add("--python", "PATH", "the Python with torch's CUDA build", type=_python)
    flags = (
        ("--json", "the answer as JSON"),
        ("--verbose", "also list unanswered calls of NVIDIA's libraries"),
    )
    for flag, text in flags:
        need_device.append(group.add_argument(flag, action="store_true", help=text))
    parser.set_defaults(need_device=need_device)


def check_absent(options: argparse.Namespace) -> None:
    """Refuse options that need `--on`.

    Raises:
        UsageError: names the first one.
    """
    for action in options.need_device:
        if getattr(options, action.dest) != action.default:
            raise UsageError(
                f"{action.option_strings[0]} was given without --on: name a virtual device"
                " with --on, such as --on h100"
            )


def request_of(
    options: argparse.Namespace, program: Program, settings: Settings
) -> Request:
    """The request that options make.

    Raises:
        UsageError: options contradict each other.
    """
    if options.sweep is not None and options.largest is not None:
        raise UsageError("--sweep was given with --largest: give one of them")
    ranks = _ranks(options)
    return Request(
        program=program,
        device=options.on,
        python=options.python or sys.executable,
        run_dir=settings.run_dir,
        ranks=ranks,
        num_devices=options.devices or ranks.per_host,
        steps=options.steps,
        timeout_seconds=options.timeout,
        alloc_conf=options.alloc_conf,
        config=None if settings.config is None else tuple(settings.config),
        keywords=settings.keywords,
        variables=dict(options.env),
        outside_bytes=options.outside,
        is_verbose=options.verbose,
    )


def _ranks(options: argparse.Namespace) -> Ranks:
    if options.nproc is not None and (options.world_size or options.ranks):
        raise UsageError(
            "--nproc was given with --world-size or --ranks: --nproc runs every rank of a"
            " job; --world-size and --ranks run some ranks of a larger one"
        )
    if options.ranks is not None and options.world_size is None:
        raise UsageError(
            "--ranks was given without --world-size: give the number of ranks of the job,"
            " as in --world-size 64 --ranks 0,63"
        )
    size = options.nproc or options.world_size
    if size is None:
        return Ranks()
    if options.nproc is not None:
        return Ranks("all", size, options.per_host or size, tuple(range(size)))
    ranks = RankSet.parse("0") if options.ranks is None else options.ranks
    if max((high for _, high in ranks.ranges), default=size) >= size:
        raise UsageError(f"--ranks: ranks are 0 to {size - 1}")
    chosen = dict.fromkeys(ranks)
    per_host = min(options.per_host or DEFAULT_PER_HOST, size)
    return Ranks("lone", size, per_host, tuple(chosen))


def _device(text: str) -> Device:
    try:
        return parse_device(text)
    except ValueError as error:
        near = nearest_of(text.lower(), DEVICES)
        question = f" (did you mean {near}?)" if near else ""
        raise argparse.ArgumentTypeError(f"{error}{question}") from error


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text} was given: give seconds above 0")
    return seconds


def _pair(text: str) -> tuple[str, str]:
    variable, _, value = text.partition("=")
    if not variable or not value:
        raise argparse.ArgumentTypeError(f"{text!r} was given: write NAME=VALUE")
    return variable, value


def _start(text: str) -> tuple[str, int]:
    match = _LARGEST.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} was given: write NAME, or NAME=START with a number from 1 on"
        )
    return match[1], int(match[2] or 1)


def _python(text: str) -> str:
    executable = shutil.which(text)
    if executable is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be run: give the path of a Python with torch's CUDA build"
        )
    return executable
