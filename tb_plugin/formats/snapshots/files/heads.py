"""Snapshots by the first and last bytes of their files, and what is plainly wrong with those."""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tb_plugin import storage
from tb_plugin.api.base import Problem
from tb_plugin.formats.traces.files.heads import begins_like_trace
from tb_plugin.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_plugin.budget import Budget
    from tb_plugin.formats.snapshots.files.listing import FoundSnapshot, FoundSnapshots


Verdict: TypeAlias = Literal[
    "snapshot", "trace", "other", "unfinished", "unclear", "stub"
]
"""unfinished: JSON without an end, which may become a trace. unclear: the file holds nothing
yet, or cannot be read now. stub: a pickle or a gzip that was cut off before anything tells
what of."""

HEAD_BYTES: Final = 1 << 16

_GZIP: Final = b"\x1f\x8b"
_AUTO_HEADER: Final = 31
"""zlib: a gzip header is expected."""
_WORDS: Final = (
    *(b"device_traces", b"allocated_size", b"segment_type", b"segment_pool_id"),
    *(b"allocator_settings", b"free_requested", b"free_completed", b"segment_alloc"),
)
"""Any of these, and two words in all: `segments` alone is in many a file."""
_MORE_WORDS: Final = (b"segments", b"total_size", b"active_size", b"blocks", b"frames")
_TAKE_AGAIN: Final = (
    "Take the snapshot again, or copy the file again, whole: a full disk and a killed"
    " process leave such files."
)
_WHAT_IS_ONE: Final = (
    "Snapshots are what `torch.cuda.memory._dump_snapshot` writes, or the same as JSON,"
    " gzipped or not; traces of torch's profiler are shown too."
)
_PICKLES: Final = (b"\x80", b"(", b"]", b"}")
"""What pickles begin with: a protocol, or in old ones the mark of a list or dict."""
_STUB_BYTES: Final = 256
"""The words of a snapshot begin earlier."""
_STOP: Final = b"."
"""The last byte of every whole pickle."""


def verdict_of(head: bytes) -> Verdict:
    """What the first bytes of a file, packed or not, tell."""
    if not head:
        return "unclear"
    if head[:2] == _GZIP:
        try:
            head = zlib.decompressobj(_AUTO_HEADER).decompress(head, HEAD_BYTES)
        except zlib.error:
            return "other"
        if not head:
            return "stub"
    if _is_json(head):
        found = [word for word in (*_WORDS, *_MORE_WORDS) if b'"%b"' % word in head]
    elif head[:1] in _PICKLES:
        found = [word for word in (*_WORDS, *_MORE_WORDS) if word in head]
    else:  # of one whose beginning is damaged, other words are left
        found = [word for word in (*_WORDS, *_MORE_WORDS) if _as_pickled(word) in head]
    if len(found) > 1 and any(word in _WORDS for word in found):
        return "snapshot"
    if _is_json(head):
        if begins_like_trace(head):
            return "trace"
        is_whole = head.rstrip()[-1:] in (b"}", b"]")
        return "other" if is_whole or len(head) >= HEAD_BYTES else "unfinished"
    return "stub" if len(head) < _STUB_BYTES and _is_cut_off(head) else "other"


def read_head(path: str) -> bytes:
    """The first bytes of a plain file; of anything else none.

    Raises:
        StorageError: a store has not sent it yet, or refused: ask again.
        OSError: it cannot be read.
    """
    return storage.at(path).peek(path, 0, HEAD_BYTES)


def look(path: str) -> Verdict:
    """What a file is; `unclear` where it cannot be read.

    Raises:
        StorageError: a store has not sent it yet, or refused: ask again.
    """
    try:
        return verdict_of(read_head(path))
    except storage.StorageError:
        raise
    except OSError:
        return "unclear"


def fault_of(path: str) -> tuple[str, str] | None:
    """What is plainly wrong with a snapshot's file, and what to do; None: nothing seen.

    Only its two ends are looked at: damage inside is found by reading it.

    Raises:
        StorageError: a store has not sent it yet, or refused: ask again.
    """
    try:
        head = read_head(path)
        if not head:
            return "The file is empty.", _TAKE_AGAIN
        verdict = verdict_of(head)
        if verdict == "stub" and head[:2] == _GZIP:
            return "The file was cut off while it was written.", _TAKE_AGAIN
        if verdict in ("other", "trace", "unfinished"):
            return "This is no snapshot of torch's allocator.", _WHAT_IS_ONE
        if head[:1] not in _PICKLES and head[:2] != _GZIP and not _is_json(head):
            return "The pickle's first bytes are damaged.", _TAKE_AGAIN
        if head[:1] in _PICKLES and _last_byte(path) != _STOP:
            what = "The pickle has no end: it was cut off while it was written."
            return what, _TAKE_AGAIN
    except storage.StorageError:
        raise
    except OSError as error:
        what = f"The file cannot be read: {error.strerror or error}."
        return what, str(
            getattr(error, "remedy", "Check its permissions and the disk.")
        )
    return None


def _is_cut_off(head: bytes) -> bool:
    """Whether a short pickle lacks its end."""
    return head[:1] == _PICKLES[0] and head[-1:] != _STOP


def _as_pickled(word: bytes) -> bytes:
    """A short text behind its opcode, as protocols from 4 on write it."""
    return b"\x8c%c%b" % (len(word), word)


def _is_json(head: bytes) -> bool:
    return head.lstrip()[:1] in (b"{", b"[")


def _last_byte(path: str) -> bytes:
    return storage.at(path).peek(path, -1, 1)


_WRITING_SECONDS: Final = 10.0
"""A file changed this recently may still be on its way to the disk."""


class Faults:
    """What is wrong with the files of one run, as far as they were looked at."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.problems: tuple[Problem, ...] = ()
        self._clock = clock
        self._looked_at: dict[str, tuple[FoundSnapshot, Problem | None]] = {}
        """By the file's id: what it was like, and what was wrong."""

    def keep(self, found: FoundSnapshots) -> None:
        """Forget files that are not in this listing, or not as they were."""
        self._looked_at = {
            key: seen
            for key, seen in self._looked_at.items()
            if found.by_id(key) is seen[0]  # listings keep what did not change
        }
        self._tell()

    def note(self, file: FoundSnapshot, problem: Problem | None) -> bool:
        """What reading a file found; whether that is news."""
        before = self.problems
        self._looked_at[file.id] = file, problem
        self._tell()
        return self.problems != before

    def check(self, found: FoundSnapshots, budget: Budget) -> bool:
        """Look at the ends of files; True when all are done."""
        done = True
        for file in found.files:
            if file.id in self._looked_at:
                continue
            if not budget.allows():
                done = False
                break
            if self._clock() - file.key.mtime_ns / 1e9 < _WRITING_SECONDS:
                done = False
                continue
            try:
                self._looked_at[file.id] = file, _problem(file)
            except StorageError:
                done = False
        self._tell()
        return done

    def _tell(self) -> None:
        found = (problem for _, problem in self._looked_at.values())
        self.problems = tuple(problem for problem in found if problem is not None)


def _problem(file: FoundSnapshot) -> Problem | None:
    fault = fault_of(file.path)
    if fault is None:
        return None
    what, remedy = fault
    return Problem(
        severity="error",
        path=file.shown_path,
        what=what,
        where="",
        salvaged="nothing",
        remedy=remedy,
        rank=file.rank,
    )
