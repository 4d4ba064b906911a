"""What folders of a store hold, as it was last listed; and when to list them again.

Only folders that somebody asks for are listed, on threads of their own: whoever asks gets
what is known. A folder that changed is listed again soon, one that stays as it is ever
more rarely, one that is refused after a growing pause.
"""

from __future__ import annotations

import hashlib
import stat
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tb_plugin.storage.contract import FixedStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tb_plugin.storage.contract import StorageError

MAX_FOLDERS: Final = 100_000
MAX_ENTRIES: Final = 1_000_000
"""Of one folder, and of one logdir."""

_FIRST_PAUSE_S: Final = 2.0
_ROOT_PAUSE_S: Final = 10.0
"""New runs appear there."""
_LAST_PAUSE_S: Final = 60.0
_REFUSED_PAUSE_S: Final = 60.0
_PAUSE_PER_FOLDER_S: Final = 0.25
"""However many folders there are, about four are listed in a second."""
_PAUSE_RATIO: Final = 10
"""Listing one takes at most a tenth of the time."""
_MOST_NAME: Final = 1024
_SECOND_NS: Final = 1_000_000_000


class RemoteEntry(NamedTuple):
    """A name in a folder; see `contract.Entry`."""

    name: str
    path: str
    status: FixedStatus
    etag: str = ""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """See `contract.Entry`."""
        del follow_symlinks
        return stat.S_ISDIR(self.status.st_mode)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """See `contract.Entry`."""
        del follow_symlinks
        return stat.S_ISREG(self.status.st_mode)

    def is_symlink(self) -> bool:
        """See `contract.Entry`: stores have none that matter to who reads."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> FixedStatus:
        """See `contract.Entry`."""
        del follow_symlinks
        return self.status


@dataclass(slots=True)
class Known:
    """What is known of one folder."""

    path: str
    entries: Mapping[str, RemoteEntry] = field(default_factory=dict)
    changed_ns: int = 0
    """When another content was last seen."""
    is_listed: bool = False
    is_gone: bool = False
    refusal: StorageError | None = None
    """Why it was not listed when that was last tried."""
    num_refused: int = 0
    """Names that no file has."""
    asked_at: float | None = None
    """Since when its listing is on its way (monotonic)."""
    due_at: float = 0.0
    pause: float = _FIRST_PAUSE_S

    @property
    def is_coming(self) -> bool:
        """Whether it was never listed, nor refused."""
        return not (self.is_listed or self.is_gone) and self.refusal is None


class Folders:
    """All folders of one logdir that somebody asked for. Safe for threads."""

    def __init__(
        self,
        root: str,
        ask: Callable[[str], Sequence[Mapping[str, Any]] | None],
        start: Callable[[Callable[[], None]], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`root`: the logdir.

        `ask` lists one folder: names and what fsspec says of them; None where there is
        none. It raises a `StorageError`, and is called on a thread that `start` gives it.
        """
        self.version = 0
        """Raised when anything was listed that was not known."""
        self._root = root
        self._ask = ask
        self._start = start
        self._clock = clock
        self._changed = threading.Condition()
        self._known: dict[str, Known] = {}
        self._num_entries = 0

    def look(self, path: str) -> Known:
        """What is known of a folder now; it is listed again where that is due."""
        now = self._clock()
        with self._changed:
            known = self._known.get(path)
            if known is None:
                known = Known(path)
                if len(self._known) >= MAX_FOLDERS:
                    known.is_gone = True
                    return known
                self._known[path] = known
            if known.asked_at is not None or now < known.due_at:
                return known
            known.asked_at = now
        self._start(lambda: self._list(known))
        return known

    def wait(self, path: str, seconds: float) -> Known:
        """Like `look`, once it was listed or refused; or what is known after a while."""
        known = self.look(path)
        with self._changed:
            self._changed.wait_for(lambda: not known.is_coming, seconds)
        return known

    def refresh(self, path: str) -> None:
        """Have a folder listed at the next look: what it held is not so any more."""
        with self._changed:
            known = self._known.get(path)
            if known is not None:
                known.due_at = 0.0

    def coming(self) -> tuple[int, float | None]:
        """Folders that are being listed for the first time; since when (monotonic)."""
        with self._changed:
            since = [
                known.asked_at
                for known in self._known.values()
                if known.is_coming and known.asked_at is not None
            ]
        return len(since), min(since, default=None)

    @property
    def num_listed(self) -> int:
        """Folders that are known."""
        with self._changed:
            return sum(known.is_listed for known in self._known.values())

    @property
    def num_refused(self) -> int:
        """Names that no file has, in all folders."""
        with self._changed:
            return sum(known.num_refused for known in self._known.values())

    def refusals(self) -> list[Known]:
        """Folders that could not be listed when that was last tried.

        What nobody asks for any more is not among them.
        """
        now = self._clock()
        with self._changed:
            return [
                known
                for known in self._known.values()
                if known.refusal is not None
                and now < known.due_at + 2 * _REFUSED_PAUSE_S
            ]

    def _list(self, known: Known) -> None:
        """On a thread: list one folder."""
        from tb_plugin.storage.contract import StorageError

        began = self._clock()
        refusal, found = None, None
        try:
            found = self._ask(known.path)
        except StorageError as error:
            refusal = error
        cost = self._clock() - began
        with self._changed:
            if refusal is not None:
                self._note_refusal(known, refusal, cost)
            else:
                self._take(known, found, cost)
            known.asked_at = None
            self._changed.notify_all()

    def _note_refusal(self, known: Known, refusal: StorageError, cost: float) -> None:
        first = known.refusal is None
        known.pause = (
            _FIRST_PAUSE_S if first else min(2 * known.pause, _REFUSED_PAUSE_S)
        )
        known.refusal = refusal
        known.due_at = self._clock() + max(known.pause, cost)
        self.version += first

    def _take(
        self, known: Known, found: Sequence[Mapping[str, Any]] | None, cost: float
    ) -> None:
        entries: dict[str, RemoteEntry] = {}
        room = MAX_ENTRIES - self._num_entries + len(known.entries)
        num_refused = 0
        for info in found or ():
            if len(entries) >= room:
                break
            entry = entry_of(known, info)
            if entry is None:
                num_refused += 1
            elif entry.name not in entries or entry.is_dir():
                # At a store a file and a folder may have one name: the folder counts.
                entries[entry.name] = entry
        is_news = (
            not known.is_listed
            or known.refusal is not None
            or known.is_gone != (found is None)
            or entries != known.entries
        )
        self._num_entries += len(entries) - len(known.entries)
        known.num_refused = num_refused
        known.is_listed, known.is_gone = found is not None, found is None
        known.refusal = None
        if is_news:
            for name in entries.keys() - known.entries.keys():
                again = self._known.get(entries[name].path)
                if again is not None:  # a folder that had gone
                    again.due_at = 0.0
            known.entries = entries
            known.changed_ns = time.time_ns()
            self.version += 1
        self._set_pause(known, cost, is_news=is_news)

    def _set_pause(self, known: Known, cost: float, *, is_news: bool) -> None:
        last = max(_LAST_PAUSE_S, _PAUSE_PER_FOLDER_S * len(self._known))
        if known.path == self._root:
            last = _ROOT_PAUSE_S
        known.pause = _FIRST_PAUSE_S if is_news else min(2 * known.pause, last)
        known.due_at = self._clock() + max(known.pause, _PAUSE_RATIO * cost)


def entry_of(known: Known, info: Mapping[str, Any]) -> RemoteEntry | None:
    """An entry out of what fsspec says of it; None where no file has such a name."""
    name = str(info.get("name", ""))
    if not _is_name(name):
        return None
    path = f"{known.path}/{name}"
    kind = info.get("type")
    mode = {"file": stat.S_IFREG, "directory": stat.S_IFDIR}.get(str(kind), 0)
    if mode == stat.S_IFDIR:
        return RemoteEntry(name, path, FixedStatus(mode, 0, 0, 1, 0))
    size = info.get("size")
    size = size if isinstance(size, int) and size >= 0 else 0
    etag = str(info.get("ETag") or info.get("etag") or info.get("generation") or "")
    before = known.entries.get(name)
    mtime_ns = _mtime_ns(info)
    if mtime_ns is None:
        same = before is not None and (before.status.st_size, before.etag) == (
            size,
            etag,
        )
        # Nobody says when: it was when it was first seen like this.
        mtime_ns = before.status.st_mtime_ns if before and same else time.time_ns()
    elif etag and mtime_ns % _SECOND_NS == 0:
        # Stores tell whole seconds; what was written twice in one has another tag.
        mtime_ns += _number(etag) % _SECOND_NS
    return RemoteEntry(
        name, path, FixedStatus(mode, size, mtime_ns, 1, _number(path)), etag
    )


def _is_name(name: str) -> bool:
    """Whether a file could have that name; a store's keys may hold anything."""
    return (
        0 < len(name) <= _MOST_NAME
        and name not in (".", "..")
        and not any(c in "/\\\0" for c in name)
    )


def _number(text: str) -> int:
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "little") >> 2 or 1


_TIMES: Final = (
    *("LastModified", "last_modified", "mtime", "modified", "updated"),
    *("created", "creation_time"),
)


def _mtime_ns(info: Mapping[str, Any]) -> int | None:
    """When it was written, as file systems say it in their own ways."""
    for key in _TIMES:
        value = info.get(key)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value.replace("Z", "+00:00"))
            except ValueError:
                continue
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
            since = aware - datetime(1970, 1, 1, tzinfo=timezone.utc)
            return (since.days * 86_400 + since.seconds) * _SECOND_NS + (
                since.microseconds * 1000
            )
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return int(value * 1e9)
    return None
