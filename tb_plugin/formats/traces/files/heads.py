"""The first bytes of a trace's file tell that it is one, and of which ranks."""

from __future__ import annotations

import os
import re
import zlib
from typing import Final, NamedTuple

from memboard.tb_plugin import storage
from memboard.tb_plugin.formats.traces.files.names import is_trace
from memboard.tb_plugin.rank_set import RankSet
from memboard.tb_plugin.worker.limits import GZIP

HEAD_BYTES: Final = 1 << 16
RANK: Final = re.compile(
    rb'"distributedInfo"\s*:\s*\{[^{}]{0,4096}?"rank"\s*:\s*"?(\d{1,7})(?!\d)'
)
_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_TOKEN: Final = re.compile(
    rb'"([^"\\]*(?:\\.[^"\\]*)*)"\s*(:)?|([{\[])|([}\]])', re.DOTALL
)
_EVENTS_KEY: Final = b"traceEvents"
_VERSION_KEY: Final = b"schemaVersion"
_OF_TORCH: Final = (b"deviceProperties", b"distributedInfo")
"""Beside the version: the beginning of torch's trace, whose events may begin far behind."""
_EVENT: Final = (b'"ph"', b'"pid"', b'"ts"')
MERGED_KEY: Final = "memboardMerged"
"""Top-level key of traces that were merged here."""
_MERGED: Final = re.compile(
    rb'"memboardMerged"\s*:\s*\{\s*"ranks"\s*:\s*"([\d,-]{0,60000})"'
    rb'\s*,\s*"others"\s*:\s*(true|false)'
    rb'(?:\s*,\s*"of"\s*:\s*"([0-9a-f]{0,40000})")?'
)
_MERGED_BY_COMPOSER: Final = re.compile(
    rb'(?:\{[^{}\[\]]*)?\[\s*\{[^{}\[\]]*"thread_sort_index"[^{}\[\]]*'
    rb'\{\s*"sort_index"\s*:\s*99999\s*\}'
)
"""Composer's merger writes this first."""
_ASCEND_OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
_PROFILER_INFO: Final = re.compile(r"profiler_info_(\d{1,7})\.json")
MARK_DIGITS: Final = 8
MAX_MARKS: Final = 4_000
_BLANK: Final = b"\xef\xbb\xbf \t\r\n"
_MAX_RANKS: Final = 100_000


class TraceHead(NamedTuple):
    """What is known of a trace before it is read."""

    rank: int | None = None
    """`distributedInfo.rank`, where it stands before the events."""
    merged: tuple[int | None, ...] | None = None
    """Of a trace that was merged from others: their ranks, None for those that are of no
    rank; empty where it does not say them. None: it is a profiler's own."""
    merged_of: frozenset[str] = frozenset()
    """Marks of the files that it was merged from, where it says them."""


def mark_of(file_name: str, num_bytes: int = 0) -> str:
    """By what a merged trace names a file: hex digits of its base name and its size.

    Recordings grow, and have names of their own: they are marked without a size.
    """
    text = f"{file_name} {num_bytes}".encode("utf-8", "surrogateescape")
    return f"{zlib.crc32(text):0{MARK_DIGITS}x}"


def head_of(path: str) -> TraceHead:
    """What the first bytes of a trace's file tell.

    Raises:
        StorageError: a store has not sent them yet, or refused: ask again.
    """
    return head_in(_inflated_head(path))


def head_in(start: bytes) -> TraceHead:
    """What the first bytes of a trace tell, inflated; of more, only `HEAD_BYTES` count."""
    head = start[:HEAD_BYTES].lstrip(_BLANK)
    events = _EVENTS.search(head)
    end = len(head) if events is None else events.start()
    merged = _MERGED.search(head, 0, end)
    if merged is not None:
        ranks: list[int | None] = list(_ranks(merged[1].decode()))
        marks = (merged[3] or b"").decode()
        return TraceHead(
            merged=(*ranks, *([None] if merged[2] == b"true" else [])),
            merged_of=frozenset(
                marks[start_of_mark : start_of_mark + MARK_DIGITS]
                for start_of_mark in range(0, len(marks), MARK_DIGITS)
            ),
        )
    if _MERGED_BY_COMPOSER.match(head):
        return TraceHead(merged=())
    match = RANK.search(head, 0, end)
    return TraceHead(None if match is None else int(match[1]))


def rank_beside(path: str) -> int | None:
    """The rank of a trace that does not tell it, by a file that torch_npu puts beside it.

    `x_ascend_pt/profiler_info_3.json`, above `ASCEND_PROFILER_OUTPUT/trace_view.json`.

    Raises:
        StorageError: a store has not sent them yet, or refused: ask again.
    """
    folder = os.path.dirname(path)  # noqa: PTH120  # a URL, too
    if os.path.basename(folder) != _ASCEND_OUTPUT:  # noqa: PTH119
        return None
    above = os.path.dirname(folder)  # noqa: PTH120
    try:
        with storage.at(above).scandir(above) as entries:
            matches = [_PROFILER_INFO.fullmatch(entry.name) for entry in entries]
    except storage.StorageError:
        raise
    except OSError:
        return None
    ranks = [int(match[1]) for match in matches if match is not None]
    return ranks[0] if len(ranks) == 1 else None


def _ranks(ranges: str) -> list[int]:
    """The ranks of `0-7,64`; none where there are more than any training has."""
    try:
        rank_set = RankSet.parse(ranges)
    except ValueError:
        return []
    return list(rank_set) if len(rank_set) <= _MAX_RANKS else []


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
    head = _inflated_head(path).lstrip(_BLANK)
    if begins_like_trace(head):
        return True
    if head[:1] == b"[":
        from memboard.tb_plugin.formats.traces.timelines import is_timeline

        return b'"ph"' in head or is_timeline(head)
    return head[:1] == b"<" and b"Max memory allocated" in head


def begins_like_trace(head: bytes) -> bool:
    """Whether a file of any name that begins like this, inflated, is a Chrome trace."""
    head = head.lstrip(_BLANK)
    if head[:1] == b"{":
        return _is_trace_object(head)
    return head[:1] == b"[" and all(word in head for word in _EVENT)


def _is_trace_object(head: bytes) -> bool:
    """By the object's own keys: other tools' reports have those of a trace further in."""
    if _EVENTS_KEY not in head and _VERSION_KEY not in head:
        return False
    depth, has_version, is_torch = 0, False, False
    for token in _TOKEN.finditer(head):
        text, colon, opens, closes = token.groups()
        depth += bool(opens) - bool(closes)
        if colon and depth == 1:
            has_version |= text == _VERSION_KEY
            is_torch |= text in _OF_TORCH
            if text == _EVENTS_KEY or (has_version and is_torch):
                return True
    return False
