"""Traces and what belongs to them as files: whole or not at all, under a name of their own.

A file is written beside its place under another name and put there when it is complete,
so that a killed process leaves none that breaks off. torch itself says nothing of a full
disk: what it wrote is looked at before it gets its name.
"""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.config.templates import key_of
from memboard.collector.format.sizes import counted
from memboard.collector.process.whole_file import PART, begun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

GZIP_LEVEL: Final = 4
"""Four fifths of the default's size reduction cost a third of its time."""

_CHUNK_BYTES: Final = 2**20
_TAIL_BYTES: Final = 64


def place_of(folder: Path, template: str, values: Mapping[str, object]) -> Path:
    """Where a file goes: below `folder`, without leaving it."""
    return folder.joinpath(*key_of(template, values).split("/"))


def free_name(path: Path, is_taken: Callable[[Path], bool]) -> Path:
    """The path, or with the first number before its endings under which it is free."""
    stem, dot, endings = path.name.partition(".pt.trace.json")
    if not dot:
        stem, dot, endings = path.name.partition(".")
    candidate, number = path, 1
    while is_taken(candidate):
        number += 1
        candidate = path.with_name(f"{stem}-{number}{dot}{endings}")
    return candidate


def write_trace(profile: Any, path: Path, *, compress: bool) -> int:
    """Have torch write a stopped profiler's trace; its bytes before they were packed.

    Raises:
        OSError: it could not be written whole; nothing is left of it.
    """
    with _complete_only(path) as part:
        part.touch()  # torch would fail silently where this raises
        profile.export_chrome_trace(str(part))
        num_bytes = _check_whole(part)
        if compress:
            packed = part.with_name(part.name + ".gz" + PART)
            try:
                _pack(part, packed)
                os.replace(packed, part)  # noqa: PTH105  # the same in fewer steps
            finally:
                packed.unlink(missing_ok=True)
    return num_bytes


def write_text(text: str, path: Path, *, compress: bool = False) -> None:
    """Write a text file.

    Raises:
        OSError: it could not be written whole; nothing is left of it.
    """
    with _complete_only(path) as part:
        if compress:
            with gzip.open(
                part, "wt", compresslevel=GZIP_LEVEL, encoding="utf-8"
            ) as file:
                file.write(text)
        else:
            part.write_text(text, encoding="utf-8")


@contextmanager
def _complete_only(path: Path) -> Iterator[Path]:
    """Where to write; afterwards it has the name, or is gone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with begun(path) as part:
        try:
            yield part
        finally:
            Path(f"{part}.tmp").unlink(missing_ok=True)  # torch's own, where it failed


def _pack(plain: Path, packed: Path) -> None:
    with (
        plain.open("rb") as source,
        gzip.open(packed, "wb", compresslevel=GZIP_LEVEL) as target,
    ):
        shutil.copyfileobj(source, target, _CHUNK_BYTES)


def _check_whole(part: Path) -> int:
    # Its bytes
    size = part.stat().st_size
    with part.open("rb") as file:
        file.seek(max(0, size - _TAIL_BYTES))
        if file.read().rstrip().endswith(b"}"):
            return size
    free = shutil.disk_usage(part.parent).free
    if free < max(size, _CHUNK_BYTES):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(part))
    raise OSError(
        errno.EIO, f"torch wrote {counted(size, 'byte')} that break off", str(part)
    )
