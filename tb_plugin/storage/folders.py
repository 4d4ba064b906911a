"""Folders of a store as they were last listed, and times to list them again.

Only folders that somebody asks for are listed, on threads: whoever asks gets what is
known. A folder that changed is listed again soon, one that stays as it is ever more
rarely, one that is refused after a growing pause. fsspec's own cache of listings would
have whoever asks wait once it is over.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from memboard.tb_plugin.storage.contract import StorageError
from memboard.tb_plugin.storage.entries import entry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memboard.tb_plugin.storage.entries import RemoteEntry

MAX_FOLDERS: Final = 100_000
MAX_ENTRIES: Final = 1_000_000
"""Of one folder, and of one logdir."""

_FIRST_PAUSE_S: Final = 2.0
_ROOT_PAUSE_S: Final = 10.0
_LAST_PAUSE_S: Final = 60.0
_PAUSE_PER_FOLDER_S: Final = 0.25
"""However many folders there are, about four are listed in a second."""
_PAUSE_RATIO: Final = 10
"""Listing one takes at most a tenth of the time."""


@dataclass(slots=True)
class FolderListing:
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
    """All folders of one logdir that were listed so far. Safe for threads."""

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
        self._known: dict[str, FolderListing] = {}
        self._num_entries = 0

    def look(self, path: str) -> FolderListing:
        """What is known of a folder now; it is listed again where that is due."""
        now = self._clock()
        with self._changed:
            listing = self._known.get(path)
            if listing is None:
                listing = FolderListing(path)
                if len(self._known) >= MAX_FOLDERS:
                    listing.is_gone = True
                    return listing
                self._known[path] = listing
            if listing.asked_at is not None or now < listing.due_at:
                return listing
            listing.asked_at = now
        self._start(lambda: self._list(listing))
        return listing

    def wait(self, path: str, seconds: float) -> FolderListing:
        """Like `look`, once it was listed or refused; or what is known after a while."""
        listing = self.look(path)
        with self._changed:
            self._changed.wait_for(lambda: not listing.is_coming, seconds)
        return listing

    def refresh(self, path: str) -> None:
        """Have a folder listed at the next look: what it held is not so any more."""
        with self._changed:
            if path in self._known:
                self._known[path].due_at = 0.0

    def every(self) -> list[FolderListing]:
        """All folders that were listed so far."""
        with self._changed:
            return list(self._known.values())

    def coming(self) -> tuple[int, float | None]:
        """Folders that are being listed for the first time; since when (monotonic)."""
        since = [listing.asked_at for listing in self.every() if listing.is_coming]
        since_known = [asked_at for asked_at in since if asked_at is not None]
        return len(since_known), min(since_known, default=None)

    def refusals(self) -> list[FolderListing]:
        """Folders that could not be listed when that was last tried, by path.

        What nobody asks for any more is not among them.
        """
        since = self._clock() - 2 * _LAST_PAUSE_S
        refused = [listing for listing in self.every() if listing.refusal is not None]
        wanted = [listing for listing in refused if since < listing.due_at]
        return sorted(wanted, key=lambda listing: listing.path)

    def _list(self, listing: FolderListing) -> None:
        """On a thread: list one folder."""
        began = self._clock()
        infos, refusal = None, None
        try:
            infos = self._ask(listing.path)
        except StorageError as error:
            refusal = error
        cost = self._clock() - began
        with self._changed:
            if refusal is None:
                is_news = self._take(listing, infos)
                last = max(_LAST_PAUSE_S, _PAUSE_PER_FOLDER_S * len(self._known))
                last = _ROOT_PAUSE_S if listing.path == self._root else last
                cost *= _PAUSE_RATIO
            else:
                is_news, last = listing.refusal is None, _LAST_PAUSE_S
                listing.refusal = refusal
            self.version += is_news
            listing.pause = _FIRST_PAUSE_S if is_news else min(2 * listing.pause, last)
            listing.due_at = self._clock() + max(listing.pause, cost)
            listing.asked_at = None
            self._changed.notify_all()

    def _take(
        self, listing: FolderListing, infos: Sequence[Mapping[str, Any]] | None
    ) -> bool:
        """Keep a listing; whether it says anything new."""
        entries: dict[str, RemoteEntry] = {}
        room = MAX_ENTRIES - self._num_entries + len(listing.entries)
        listing.num_refused = 0
        for info in infos or ():
            if len(entries) >= room:
                break
            entry = entry_of(listing.path, listing.entries, info)
            if entry is None:
                listing.num_refused += 1
            elif entry.name not in entries or entry.is_dir():
                # At a store a file and a folder may have one name: the folder counts.
                entries[entry.name] = entry
        is_news = not listing.is_listed or listing.refusal is not None
        is_news |= listing.is_gone != (infos is None) or entries != listing.entries
        self._num_entries += len(entries) - len(listing.entries)
        listing.is_listed, listing.is_gone = infos is not None, infos is None
        listing.refusal = None
        if is_news:
            for entry_name in entries.keys() - listing.entries.keys():
                again = self._known.get(entries[entry_name].path)
                if again is not None:  # a folder that had gone
                    again.due_at = 0.0
            listing.entries, listing.changed_ns = entries, time.time_ns()
        return is_news
