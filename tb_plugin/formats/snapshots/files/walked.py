"""Which entries of a directory are snapshots or traces that no name tells: by a look inside.

Looks are remembered by size and time, and bounded in number: what was not looked at
this time is at the next walk.
"""

from __future__ import annotations

import stat
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from tb_plugin.formats.snapshots.files.heads import look
from tb_plugin.formats.snapshots.files.names import likelihood
from tb_plugin.formats.traces.files.names import is_likely_trace, may_be_trace
from tb_plugin.storage import StorageError, is_remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_plugin.formats.snapshots.files.heads import Verdict
    from tb_plugin.storage.contract import Entry

MAX_REMEMBERED: Final = 100_000
"""Files that are looked into, in all: their verdicts are kept."""
MAX_REMOTE: Final = 2_000
"""Files at stores that are looked into: each costs a request, and 64 KiB."""
MAX_LOOKS: Final = 1000
"""Files looked into while the index walks once for a while."""
LOOK_SECONDS: Final = 0.25
"""On a slow disk fewer are."""


class _Seen(NamedTuple):
    size_bytes: int
    mtime_ns: int
    inode: int
    verdict: Verdict


class Looks:
    """What was found in files whose names do not tell what they are."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._num_left = MAX_LOOKS
        self._num_remote = 0
        self._deadline = 0.0

    def begin(self) -> None:
        """A walk goes on: it may look again."""
        self._num_left = MAX_LOOKS
        self._deadline = self._clock() + LOOK_SECONDS

    @property
    def is_full(self) -> bool:
        """Whether no further file is looked into."""
        return len(self._seen) >= MAX_REMEMBERED

    @property
    def num_allowed(self) -> int | None:
        """How many files are looked into, where there are more; None else."""
        if self._num_remote >= MAX_REMOTE:
            return MAX_REMOTE
        return MAX_REMEMBERED if self.is_full else None

    def is_snapshot(self, entry: Entry) -> bool | None:
        """Whether a plain file is one; None: not known yet, ask again."""
        said = likelihood(entry.name)
        if said != "maybe":
            return said == "yes"
        verdict = self._verdict(entry)
        return None if verdict in (None, "unclear", "stub") else verdict == "snapshot"

    def is_trace(self, entry: Entry) -> bool | None:
        """Whether a plain file whose name does not tell it is a trace; None: ask again."""
        may_be = is_likely_trace if is_remote(entry.path) else may_be_trace
        if not may_be(entry.name):
            return False
        verdict = self._verdict(entry)
        if verdict in (None, "unclear", "stub", "unfinished"):
            return None
        return verdict == "trace"

    def _verdict(self, entry: Entry) -> Verdict | None:
        """What a file is; None: it was not looked into."""
        try:
            status = entry.stat(follow_symlinks=True)
        except OSError:
            return "other"  # it vanished
        if not stat.S_ISREG(status.st_mode):
            return "other"
        seen = self._seen.get(entry.path)
        key = (status.st_size, status.st_mtime_ns, status.st_ino)
        if seen is None or seen[:3] != key:
            if not status.st_size:
                return None  # somebody may be about to write it
            is_at_store = is_remote(entry.path)
            is_enough = is_at_store and self._num_remote >= MAX_REMOTE
            if (self.is_full or is_enough) and seen is None:
                return "other"
            if self._num_left <= 0 or self._clock() > self._deadline:
                return None
            self._num_left -= 1
            try:
                seen = self._seen[entry.path] = _Seen(*key, look(entry.path))
            except StorageError:
                return None
            self._num_remote += is_at_store
        return seen.verdict

    def may_be_one(self, entry: Entry) -> bool:
        """Whether a file that is none, or not yet, may have been meant to be one.

        It is a plain file whose name does not tell; what it was to be, others beside it
        may: see `names.alike`.
        """
        if likelihood(entry.name) != "maybe":
            return False
        seen = self._seen.get(entry.path)
        if seen is not None:
            return seen.verdict != "unclear"
        try:
            status = entry.stat(follow_symlinks=True)
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and not status.st_size
