"""The index of a run at a store: what opening its rank files reads, in one object.

A thousand ranks are a thousand objects, and each costs a request before a page can show
anything. The index holds the pieces of them that opening reads (heads, and what begins
with the last digest), so that they come with a few large requests. It is a copy: whoever
finds that a file has another size than the index says reads the file itself.

`MBINDEX1`, u64 length of the head, u32 CRC32C of the head, the head as JSON, the pieces
one after the other. The head lists files, each as `[name, size, [[start, length, crc32c],
...]]`, in the order of their pieces.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import google_crc32c

from memboard.collector.format.errors import CorruptError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAGIC: Final = b"MBINDEX1"
_HEAD: Final = struct.Struct("<8sQI")
HEAD_BYTES: Final = _HEAD.size
MAX_BYTES: Final = 1 << 30
"""A whole index is never larger."""


class Piece(NamedTuple):
    """Some bytes of a file, and where the index holds them."""

    start: int
    length: int
    crc32c: int
    offset: int

    def is_intact(self, data: bytes) -> bool:
        """Whether these are the bytes that were put there."""
        return len(data) == self.length and google_crc32c.value(data) == self.crc32c


class IndexedFile(NamedTuple):
    """A file of which an index holds pieces."""

    size_bytes: int
    pieces: tuple[Piece, ...]


def encode_index(
    files: Iterable[tuple[str, int, list[tuple[int, bytes]]]],
) -> Iterator[bytes]:
    """The bytes of an index; `files`: names, sizes, and pieces as (start, bytes)."""
    listed = list(files)
    head = json.dumps(
        [
            [
                file_name,
                size,
                [
                    [start, len(data), google_crc32c.value(data)]
                    for start, data in pieces
                ],
            ]
            for file_name, size, pieces in listed
        ],
        separators=(",", ":"),
    ).encode()
    yield _HEAD.pack(MAGIC, len(head), google_crc32c.value(head))
    yield head
    for _, _, pieces in listed:
        for _, data in pieces:
            yield data


def head_length(start: bytes) -> int:
    """How many bytes the head has that follows the first `HEAD_BYTES` of an index.

    Raises:
        CorruptError: this is no index.
    """
    if len(start) < HEAD_BYTES:
        raise CorruptError("the index of the run is cut off")
    magic, length, _ = _HEAD.unpack(start[:HEAD_BYTES])
    if magic != MAGIC or length > MAX_BYTES:
        raise CorruptError("this is not the index of a run")
    return int(length)


def decode_head(start: bytes, size_bytes: int) -> dict[str, IndexedFile]:
    """The files of an index by name; `start`: its first bytes, `size_bytes`: its size.

    Raises:
        CorruptError: this is no intact index.
    """
    length = head_length(start)
    head = start[HEAD_BYTES : HEAD_BYTES + length]
    if google_crc32c.value(head) != _HEAD.unpack(start[:HEAD_BYTES])[2]:
        raise CorruptError("the head of the run's index fails its checksum")
    offset = HEAD_BYTES + length
    files: dict[str, IndexedFile] = {}
    try:
        for file_name, size, listed in json.loads(head):
            pieces = []
            for begin, num, crc in listed:
                if min(begin, num) < 0 or offset + num > size_bytes:
                    raise CorruptError("the run's index names pieces it does not hold")
                pieces.append(Piece(begin, num, crc, offset))
                offset += num
            files[str(file_name)] = IndexedFile(int(size), tuple(pieces))
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptError("the head of the run's index does not decode") from error
    return files
