"""Ways in which snapshots are written into files, told apart by a file's first bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_PROTOCOL: Final = b"\x80"
_PICKLES: Final = (_PROTOCOL, b"(", b"]", b"}")
"""First bytes of pickles: a protocol, or in old ones the mark of a list or dict."""

_WORDS: Final = (
    b"device_traces",
    b"allocated_size",
    b"segment_type",
    b"segment_pool_id",
    b"allocator_settings",
    b"free_requested",
    b"free_completed",
    b"segment_alloc",
)
"""Any of these, and two words in all: `segments` alone is in many a file."""
_MORE_WORDS: Final = (b"segments", b"total_size", b"active_size", b"blocks", b"frames")


@dataclass(frozen=True, slots=True)
class Container:
    """One encoding of snapshots; `snapshot_file.py` has a reader for each."""

    name: str
    begins: Callable[[bytes], bool]
    """Whether a file that begins like this is one, whatever it holds."""
    key: Callable[[bytes], bytes]
    """The bytes of a dictionary's key in such a file."""


PICKLE: Final = Container(
    "pickle", begins=lambda head: head[:1] in _PICKLES, key=lambda word: word
)
JSON: Final = Container(
    "JSON",
    begins=lambda head: head.lstrip()[:1] in (b"{", b"["),
    key=lambda word: b'"%b"' % word,
)
CONTAINERS: Final = (PICKLE, JSON)


def container_of(head: bytes) -> Container | None:
    """By the first bytes of a file, inflated; None: another file, or a damaged one."""
    return next((container for container in CONTAINERS if container.begins(head)), None)


def begins_like_snapshot(head: bytes) -> bool:
    """Whether a file of any name that begins like this is an allocator snapshot."""
    container = container_of(head)
    # Of a pickle whose beginning is damaged, keys behind their opcodes are left.
    key = _behind_opcode if container is None else container.key
    keys = [word for word in (*_WORDS, *_MORE_WORDS) if key(word) in head]
    return len(keys) > 1 and any(word in _WORDS for word in keys)


def is_cut_off(head: bytes) -> bool:
    """Whether a short pickle lacks its end."""
    return head[:1] == _PROTOCOL and head[-1:] != b"."


def _behind_opcode(word: bytes) -> bytes:
    """A short text as protocols from 4 on write it."""
    return b"\x8c%c%b" % (len(word), word)
