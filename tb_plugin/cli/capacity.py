"""The option `--capacity`: how large the devices are, where no file says it."""

from __future__ import annotations

import argparse
import re
from typing import Final

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B|B)?", re.IGNORECASE)
_EXPONENT: Final = {"k": 1, "m": 2, "g": 3, "t": 4}
_MOST: Final = 1 << 48


def add_capacity(parser: argparse.ArgumentParser) -> None:
    """Add the option to a verb that judges snapshots."""
    parser.add_argument(
        "--capacity",
        type=size_in_bytes,
        metavar="SIZE",
        help="memory of the device, e.g. 80GiB, for verdicts about files that do not"
        " record it",
    )


def size_in_bytes(text: str) -> int:
    """Bytes of `80GiB`, `79.15 GiB`, `85899345920`.

    Raises:
        ArgumentTypeError: it is no size, or none that a device can have.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is not None:
        unit = (match[2] or "B").lower()
        base = 1024 if "i" in unit else 1000
        size = int(float(match[1]) * base ** _EXPONENT.get(unit[0], 0))
        if 0 < size <= _MOST:
            return size
    raise argparse.ArgumentTypeError(
        f"{text!r} is no size of a device: write it like 80GiB"
    )
