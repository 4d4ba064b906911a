"""Runs a script or a module as `__main__`, as `python train.py` and `python -m` do."""

from __future__ import annotations

import builtins
import os
import runpy
import sys
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAIN: Final = "__main__"

_kept: Final[list[Any]] = []
"""The `__main__` that was there before: a module that goes away loses its globals."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is to be run, and what it is given."""

    target: str
    """A file, a directory or zip file with a `__main__.py`, or a module's dotted name."""
    arguments: tuple[str, ...] = ()
    is_module: bool = False

    @property
    def name(self) -> str:
        """A short name: the script's without its ending, the module's last part."""
        if self.is_module:
            parts = [part for part in self.target.split(".") if part != _MAIN]
            return parts[-1] if parts else self.target
        path = Path(os.path.abspath(self.target))  # noqa: PTH100  # no link is followed
        return path.parent.name if path.stem == _MAIN else path.stem

    @property
    def words(self) -> list[str]:
        """As they stand on the command line, behind `python`."""
        flag = ["-m"] if self.is_module else []
        return [*flag, self.target, *self.arguments]


def parse(command_line: Sequence[str], *, is_module: bool) -> Program | None:
    """The program that words of a command line name; None where they name none."""
    if not command_line:
        return None
    return Program(command_line[0], tuple(command_line[1:]), is_module)


def run(program: Program) -> None:
    """Run it in this process, as the interpreter would; what it raises passes.

    The traceback of an exception that nobody catches begins in the program.

    Raises:
        OSError: the script cannot be read.
        BaseException: whatever the program raises.
    """
    _kept.append(sys.modules[_MAIN])
    code = None
    if not program.is_module and not _is_package(program.target):
        with open(program.target, "rb") as file:  # noqa: PTH123  # as Python opens it
            code = file.read()
    sys.argv[:] = [program.target, *program.arguments]
    main = sys.modules[_MAIN] = ModuleType(_MAIN)
    names = main.__dict__
    names["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    try:
        if code is None:
            _run_as_module(program)
        else:
            _run_script(program.target, code, main)
    finally:
        if not isinstance(sys.exc_info()[1], (SystemExit, type(None))):
            _hide_own_frames()


def _run_as_module(program: Program) -> None:
    run_as_main: Any = runpy._run_module_as_main  # type: ignore[attr-defined]  # noqa: SLF001
    if program.is_module:
        _put_first(os.getcwd())  # noqa: PTH109  # a text, as Python's own
        run_as_main(program.target)
    else:
        # What Python does with `python folder` and `python program.zip`.
        sys.path.insert(0, os.path.abspath(program.target))  # noqa: PTH100
        run_as_main(_MAIN, False)


def _run_script(path: str, source: bytes, main: ModuleType) -> None:
    absolute = os.path.abspath(path)  # noqa: PTH100  # a link stays one, as for Python
    _put_first(os.path.dirname(os.path.realpath(path)))  # noqa: PTH120
    names = main.__dict__
    names["__file__"] = absolute
    names["__loader__"] = SourceFileLoader(_MAIN, absolute)
    names["__package__"] = None
    names["__spec__"] = None
    if sys.version_info < (3, 15):
        names["__cached__"] = None
    # `dont_inherit`: this file's own `from __future__` must not be the program's.
    exec(compile(source, absolute, "exec", dont_inherit=True), names)  # noqa: S102


def _is_package(path: str) -> bool:
    """Whether it is a directory or a zip file, which Python runs too."""
    if os.path.isdir(path):  # noqa: PTH112
        return True
    import zipfile

    return zipfile.is_zipfile(path)


def _put_first(folder: str) -> None:
    """Put it where Python has the program's folder: in place of ours, and first."""
    if getattr(sys.flags, "safe_path", sys.flags.isolated):  # `python -P`: none
        return
    if sys.path:
        sys.path[0] = folder
    else:
        sys.path.append(folder)


def _hide_own_frames() -> None:
    """Have the exception that ends the program shown without the frames that ran it."""
    shows = sys.excepthook

    def shown(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        frames = traceback
        while frames is not None and not _is_own(frames):
            frames = frames.tb_next
        if frames is not None:
            while frames is not None and _is_own(frames):
                frames = frames.tb_next
            traceback = error.__traceback__ = (
                frames  # none, where it does not even compile
            )
        shows(kind, error, traceback)

    sys.excepthook = shown


def _is_own(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename == __file__
