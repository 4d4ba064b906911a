"""Looks into files whose names do not tell which format they are of.

Looks are remembered by size and time, and bounded in number: what was not looked at
this time is at the next walk.
"""

from __future__ import annotations

import stat
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.tb_plugin.formats.plain_files import (
    WRITING_SECONDS,
    OpenRefusal,
    plain_file,
)
from memboard.tb_plugin.formats.registry import (
    FORMATS,
    SNAPSHOTS,
    TRACES,
    is_damaged,
    look,
)
from memboard.tb_plugin.formats.snapshots.files import names as snapshot_names
from memboard.tb_plugin.formats.traces.files import names as trace_names
from memboard.tb_plugin.storage import StorageError, at, is_inside, is_remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.formats.registry import Kind, Verdict
    from memboard.tb_plugin.storage.entries import Entry

MAX_REMEMBERED: Final = 100_000
"""Files that are looked into, in all: their verdicts are kept."""
MAX_REMOTE: Final = 2_000
"""Files at stores that are looked into: each costs a request, and 64 KiB."""
MAX_LOOKS: Final = 1000
"""Files looked into while the index walks once for a while."""
LOOK_SECONDS: Final = 0.25
"""On a slow disk fewer are."""


class Damage(NamedTuple):
    """Why a file that looks like one of ours by its name is not read, and what to do."""

    what: str
    remedy: str


_TAKE_AGAIN: Final = (
    "If it was a snapshot, take it again, or copy it again, whole; else move it out of"
    " the directory."
)
_NO_PICKLE: Final = Damage(
    "This is no pickle, or has no end; it is not read.", _TAKE_AGAIN
)
_EMPTY: Final = Damage("The file is empty.", _TAKE_AGAIN)


class _SniffResult(NamedTuple):
    size_bytes: int
    mtime_ns: int
    inode: int
    verdict: Verdict
    is_damaged: bool
    """A pickle by its name that is none, or has no end."""


class SniffedFiles:
    """What was found in files whose names do not tell what they are."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, _SniffResult] = {}
        self._num_left = MAX_LOOKS
        self._num_remote = 0
        self._deadline = 0.0
        self.is_patient = False
        """Whether a command waits: then a walk looks into all that there are."""

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

    def kind_of(
        self, entry: Entry, root: str, *, ours: bool
    ) -> tuple[Kind | None, bool]:
        """The kind of a file whose name does not tell it; whether that is known yet.

        Traces in directories of `ours` are no run's own. A link that leads out of `root`
        is followed where its format says so.
        """
        at_store = is_remote(entry.path)
        able = [
            file_format
            for file_format in FORMATS.values()
            if file_format.match(entry.name, is_remote=at_store) == "maybe"
            and not (ours and file_format is TRACES)
            and (
                file_format.listing.is_of_kind(entry.name)
                or not _leads_out(entry, root)
            )
        ]
        if not able:
            return None, True
        verdict = self._verdict(entry)
        kind = next(
            (file_format.kind for file_format in able if file_format.kind == verdict),
            None,
        )
        unsure = verdict in (None, "unclear", "stub")
        return kind, not (unsure or (verdict == "unfinished" and TRACES in able))

    def _verdict(self, entry: Entry) -> Verdict | None:
        """What a file is; None: it was not looked into."""
        try:
            status = entry.stat(follow_symlinks=True)
        except OSError:
            # It vanished; or a link leads to nothing, where something may come to be.
            return None if entry.is_symlink() else "other"
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
            is_due = self._num_left > 0 and self._clock() <= self._deadline
            if not (is_due or self.is_patient):
                return None
            self._num_left -= 1
            try:
                verdict = look(entry.path)
                is_other = verdict in ("other", "stub")
                is_bad = is_other and snapshot_names.is_pickle(entry.name)
                is_bad = is_bad and is_damaged(entry.path)
                seen = self._seen[entry.path] = _SniffResult(*key, verdict, is_bad)
            except StorageError:
                return None
            self._num_remote += is_at_store
        return seen.verdict

    def may_be_snapshot(self, entry: Entry) -> bool:
        """Whether a file that is none, or not yet, may have been meant to be one.

        Its name does not tell; what it was to be, others beside it may: see
        `names.alike`.
        """
        if SNAPSHOTS.match(entry.name) != "maybe":
            return False
        seen = self._seen.get(entry.path)
        if seen is not None:
            return seen.verdict != "unclear"
        try:
            status = entry.stat(follow_symlinks=True)
        except OSError:
            return entry.is_symlink()
        return not stat.S_ISREG(status.st_mode) or not status.st_size

    def damage_of(self, entry: Entry, root: str) -> Damage | None:
        """Why a file that is a pickle or a trace by its name is not read; None: it is none.

        What is no plain file is not opened: nobody may ever write into a FIFO.
        """
        is_pickle = snapshot_names.is_pickle(entry.name)
        if not (is_pickle or trace_names.has_words(entry.name)):
            return None
        seen = self._seen.get(entry.path)
        if seen is not None:
            return _NO_PICKLE if seen.is_damaged else None
        try:
            file = plain_file(entry.path, root, lambda _: True)
        except OSError:
            return None  # it vanished
        if isinstance(file, OpenRefusal):
            return Damage(file.problem("", None).what, file.remedy)
        if file.status.st_size:
            return None  # it is yet to be looked into
        age = time.time() - file.status.st_mtime_ns / 1e9
        return _EMPTY if self.is_patient or age >= WRITING_SECONDS else None


def _leads_out(entry: Entry, root: str) -> bool:
    if not entry.is_symlink():
        return False
    return not is_inside(at(entry.path).realpath(entry.path), root)
