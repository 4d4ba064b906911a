"""Bytes that come in: the body of a request.

Few bodies are taken at a time, so one that never ends must not keep its place. A slow one
may: only the time that is spent waiting for the sender counts, and after every 64 KiB it
counts anew.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.contract.errors import StalledError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from werkzeug.wrappers import Request

STALL_SECONDS: Final = 60.0
"""Longest wait for the next bytes."""
PACE_BYTES: Final = 1 << 16
"""Least bytes in that time, or it is no upload."""

_PIECE: Final = 1 << 20


def pieces_of(request: Request, length: int) -> Iterator[bytes]:
    """Pieces of a body of `length` bytes; fewer where the sender breaks off.

    Raises:
        StalledError: it comes no longer, or too slowly.
    """
    from werkzeug.exceptions import ClientDisconnected

    connection = request.environ.get("werkzeug.socket")
    if connection is None:  # a server that ends connections itself
        read = request.stream.read
    else:  # one read of the socket each: a longer one would wait for the whole piece
        read = request.environ["wsgi.input"].read1
    left, waited, num_bytes = length, 0.0, 0
    while left > 0:
        began = time.monotonic()
        if connection is not None:
            connection.settimeout(STALL_SECONDS - waited)
        try:
            piece = read(min(_PIECE, left))
        except TimeoutError:
            raise _stalled(length, left) from None
        except (ClientDisconnected, ConnectionError):
            return
        if not piece:
            return
        left -= len(piece)
        num_bytes += len(piece)
        waited += time.monotonic() - began
        if num_bytes >= PACE_BYTES:
            waited, num_bytes = 0.0, 0
        elif waited >= STALL_SECONDS and left > 0:
            raise _stalled(length, left)
        yield piece


def _stalled(length: int, left: int) -> StalledError:
    return StalledError(
        f"The file stopped coming after {length - left:,} of {counted(length, 'byte')}.",
        f"{STALL_SECONDS:.0f} s without {PACE_BYTES:,} bytes",
        "Check the connection and drop the file again.",
    )
