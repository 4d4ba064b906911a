"""All arguments of one event, read again from where it stands in the trace's file."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from contextlib import ExitStack, suppress
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from memboard.tb_plugin import storage
from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.formats.traces.bytes.inflated import InflatedFile
from memboard.tb_plugin.formats.traces.bytes.pieces import repairs, walk
from memboard.tb_plugin.formats.traces.columns.events import FAULTS, ONE, plain
from memboard.tb_plugin.worker.cache import FileKey
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_MAX_CHUNK: Final = 64 << 20
_RAWS: Final = msgspec.json.Decoder(list[msgspec.Raw])


class FileArgs:
    """Arguments by the number of their event. Safe for threads.

    The chunks that were used last are kept, so neighbours come at once. Of a deflated
    file everything before has to be inflated again, unless it is asked in order.
    """

    def __init__(
        self, path: str | Path, key: FileKey, chunks: Mapping[str, Any]
    ) -> None:
        """`chunks`: where they lie, as `trace_file` wrote it."""
        self._path = os.fspath(path)
        self._key = key
        self._offset = np.asarray(chunks.get("offset", ()), np.int64)
        self._num_bytes = np.asarray(chunks.get("num_bytes", ()), np.int64)
        self._first = np.asarray(chunks.get("first", ()), np.int64)
        self._lock = threading.Lock()
        self._chunks = Cache()
        """Events of the chunks that were read, by their number."""
        self._stream: tuple[IO[bytes], InflatedFile, int, bytes] | None = None
        """Of a deflated file: where inflating stands, and what is left of a block."""
        self._closing: Callable[[], object] | None = None
        """Closes its file, now or when nobody holds this any more."""

    def __call__(self, handle: int) -> Mapping[str, Any]:
        """All arguments of an event; see `trace.ArgsSource`."""
        chunk = int(np.searchsorted(self._first, handle, "right")) - 1
        if chunk < 0:
            return {}
        with self._lock:
            events: Sequence[bytes] | None = self._chunks.get(chunk)
            if events is None:
                events = _events(self._bytes(chunk))
                self._chunks.put(chunk, events, sum(map(sys.getsizeof, events)))
        place = handle - int(self._first[chunk])
        return _args(events[place]) if place < len(events) else {}

    def _bytes(self, chunk: int) -> bytes:
        offset, length = int(self._offset[chunk]), int(self._num_bytes[chunk])
        if length > _MAX_CHUNK:
            return b""
        if self._stream is not None and self._position() <= offset:
            return self._skip_to(offset, length)
        self._close()
        with ExitStack() as unless_deflated:
            file = unless_deflated.enter_context(self._opened())
            stream = InflatedFile(file)
            if not stream.is_deflated:
                file.seek(offset)
                return file.read(length)
            unless_deflated.pop_all()
        # Of a circle of garbage the file could come first, with a warning.
        self._closing = weakref.finalize(self, file.close)
        self._stream = (file, stream, 0, b"")
        return self._skip_to(offset, length)

    def _position(self) -> int:
        assert self._stream is not None  # noqa: S101  # asked before
        return self._stream[2]

    def _skip_to(self, offset: int, length: int) -> bytes:
        assert self._stream is not None  # noqa: S101  # asked before
        file, stream, position, data = self._stream
        try:
            while position + len(data) <= offset and (block := stream.read()):
                position, data = position + len(data), block
            while position + len(data) < offset + length and (block := stream.read()):
                data += block
        except (OSError, RefusedError):
            self._close()
            raise
        start = offset - position
        text = data[start : start + length]
        self._stream = (file, stream, offset + len(text), data[start + length :])
        return text

    def _opened(self) -> IO[bytes]:
        file, status = storage.at(self._path).open(self._path)
        if FileKey.of(status) != self._key:
            file.close()
            raise OSError(0, "the file is another than the one that was read")
        return file

    def _close(self) -> None:
        if self._closing is not None:
            self._closing()
        self._stream = self._closing = None


def _events(data: bytes) -> Sequence[bytes]:
    """The text of each event of a chunk, as the reader numbered them."""
    text = b"[%b]" % data
    for attempt in (text, next(repairs(text))):
        with suppress(*FAULTS):
            return [bytes(raw) for raw in _RAWS.decode(attempt)]
    return [
        data[start:stop] for start, stop in walk(data, ONE.decode, at_end=True).spans
    ]


def _args(event: bytes) -> Mapping[str, Any]:
    for text in (event, *repairs(event)):
        event_dict = plain(text)
        if isinstance(event_dict, dict):
            args = event_dict.get("args")
            return args if isinstance(args, dict) else {"args": args}
    return {}
