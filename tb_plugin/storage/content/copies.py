"""Copies of what a store holds: files without a name, gone when they are closed."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.storage.contract import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

_PIECE: Final = 16 << 20
_SPARE_BYTES: Final = 1 << 30
"""Left free on the disk."""


def nameless_copy(num_bytes: int, fetch: Callable[[int, int], bytes]) -> IO[Any]:
    """A file of so many bytes, at its beginning; nothing is left where that fails.

    `fetch` gives those from one offset to another; whatever it raises is raised.

    Raises:
        StorageError: there is no room for it, or fewer bytes are there.
    """
    if shutil.disk_usage(tempfile.gettempdir()).free < num_bytes + _SPARE_BYTES:
        raise StorageError(
            f"There is no room for a copy of its {counted(num_bytes, 'byte')}",
            "Make room there, or point TMPDIR at another directory.",
        )
    with ExitStack() as unless_whole:
        file = unless_whole.enter_context(
            tempfile.TemporaryFile(prefix="memboard-", buffering=0)
        )
        for start in range(0, num_bytes, _PIECE):
            end = min(start + _PIECE, num_bytes)
            data = fetch(start, end)
            if len(data) < end - start:
                raise changed()
            file.write(data)
        file.seek(0)
        unless_whole.pop_all()
    return file


def changed() -> StorageError:
    """Somebody wrote to it since it was listed."""
    return StorageError(
        "It changed while it was read", "Open it again when it is written whole."
    )
