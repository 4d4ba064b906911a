"""`memboard <verb>`: one module per verb, each loading what it needs when it runs.

A verb is a module, named in `VERBS`, with `HELP`, `add_arguments(parser)` and `run(options) -> exit code`.
One that runs a program of the user's in this process returns a function for it, which is
called when nothing of ours is left to be in its way.
What goes wrong in a way the user can mend is a `Failure`: three lines, no traceback.

Exit codes: 0 done, 1 failed, 2 wrong arguments or files, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VERBS: Final = {
    "demo": "collector.cli.demo",
    "run": "tb_plugin.cli.run",
    "open": "tb_plugin.cli.open_files",
    "import": "tb_plugin.cli.bring.files",
    "export": "tb_plugin.cli.export.command",
    "index": "tb_plugin.cli.index_runs",
    "merge": "tb_plugin.cli.merge",
    "report": "tb_plugin.cli.report.command",
    "import-config": "collector.cli.import_config",
}
"""The module of each: those that record are the collector's, those that read ours."""

INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; `arguments` default to the command line's. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="memboard",
        description="See what filled your GPUs, on every rank, after the crash too.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="verb", required=True)
    for name, module in VERBS.items():
        verb = import_module(module)
        verb_parser = verbs.add_parser(
            name,
            help=verb.HELP,
            description=verb.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_arguments(verb_parser)
        verb_parser.set_defaults(run=verb.run)
    options = parser.parse_args(arguments)
    try:
        code: int | Callable[[], int] = options.run(options)
    except Failure as failure:
        print(f"memboard {options.verb}: {failure}", file=sys.stderr)
        return failure.code
    except BrokenPipeError:  # whoever read the output has enough
        # What is left must go nowhere, or the interpreter complains at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(f"\nmemboard {options.verb}: interrupted", file=sys.stderr)
        return INTERRUPTED
    return code() if callable(code) else code
