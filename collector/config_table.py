"""The settings as a Markdown table, made from the dataclass and its docstrings.

The README holds it between two markers; a test fails when it is out of date.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector import config
from collector.config_checks import written
from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

BEGIN: Final = "<!-- config:begin -->"
END: Final = "<!-- config:end -->"

_HEAD: Final = (
    "| key | what it may be | default | environment variable | meaning |",
    "|---|---|---|---|---|",
)


def markdown() -> str:
    """The table of every key, in the order of `RecordConfig`, without a last newline."""
    rows = []
    for path, setting in config.settings().items():
        cells = (
            f"`{path}`",
            setting.expected,
            f"`{written(setting.default)}`",
            f"`{config.variable(path)}`",
            _meaning(path, setting.default),
        )
        rows.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    return "\n".join([*_HEAD, *rows])


def _meaning(path: str, default: object) -> str:
    """What a key does, with the short form where it has one."""
    name, _, leaf = path.partition(".")
    own = meanings(config.RecordConfig)[name]
    if not leaf:
        return own
    section: type = type(config.sections()[name])
    meaning = meanings(section)[leaf]
    timed = section is config.SourceConfig
    if leaf == "enabled":
        short = f"{own if timed else meaning} Short: `{name}: {written(not default)}`"
        return short if default else f"{short}; so it is where its other keys are given"
    if leaf == "url":
        return f"{meaning} Short: `{name}: s3://bucket/{{run_name}}`"
    if timed:
        return f"{meaning} Short: `{name}: {default:g}`"
    return meaning


@cache
def meanings(owner: type) -> dict[str, str]:
    """The docstring under each field of a dataclass, as one line."""
    (definition,) = ast.parse(inspect.getsource(owner)).body
    if not isinstance(definition, ast.ClassDef):
        raise TypeError(f"{owner!r} is not a class")
    found = {}
    for item, after in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(item, ast.AnnAssign)
            and isinstance(item.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            found[item.target.id] = " ".join(str(after.value.value).split())
    return found


def replaced(text: str) -> str:
    """`text` with the table between its markers made anew.

    Raises:
        ConfigError: the markers are not there, once each and in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in after or END in after:
        raise ConfigError(f"put the lines {BEGIN} and {END} where the table belongs")
    return f"{before}{BEGIN}\n{markdown()}\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m collector.config --markdown | --write FILE`."""
    parser = argparse.ArgumentParser(
        prog="python -m collector.config", description="Lists every setting."
    )
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--markdown", action="store_true", help="print the table")
    choice.add_argument(
        "--write", type=Path, metavar="FILE", help="renew it between its markers"
    )
    options = parser.parse_args(arguments)
    if options.markdown:
        sys.stdout.write(markdown() + "\n")
        return 0
    try:
        text = options.write.read_text(encoding="utf-8")
        options.write.write_text(replaced(text), encoding="utf-8")
    except (OSError, ConfigError) as error:
        parser.error(f"{options.write}: {error}")
    return 0
