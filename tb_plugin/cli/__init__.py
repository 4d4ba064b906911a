"""The command `memboard`: one module for each verb.

A verb's module has a docstring, which is its help, `add_arguments(parser)` and
`run(options)`, which returns the exit code. One that runs a program of the user's in this
process returns a function for it, which is called when nothing of ours is in its way.

Exit codes of every verb:

0    done; what could not be read beside it is named
1    the answer is no: the program does not fit
2    wrong usage, or nothing could be read or written
3    too close to call whether the program fits
4    reported, and something was damaged or could not be read: it is named
130  interrupted
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, cast

from memboard.collector.cli.failure import Failure, UsageError
from memboard.tb_plugin.cli.options import Parser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

VERBS: Final = {
    "demo": "memboard.collector.cli.demo.command",
    "run": "memboard.tb_plugin.cli.run",
    "open": "memboard.tb_plugin.cli.open.command",
    "import": "memboard.tb_plugin.cli.import_snapshots",
    "export": "memboard.tb_plugin.cli.export.command",
    "index": "memboard.tb_plugin.cli.index",
    "merge": "memboard.tb_plugin.cli.merge",
    "report": "memboard.tb_plugin.cli.report.command",
    "import-config": "memboard.collector.cli.import_config",
    "docs": "memboard.tb_plugin.cli.docs",
    "completion": "memboard.tb_plugin.cli.completion",
}
"""The module of each: those that record are the collector's, those that read ours."""

DOCUMENTED: Final = {
    "demo": "getting-started",
    "run": "run",
    "open": "snapshots",
    "import": "snapshots",
    "export": "reports",
    "index": "stores",
    "merge": "profiler",
    "report": "reports",
    "import-config": "memprofiler",
    "docs": "index",
    "completion": "commands",
}
"""The page of the documentation about each verb."""

NOTHING_DONE: Final = 2
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; `arguments` default to the command line's. Returns the exit code."""
    command_line = sys.argv[1:] if arguments is None else list(arguments)
    parser = parser_of(*command_line[:1])
    if not command_line:
        parser.print_help(sys.stderr)
        parser.exit(NOTHING_DONE)
    options = parser.parse_args(command_line)
    try:
        code: int | Callable[[], int] = options.run(options)
        sys.stdout.flush()  # not at the interpreter's end, where nobody handles errors
    except UsageError as error:
        options.parser.error(str(error))
    except Failure as failure:
        return _failed(options.verb, failure)
    except BrokenPipeError:  # whoever read the output has enough
        # What is left must go nowhere, or the interpreter complains at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _failed(options.verb, _failure_of(error))
    except KeyboardInterrupt:
        print(f"\nmemboard {options.verb}: interrupted", file=sys.stderr)
        return INTERRUPTED
    return code() if callable(code) else code


def parser_of(*chosen: str) -> argparse.ArgumentParser:
    """The parser of the command line, with the options of the verbs `chosen`."""
    parser = Parser(
        prog="memboard",
        description="See what filled your GPUs, on every rank, after the crash too.",
        epilog="Documentation: memboard docs",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version)
    verbs = parser.add_subparsers(dest="verb", metavar="verb", required=True)
    for name, module in VERBS.items():
        spec = find_spec(module)
        assert spec is not None  # noqa: S101  # one of ours
        assert spec.origin is not None  # noqa: S101  # a file
        # The docstring alone: only the module of the chosen verb is loaded.
        text = ast.get_docstring(ast.parse(Path(spec.origin).read_bytes())) or ""
        verb_parser = verbs.add_parser(
            name,
            help=text[:1].lower() + text.partition("\n")[0][1:].rstrip("."),
            description=text,
            epilog=f"Documentation: memboard docs {DOCUMENTED[name]}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # --ste would be --steps, and not the --set that was meant
            conflict_handler="resolve",  # a verb may have a help of its own
        )
        if name in chosen:
            verb = import_module(module)
            verb.add_arguments(verb_parser)
            verb_parser.set_defaults(run=verb.run, parser=verb_parser)
    return parser


def verbs_of(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each verb."""
    (action,) = (action for action in parser._actions if action.dest == "verb")  # noqa: SLF001
    return cast("Mapping[str, argparse.ArgumentParser]", action.choices)


class _Version(argparse.Action):
    """Prints the version: it is looked up only where the option is given."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(
            option_strings, dest, nargs=0, help="show the version and exit"
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from memboard.tb_plugin import plugin_version

        print(f"memboard {plugin_version()}")
        parser.exit()


def _failed(verb: str, failure: Failure) -> int:
    from memboard.tb_plugin.cli.text import complain

    complain(verb, [failure])
    return NOTHING_DONE


def _failure_of(error: OSError) -> Failure:
    reason = str(error.strerror or error)
    remedy = "check that the path exists, may be read and written, and has room"
    return Failure(
        reason[:1].lower() + reason[1:],
        where=error.filename or "",
        remedy=getattr(error, "remedy", remedy),
    )
