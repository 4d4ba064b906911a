"""The parser of the command line, options that several verbs have, types of values."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Final

from memboard.collector.errors import nearest_of
from memboard.tb_plugin.rank_set import RankSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)
_EXPONENT: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_MAX_BYTES: Final = 1 << 48
_MIN_CAPACITY: Final = 1 << 20
"""Less is no device's memory: a unit is missing."""
_MAX_PORT: Final = 65535
_LIKENESS: Final = 0.6
"""Of a word to the one that was meant."""
_REST: Final = (argparse.PARSER, argparse.REMAINDER)
"""Numbers of arguments that leave no options behind them."""
_NOT_OPTIONS: Final = re.compile(r"-|--|-\d+|-\d*\.\d+")


class Parser(argparse.ArgumentParser):
    """Refuses what is misspelt with the likest word, below the usage of its own verb.

    argparse leaves unknown options to the parser above, which knows another usage, and
    names them after the arguments that are missing.
    """

    def parse_known_args(  # type: ignore[override]  # argparse's is overloaded
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse `args`; nothing is left over."""
        command_line = sys.argv[1:] if args is None else list(args)
        option = self._unknown_option(command_line)
        if option:
            options = [name for name in self._option_string_actions if name[:2] == "--"]
            # The dashes are alike in all.
            names = {option[2:]: option for option in options}
            near = nearest_of(option.lstrip("-"), names, _LIKENESS)
            question = f": did you mean {names[near]}?" if near else ""
            self.error(f"there is no option {option}{question}")
        parsed, left = super().parse_known_args(command_line, namespace)
        if left:
            self.error(f"too many arguments: {' '.join(left)}")
        return parsed, []

    def _unknown_option(self, command_line: Sequence[str]) -> str:
        """The first option of no such name, before a verb, a program or `--`."""
        option_by_name = self._option_string_actions
        takes_rest = any(
            not action.option_strings and action.nargs in _REST
            for action in self._actions
        )
        is_value = False
        for word in command_line:
            option_name = word.partition("=")[0]
            if is_value or not word.startswith("-") or _NOT_OPTIONS.fullmatch(word):
                if word == "--" or (takes_rest and not is_value):
                    break
                is_value = False
                continue
            option = option_by_name.get(
                option_name if option_name.startswith("--") else word[:2]
            )
            if option is None:
                return option_name
            if option.nargs in _REST:
                break
            is_value = option.nargs is None and word in option.option_strings
        return ""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        choices = list(map(str, action.choices or ()))
        if not choices or value in choices:
            return
        near = nearest_of(str(value).lower(), choices, _LIKENESS)
        remedy = (
            f"did you mean {near}?" if near else f"choose from {', '.join(choices)}"
        )
        kind = str(action.metavar or action.dest).lower()
        raise argparse.ArgumentError(None, f"there is no {kind} {value!r}: {remedy}")


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


def capacity_in_bytes(text: str) -> int:
    """The memory of a device, such as `80GiB`."""
    size = size_in_bytes(text)
    if size < _MIN_CAPACITY:
        raise argparse.ArgumentTypeError(
            f"{text!r} is {size:,} bytes, and no device's memory: write it like 80GiB"
        )
    return size


def rank_set(text: str) -> RankSet:
    # Ranks as in `0-7,64`
    try:
        return RankSet.parse(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a set of ranks: write ranks and ranges of ranks as in"
            f" 0-7,64"
        ) from None


def add_run(parser: argparse.ArgumentParser, help_text: str) -> None:
    """`--run NAME`, as `name`; `help_text`: what it chooses."""
    parser.add_argument("--run", dest="name", metavar="NAME", help=help_text)


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
        type=capacity_in_bytes,
        metavar="SIZE",
        help="memory of the device, such as 80GiB, for files that do not record it",
    )
