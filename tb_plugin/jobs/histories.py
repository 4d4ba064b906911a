"""Histories, opened on threads of their own and kept while there is room.

A request never waits longer than it wants to: what takes long goes on without it, and
the next request finds it further or done. The same history asked for twice is opened
once. Nothing here is done while a run's lock is held, but for noting damage.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from collector.format.errors import CorruptError, FormatError
from tb_plugin import api
from tb_plugin.analysis.snapshots.tables import SnapshotError as TablesError
from tb_plugin.analysis.snapshots.tables import snapshot_of
from tb_plugin.jobs.history_list import OwnCapture, shown_place
from tb_plugin.jobs.kept_replays import (
    OF_CAPTURES,
    REPLAYS,
    is_worth_keeping,
    keep_replays,
    kept_replays,
    key_of_content,
)
from tb_plugin.jobs.open_history import Capacity, OpenHistory
from tb_plugin.jobs.worker.column_cache import FileKey
from tb_plugin.jobs.worker.errors import (
    ImportFailedError,
    LimitError,
    RefusedError,
)
from tb_plugin.jobs.worker.importer import Importer
from tb_plugin.server.errors import NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tb_plugin.analysis.allocator.replayed import Replayed
    from tb_plugin.analysis.snapshots.snapshot import Snapshot
    from tb_plugin.formats.snapshots.files.found import FoundSnapshot
    from tb_plugin.index.run import Run
    from tb_plugin.jobs.history_list import FoundHistory
    from tb_plugin.jobs.kept_replays import Replays

_logger = logging.getLogger(__name__)

MAX_BYTES: Final = 1 << 30
"""What histories that nobody looks at may hold in memory."""

MAX_OPENING: Final = 64
"""At a time; most of them wait for the importer, which has a limit of its own."""

_DERIVING: Final = 2
"""At a time: each takes a core."""
_MAX_FAILED: Final = 256
_RETRY_S: Final = 30.0
"""What failed is tried again after so long, when it is asked for."""
_READ_SHARE: Final = 0.85
"""Of the progress; the rest is pairing allocations and their frees."""


class Opening:
    """A history on its way, or there, or failed."""

    def __init__(
        self, found: FoundHistory, asked: frozenset[int] = frozenset()
    ) -> None:
        self.found = found
        self.asked = asked
        """Every time that a person asked for another try, so far."""
        self.progress = 0.0
        self.doing = "waiting for other files"
        self.history: OpenHistory | None = None
        self.kept_as: tuple[FileKey, Replays] | None = None
        """What replaying it comes to is kept under; None: it is not."""
        self.problem: api.Problem | None = None
        self.ended_at = 0.0
        self._ended = threading.Event()

    @property
    def state(self) -> api.HistoryState:
        """How far it is."""
        if not self._ended.is_set():
            return "opening"
        return "failed" if self.history is None else "ready"

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most so long; whether it came."""
        return self._ended.wait(seconds)

    def note(self, progress: float, doing: str) -> None:
        """How far it is."""
        self.progress, self.doing = max(self.progress, progress), doing

    def end(self, history: OpenHistory | None, problem: api.Problem | None) -> None:
        """It is over."""
        self.history, self.problem = history, problem
        self.progress, self.doing = 1.0, ""
        self.ended_at = time.monotonic()
        self._ended.set()


class HistoriesReader:
    """All histories that are open, or being opened. Safe for threads."""

    def __init__(
        self,
        importer: Callable[[], Importer] = Importer,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`importer` is called for the first other tool's file, or long capture."""
        self._make_importer = importer
        self._importer: Importer | None = None
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[object, ...], Opening] = OrderedDict()
        """By content; those used last come last."""
        self._named: dict[tuple[str, str], tuple[object, ...]] = {}
        """By run and id: the content it had when it was last looked for."""
        self._deriving = threading.Semaphore(_DERIVING)
        self.num_opened = 0
        """How many were opened so far, or could not be."""

    def open(self, run: Run, found: FoundHistory, again: int | None = None) -> Opening:
        """A history, or how far it is; does not wait.

        What failed is tried again after a while, unless its file is at fault; at once
        where a person says so. `again` stands for one such wish: it counts once, however
        often it is told.

        Raises:
            NotReadyError: too many are being opened.
        """
        key, name = found.key, (found.run_id, found.reference.id)
        with self._lock:
            known = self._known.get(key)
            asked = frozenset() if known is None else known.asked
            wished = again is not None and again not in asked
            if known is None or _may_be_tried_again(known, wished=wished):
                asked |= set() if again is None else {again}
                known = self._begin(run, found, asked, wished=wished)
            self._named[name] = key
            self._known[key] = known
            self._known.move_to_end(key)
            return known

    def opened(self, run_id: str, history_id: str) -> OpenHistory | None:
        """A history that is open; None where it is not, or not yet.

        Takes no lock of a run: pictures are drawn while the run is being read.
        """
        with self._lock:
            key = self._named.get((run_id, history_id))
            known = None if key is None else self._known.get(key)
            if key is None or known is None or known.history is None:
                return None
            self._known.move_to_end(key)
            return known.history

    def look_up(self, found: FoundHistory) -> Opening | None:
        """How far a history is; None where nobody asked for it yet."""
        with self._lock:
            return self._known.get(found.key)

    def tidy(self) -> None:
        """Let go of what was not used for longest, as far as there is too much."""
        with self._lock:
            kept = [
                (key, known.history)
                for key, known in reversed(self._known.items())
                if known.history is not None
            ]
        sizes = {key: history.num_bytes() for key, history in kept}
        with self._lock:
            total = 0
            for place, (key, history) in enumerate(kept):
                total += sizes[key]
                known = self._known.get(key)
                is_it = known is not None and known.history is history
                # The one that was used last stays, however large it is.
                if place and total > self._max_bytes and is_it:
                    del self._known[key]
            failed = [k for k, known in self._known.items() if known.state == "failed"]
            for key in failed[: max(0, len(failed) - _MAX_FAILED)]:
                del self._known[key]
            self._named = {
                name: key for name, key in self._named.items() if key in self._known
            }

    def _begin(
        self, run: Run, found: FoundHistory, asked: frozenset[int], *, wished: bool
    ) -> Opening:
        under_way = sum(known.state == "opening" for known in self._known.values())
        if under_way >= MAX_OPENING:
            raise NotReadyError(
                f"{under_way} other histories are being opened.",
                shown_place(found),
                "Ask again in a moment.",
            )
        opening = Opening(found, asked)
        threading.Thread(
            target=self._work,
            args=(run, opening, wished),
            name="memboard-history",
            daemon=True,
        ).start()
        return opening

    def _work(self, run: Run, opening: Opening, wished: bool) -> None:
        """Thread: open one."""
        found = opening.found
        history, problem = None, None
        try:
            history = self._opened(opening, wished)
            _note_read(run, found, None)
        except ImportFailedError as error:
            problem = _problem(found, error.what, error.where, error.remedy)
            if isinstance(error, RefusedError | LimitError):
                _note_read(run, found, problem)
        except TablesError as error:
            problem = _problem(found, f"{_capital(str(error))}.", "", _DAMAGED)
        except CorruptError as error:
            _note_damage(run, found, error)
            problem = _problem(found, f"{_capital(str(error))}.", "", _DAMAGED)
        except FormatError as error:
            problem = _problem(found, f"{_capital(str(error))}.", "", _NEWER)
        except OSError as error:
            what = f"The file cannot be read: {error.strerror or error}."
            problem = _problem(found, what, "", _UNREADABLE)
        except MemoryError:
            problem = _problem(
                found, "There is not enough memory to open it.", "", _LARGE
            )
        except Exception as error:
            _logger.exception("A history of %s could not be opened", found.run_id)
            what = f"Opening it failed: {type(error).__name__}."
            problem = _problem(found, what, "", _REPORT)
        opening.end(history, problem)
        with self._lock:
            self.num_opened += 1
        if history is not None:
            _prepare(history)
        self.tidy()
        if history is not None:
            self._keep(opening, history)

    def _opened(self, opening: Opening, wished: bool) -> OpenHistory:
        found = opening.found
        if isinstance(found.source, OwnCapture):
            tables, capacity = self._own(opening, found.source)
        else:
            tables = self._imported(opening, found.source, wished)
            capacity = None
        with self._deriving:
            opening.note(_READ_SHARE, "pairing allocations and their frees")
            snapshot = snapshot_of(tables)
            known = self._known_replays(opening, snapshot, tables)
            return OpenHistory(snapshot, key=found.key, capacity=capacity, known=known)

    def _known_replays(
        self, opening: Opening, snapshot: Snapshot, tables: Mapping[str, Any]
    ) -> Mapping[int, Replayed]:
        """What replaying its devices came to when the same content was opened before."""
        source = opening.found.source
        if not is_worth_keeping(snapshot):
            return {}
        if isinstance(source, OwnCapture):
            key, kind = key_of_content(tables), OF_CAPTURES
        else:
            key, kind = _listed(source), REPLAYS
        opening.kept_as = key, kind
        return kept_replays(self._the_importer().cache, key, snapshot, kind)

    def _keep(self, opening: Opening, history: OpenHistory) -> None:
        """Have the next one who opens the content spared replaying it."""
        if opening.kept_as is None or history.is_known:
            return
        key, kind = opening.kept_as
        try:
            keep_replays(self._the_importer().cache, key, history, kind)
        except Exception:
            _logger.exception("What replaying came to could not be kept")

    def _own(
        self, opening: Opening, source: OwnCapture
    ) -> tuple[Mapping[str, Any], Capacity | None]:
        from tb_plugin.formats.recording.captures import capture_of

        with self._deriving:
            opening.note(0.05, "reading the capture")
            capture = capture_of(source.file, source.entry)
        header = source.file.header
        if header.device_total_bytes is None:
            return capture.tables, None
        capacity = Capacity(header.device_total_bytes, header.device_index)
        return capture.tables, capacity

    def _imported(
        self, opening: Opening, file: FoundSnapshot, wished: bool
    ) -> Mapping[str, Any]:
        importer = self._the_importer()
        running = importer.start(file.path, _listed(file), again=wished)
        return running.followed(
            lambda share: opening.note(share * _READ_SHARE, "reading the file")
        )

    def _the_importer(self) -> Importer:
        with self._lock:
            if self._importer is None:
                self._importer = self._make_importer()
            return self._importer


def _listed(file: FoundSnapshot) -> FileKey:
    """What the file was when its path was free of links: nothing else is opened."""
    return FileKey(file.device, file.inode, file.size_bytes, file.mtime_ns)


_DAMAGED: Final = "Other histories of the run are not affected: open another one."
_NEWER: Final = "Update MemBoard to the version that wrote it."
_UNREADABLE: Final = "Check that the file is still there and may be read."
_LARGE: Final = "Close other programs, or open MemBoard on a machine with more memory."
_REPORT: Final = "The log of TensorBoard holds the traceback; please report it."


def _prepare(history: OpenHistory) -> None:
    """Make what the first picture is coloured by, while its facts are told and read."""
    try:
        if history.devices:
            _ = history.device(None).categories
    except Exception:
        _logger.exception("What a picture is made of could not be made ahead")


def _may_be_tried_again(known: Opening, *, wished: bool) -> bool:
    if known.state != "failed":
        return False
    return wished or time.monotonic() - known.ended_at > _RETRY_S


def _note_damage(run: Run, found: FoundHistory, error: CorruptError) -> None:
    """Have the run show it among its problems."""
    if isinstance(found.source, OwnCapture):
        with run.lock:
            faults = run.num_faults
            entry = found.source.entry
            end = entry.offset + entry.num_bytes
            found.source.file.add_damage(entry.offset, end, str(error), is_named=True)
            run.note_new_faults(faults)


def _note_read(run: Run, found: FoundHistory, problem: api.Problem | None) -> None:
    """Have the run show what is wrong with a file, whoever asked for it."""
    if not isinstance(found.source, OwnCapture):
        with run.lock:
            run.note_read(found.source, problem)


def _problem(found: FoundHistory, what: str, where: str, remedy: str) -> api.Problem:
    source = found.source
    path = (
        source.file.shown_path if isinstance(source, OwnCapture) else source.shown_path
    )
    return api.Problem(
        severity="error",
        path=path,
        what=what,
        where=where,
        salvaged="Everything else of the run.",
        remedy=remedy,
        rank=found.reference.rank,
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
