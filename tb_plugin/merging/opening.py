"""Files that are merged, on a disk or at a store: found, placed and opened.

Paths are texts; those of a store that was mounted are URLs. There everything waits until
the store has answered, or refused (`StorageError`).
"""

from __future__ import annotations

import stat
from typing import IO, TYPE_CHECKING, TypeAlias

from tb_plugin import storage

if TYPE_CHECKING:
    import os

    from tb_plugin.storage.contract import Entry

AnyPath: TypeAlias = "str | os.PathLike[str]"


def opened(path: str) -> IO[bytes]:
    """A plain file, to be read; links are followed.

    Raises:
        OSError: it cannot be opened.
    """
    return storage.at(path).open(real(path))[0]


def real(path: str) -> str:
    """The path without links and `..`."""
    return storage.at(path).realpath(path)


def is_file(path: str) -> bool:
    """Whether there is a plain file.

    Raises:
        StorageError: its store does not say.
    """
    return stat.S_ISREG(_mode(path))


def is_folder(path: str) -> bool:
    """Whether a path leads to a directory.

    Raises:
        StorageError: its store does not say.
    """
    return stat.S_ISDIR(_mode(path))


def _mode(path: str) -> int:
    """What a path leads to, as `stat` has it; 0: to nothing that can be looked at."""
    try:
        return storage.at(path).lstat(real(path)).st_mode
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
        return 0


def is_inside(path: str, root: str) -> bool:
    """Whether a path leads to somewhere below a folder; `root` is free of links."""
    return storage.is_inside(real(path), root)


def entries_in(folder: str) -> list[Entry]:
    """What a folder holds, by name; nothing where it cannot be listed.

    Raises:
        StorageError: its store refuses.
    """
    try:
        with storage.at(folder).scandir(folder) as listed:
            return sorted(listed, key=lambda entry: entry.name)
    except storage.StorageError:
        raise
    except OSError:
        return []
