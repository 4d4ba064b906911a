"""The size of an open file, one of the system's or in memory."""

from __future__ import annotations

import os
from typing import IO


def size_of(file: IO[bytes]) -> int:
    """Its bytes; it stays where it is."""
    try:
        return os.fstat(file.fileno()).st_size
    except (OSError, AttributeError):  # in memory
        position = file.tell()
        size = file.seek(0, os.SEEK_END)
        file.seek(position)
        return size
