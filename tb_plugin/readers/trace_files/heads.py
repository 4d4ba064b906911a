"""What the first bytes of a file tell, before anybody reads it: a trace, of which rank."""

from __future__ import annotations

import os
import re
import zlib
from typing import Final

from tb_plugin import storage
from tb_plugin.readers.imports.limits import GZIP
from tb_plugin.readers.trace_files.names import is_trace

HEAD_BYTES: Final = 1 << 16
_RANK: Final = re.compile(
    rb'"distributedInfo"\s*:\s*\{[^{}]{0,4096}?"rank"\s*:\s*"?(\d{1,7})(?!\d)'
)
_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[')


def rank_in(path: str) -> int | None:
    """`distributedInfo.rank`, where it stands before the events; None else."""
    head = _inflated_head(path)
    events = _EVENTS.search(head)
    found = _RANK.search(head, 0, len(head) if events is None else events.start())
    return None if found is None else int(found[1])


def _inflated_head(path: str) -> bytes:
    """The first bytes; none where they cannot be read.

    Raises:
        StorageError: a store has not sent them yet, or refused: ask again.
    """
    try:
        head = storage.at(path).peek(path, 0, HEAD_BYTES)
        if head[: len(GZIP)] == GZIP:
            return zlib.decompressobj(31).decompress(head, HEAD_BYTES)
    except storage.StorageError:
        raise
    except (OSError, zlib.error):
        return b""
    return head


def looks_like_trace(path: str) -> bool:
    """Whether a file is a trace or a memory timeline, by its name or first bytes."""
    if is_trace(os.path.basename(path)):  # noqa: PTH119  # a text
        return True
    head = _inflated_head(path).lstrip(b"\xef\xbb\xbf \t\r\n")
    if _EVENTS.search(head) is not None:
        return True
    if head[:1] == b"[":
        from tb_plugin.readers.traces.timelines import is_timeline

        return b'"ph"' in head or is_timeline(head)
    return head[:1] == b"<" and b"Max memory allocated" in head
