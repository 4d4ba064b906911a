"""Files on a disk, or at any store that fsspec reaches; read only.

A store is known once it was mounted, which `--logdir` and the command line do and nothing
else: a path of any other is refused. Its paths are URLs without secrets, below the mounted
one, and name what was listed there.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final, TypeAlias

from memboard.tb_plugin.storage.contract import PendingError, StorageError
from memboard.tb_plugin.storage.local import LOCAL

if TYPE_CHECKING:
    from memboard.tb_plugin.storage.local import Local, LocalFile
    from memboard.tb_plugin.storage.remote import Remote, RemoteFile
    from memboard.tb_plugin.storage.urls import Url

__all__ = [
    "LOCAL",
    "PendingError",
    "Ranges",
    "Storage",
    "StorageError",
    "at",
    "is_inside",
    "is_remote",
    "mount",
    "remote_at",
]

Ranges: TypeAlias = "LocalFile | RemoteFile"
"""An open file, read piece by piece: `status()` and `pread(length, offset)`."""
Storage: TypeAlias = "Local | Remote"
"""Files at one place. Every method may raise an OSError."""

_lock: Final = threading.Lock()
_mounted: dict[str, Remote] = {}


def is_remote(path: str) -> bool:
    """Whether a path is a store's; those of a disk are absolute and hold no `://`."""
    return "://" in path and not path.startswith(os.sep)


def is_inside(path: str, root: str) -> bool:
    """Whether a path is a folder's own or below it; both absolute and free of links."""
    sep = "/" if is_remote(root) else os.sep
    return path == root or path.startswith(root.rstrip(sep) + sep)


def at(path: str) -> Storage:
    """Where a path lies.

    Raises:
        StorageError: nobody mounted it.
    """
    return remote_at(path) if is_remote(path) else LOCAL


def remote_at(path: str) -> Remote:
    """The store of a path.

    Raises:
        StorageError: nobody mounted it.
    """
    at_path = path
    while at_path not in _mounted and "/" in at_path:
        at_path = at_path.rpartition("/")[0]
    if at_path not in _mounted:
        raise StorageError(
            "This is not one of the logdirs that were named.", "Name it with --logdir."
        )
    return _mounted[at_path]


def mount(url: Url) -> Remote:
    """Make a store known by what a person wrote; asks it for nothing yet."""
    from memboard.tb_plugin.storage.remote import Remote

    with _lock:
        if url.root not in _mounted:
            _mounted[url.root] = Remote(url)
        return _mounted[url.root]
