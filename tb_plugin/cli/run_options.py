"""Options that commands about a run have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


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
        help="wait so long for all ranks' recordings to end",
    )
