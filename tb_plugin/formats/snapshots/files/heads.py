"""Snapshots by the first bytes of their files, inflated."""

from __future__ import annotations

from typing import Final

PICKLES: Final = (b"\x80", b"(", b"]", b"}")
"""What pickles begin with: a protocol, or in old ones the mark of a list or dict."""

_WORDS: Final = (
    *(b"device_traces", b"allocated_size", b"segment_type", b"segment_pool_id"),
    *(b"allocator_settings", b"free_requested", b"free_completed", b"segment_alloc"),
)
"""Any of these, and two words in all: `segments` alone is in many a file."""
_MORE_WORDS: Final = (b"segments", b"total_size", b"active_size", b"blocks", b"frames")


def begins_like_snapshot(head: bytes) -> bool:
    """Whether a file of any name that begins like this is an allocator snapshot."""
    if is_json(head):
        found = [word for word in (*_WORDS, *_MORE_WORDS) if b'"%b"' % word in head]
    elif head[:1] in PICKLES:
        found = [word for word in (*_WORDS, *_MORE_WORDS) if word in head]
    else:  # of one whose beginning is damaged, other words are left
        found = [word for word in (*_WORDS, *_MORE_WORDS) if _as_pickled(word) in head]
    return len(found) > 1 and any(word in _WORDS for word in found)


def is_cut_off(head: bytes) -> bool:
    """Whether a short pickle lacks its end."""
    return head[:1] == PICKLES[0] and head[-1:] != b"."


def is_json(head: bytes) -> bool:
    """Whether it begins as JSON does."""
    return head.lstrip()[:1] in (b"{", b"[")


def _as_pickled(word: bytes) -> bytes:
    """A short text behind its opcode, as protocols from 4 on write it."""
    return b"\x8c%c%b" % (len(word), word)
