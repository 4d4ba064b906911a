"""Options that several verbs have, and types of their values."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from tb_plugin.rank_set import RankSet

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)
_EXPONENT: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_MAX_BYTES: Final = 1 << 48
_MAX_PORT: Final = 65535


def whole_number(
    low: int, high: int | None = None, remedy: str = ""
) -> Callable[[str], int]:
    """The type of an option that takes a number in a range; both ends belong to it."""
    expected = f"{low} or more" if high is None else f"a number from {low} to {high}"

    def parse(text: str) -> int:
        if text.removeprefix("-").isdecimal():
            number = int(text)
            if low <= number and (high is None or number <= high):
                return number
        raise argparse.ArgumentTypeError(
            f"{text!r} was given: give {remedy or expected}"
        )

    return parse


port: Final = whole_number(0, _MAX_PORT, "a port from 1 to 65535, or 0 for a free one")
positive: Final = whole_number(1)


def size_in_bytes(text: str) -> int:
    """Bytes of `80GiB`, `79.15 GiB`, `800MB`, `85899345920`."""
    match = _SIZE.fullmatch(text.strip())
    if match is not None:
        base = 1024 if match[3] else 1000
        size = int(float(match[1]) * base ** _EXPONENT[match[2].lower()])
        if 0 < size <= _MAX_BYTES:
            return size
    raise argparse.ArgumentTypeError(f"{text!r} is not a size: write it like 80GiB")


def rank_set(text: str) -> RankSet:
    """Ranks as in `0-7,64`."""
    try:
        return RankSet.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a set of ranks: write ranks and ranges of ranks as in"
            f" 0-7,64"
        ) from None


def add_run(parser: argparse.ArgumentParser, what: str) -> None:
    """`--run NAME`, as `name`; `what` it chooses."""
    parser.add_argument("--run", dest="name", metavar="NAME", help=what)


def add_wait(parser: argparse.ArgumentParser) -> None:
    """`--wait SECONDS`, 0 by default."""
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="longest wait for all ranks' recordings to end",
    )


def add_capacity(parser: argparse.ArgumentParser) -> None:
    """`--capacity SIZE`, for verbs that judge snapshots."""
    parser.add_argument(
        "--capacity",
        type=size_in_bytes,
        metavar="SIZE",
        help="memory of the device, such as 80GiB, for files that do not record it",
    )
