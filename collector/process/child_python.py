"""Pythons that we start: none of them imports what happens to lie in the current folder.

`python -m` and `python -c` look there first. A `json.py` in a folder that somebody else
filled, and in which `memboard demo` is called, would be run.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WITHOUT_CURRENT_FOLDER: Final = """
import sys
if sys.path[:1] == [""]:
    sys.path[0] = "/dev/null"
"""
"""First in what a Python of any version is given with `-c`. The place stays, for the
folder of the program."""

_RUN_MODULE: Final = f"""{WITHOUT_CURRENT_FOLDER}
import runpy
del sys.argv[0]
runpy._run_module_as_main(sys.argv[0])
"""

SAFE_PATH: Final = {"PYTHONSAFEPATH": "1"}
"""The variable that says the same, to Python 3.11 and later."""


def own_module(module: str, *arguments: str) -> list[str]:
    """The command that runs a module in this Python, as `python -m` does elsewhere.

    Its processes of `multiprocessing` leave the current folder out as well.
    """
    python = sys.executable or "python3"
    if sys.version_info >= (3, 11):
        return [python, "-P", "-m", module, *arguments]
    return [python, "-c", _RUN_MODULE, module, *arguments]


@contextmanager
def variables_of_children(variables: Mapping[str, str]) -> Iterator[None]:
    """Have them in our environment while `multiprocessing` starts a process.

    No longer than that: threads of C libraries that read the environment may crash.
    """
    before = {variable: os.environ.get(variable) for variable in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
