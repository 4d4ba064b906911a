"""Writes a merged trace: events as text, into a file or a stream, deflated or not."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import zlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from memboard.tb_plugin.formats.traces.columns.events import EventByKey, WholeEvent

_FAST: Final = 1
_GZIP: Final = 31
_QUEUED: Final = 4
"""Pieces that wait between merging and deflating."""
_ENCODER: Final = msgspec.json.Encoder()


def encoded(value: Any) -> bytes:
    return _ENCODER.encode(value)


def joined(events: Sequence[WholeEvent | EventByKey]) -> bytes:
    """Events with commas between; empty without any."""
    text = _ENCODER.encode(events)[1:-1]
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:  # as it was read: viewers would refuse it all
            text = text.decode(errors="replace").encode()
    return text


def deflated(pieces: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    """A gzip stream; pieces are made beside deflating, on a thread.

    Where nobody wants the rest, the thread ends.
    """
    waiting: queue.Queue[bytes | BaseException | None] = queue.Queue(_QUEUED)
    unwanted = threading.Event()

    def put(piece: bytes | BaseException | None) -> None:
        while not unwanted.is_set():
            with contextlib.suppress(queue.Full):
                waiting.put(piece, timeout=0.1)
                return

    def make() -> None:
        end: BaseException | None = None
        try:
            for piece in pieces:
                put(piece)
                if unwanted.is_set():
                    return
        except BaseException as error:  # noqa: BLE001  # raised where it is awaited
            end = error
        finally:
            pieces.close()  # it gives its files back
        put(end)

    thread = threading.Thread(target=make, name="memboard-merge", daemon=True)
    thread.start()
    deflating = zlib.compressobj(_FAST, zlib.DEFLATED, _GZIP)
    try:
        while (piece := waiting.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            if data := deflating.compress(piece):
                yield data
        yield deflating.flush()
    finally:
        unwanted.set()
        thread.join()


def write_file(path: Path, pieces: Generator[bytes, None, None]) -> int:
    """Write all pieces, deflated where the name ends in .gz; returns the file's size.

    The file appears under its name when it is whole.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    if path.suffix == ".gz":
        pieces = deflated(pieces)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            size = file.tell()
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return size
