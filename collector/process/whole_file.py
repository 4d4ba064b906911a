"""Files that are there whole or not at all, also where the process is killed.

Until then a file has a name of its own that nobody can guess, and is made new: a link that
somebody else has put into the folder is not written through.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PART: Final = ".part"
"""Ends the name of a file that is being written."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def begun(path: Path, folder: Path | None = None) -> Iterator[Path]:
    """Where to write, beside `path` or in `folder`; then it has the name, or is gone.

    Raises:
        OSError: there can be no such file.
    """
    part_name = f"{path.name}.{os.getpid()}.{secrets.token_hex(8)}{PART}"
    part = (folder or path.parent) / part_name
    os.close(os.open(part, _NEW, 0o666))
    try:
        yield part
        os.replace(part, path)  # noqa: PTH105  # the same in fewer steps
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str, folder: Path | None = None) -> None:
    """Write a file; what was there is replaced at once.

    Raises:
        OSError: it cannot be written.
    """
    with begun(path, folder) as part:
        part.write_bytes(content if isinstance(content, bytes) else content.encode())
