"""Files without a name: copies of what a store holds, gone when they are closed."""

from __future__ import annotations

import shutil
import tempfile
from typing import IO, TYPE_CHECKING, Any, Final

from tb_plugin.storage.contract import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_SPARE_BYTES: Final = 1 << 30
"""Left free on the disk."""


def nameless_file(num_bytes: int, pieces: Iterable[bytes]) -> IO[Any]:
    """A file of these pieces, at its beginning; nothing is left where one raises.

    Args:
        num_bytes: how long it will be.
        pieces: asked for one by one.

    Raises:
        StorageError: there is no room for it; and whatever `pieces` raises.
    """
    if shutil.disk_usage(tempfile.gettempdir()).free < num_bytes + _SPARE_BYTES:
        raise StorageError(
            f"There is no room for a copy of its {num_bytes:,} bytes",
            "Make room there, or point TMPDIR at another directory.",
        )
    file = tempfile.TemporaryFile(prefix="memboard-", buffering=0)  # noqa: SIM115
    try:
        for piece in pieces:
            file.write(piece)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
