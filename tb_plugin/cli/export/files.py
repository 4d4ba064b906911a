"""Files written whole or not at all, and never over others that are there already."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from collector.format.names import EXPORT_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_MAX_LISTED: Final = 5
_MARK: Final = {
    "written_by": "memboard export",
    "what": "The files beside this one were made from a MemBoard recording and can be"
    " made again. TensorBoard's MemBoard tab shows the recording itself where it lies in"
    " the same logdir.",
}


class UnmadeError(Exception):
    """A file that cannot be made from the recording; the others can."""

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Planned:
    """A file to be written."""

    kind: str
    """Which option asked for it."""
    name: str
    make: Callable[[], bytes]
    """Raises UnmadeError."""
    again: Callable[[str], str] = str
    """Its name with a suffix to what tells files of its kind apart."""


def without_repeats(files: Sequence[Planned]) -> Iterator[Planned]:
    """Files of one folder; of several with one name, the later ones are numbered."""
    seen: dict[str, int] = {}
    for file in files:
        count = seen[file.name] = seen.get(file.name, 0) + 1
        yield file if count == 1 else replace(file, name=file.again(f"-{count}"))


def refuse_to_overwrite(folder: Path, files: Sequence[Planned]) -> None:
    """Nothing is written where one of the files is there already.

    Raises:
        Failure: names them.
    """
    there = [file.name for file in files if (folder / file.name).exists()]
    if there:
        more = len(there) - _MAX_LISTED
        names = ", ".join(there[:_MAX_LISTED]) + (
            f" and {more} more" if more > 0 else ""
        )
        raise Failure(
            f"files are there already, nothing was written: {names}",
            where=str(folder),
            remedy="choose another directory with -o, or add --force to replace them",
        )


def write_all(folder: Path, files: Sequence[Planned]) -> Iterator[Path | UnmadeError]:
    """Write the files one by one; yields each path when it is whole, or why it is not.

    Raises:
        Failure: one of them cannot be written; those before it are whole.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / EXPORT_MARK
        if not mark.exists():
            _write(mark, json.dumps(_MARK, indent=2).encode() + b"\n")
        for file in files:
            yield _made(folder, file)
    except OSError as error:
        raise Failure(
            f"cannot write: {error.strerror or error}",
            where=str(error.filename or folder),
            remedy="choose a directory with room that you may write to, with -o",
        ) from error


def _made(folder: Path, file: Planned) -> Path | UnmadeError:
    try:
        data = file.make()
    except UnmadeError as error:
        return error
    _write(folder / file.name, data)
    return folder / file.name


def _write(path: Path, data: bytes) -> None:
    begun = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        begun.write_bytes(data)
        begun.replace(path)
    finally:
        begun.unlink(missing_ok=True)
