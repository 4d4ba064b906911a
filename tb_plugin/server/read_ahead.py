"""Reads what the page will ask for, before it asks.

Two things make the first picture of a big run quick. The digests, which the recorder
writes into each rank's file while training: a picture of ten thousand steps reads a
thousand pre-aggregated rows per rank. And this thread: it waits until TensorBoard is
up, then opens the files of the run that is shown first and decodes the series a page shows first, while
the browser is still loading; after that, while nobody asks for anything, it makes the
Overview's numbers. It works in small bites and gives the run's lock back between them,
so that a request never waits long for it.

A trace of a profiler that the Overview shows first is opened, too, unless it is large.
Small snapshots of the first `_MOST_JUDGED` other runs are judged: the rail shows their peaks,
and which of them ran out of memory.

Where `memboard open` named a file, that one's history is opened first: the page that
will show it is only on its way then.

Bounded in time, in files and by the cache's size; what it could not read is read when
a page shows it. `--memboard_read_ahead=false` switches it off.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.server.state import State

_logger = logging.getLogger("memboard")

_WAIT_SECONDS: Final = 0.3
"""TensorBoard binds its port and says so within this after loading plugins."""
_BITE_SECONDS: Final = 0.03
_PAUSE_SECONDS: Final = 0.002
"""Between bites, so that whoever waits for the lock gets it."""
_LISTING_SECONDS: Final = 0.2
_WALKING_SECONDS: Final = 10.0
"""Time to search a large logdir for the run to show."""
_MOST_SECONDS: Final = 60.0
_MOST_FILES: Final = 8192
_EXIT_SECONDS: Final = 1.0
_MOST_JUDGED: Final = 50
_JUDGING_SECONDS: Final = 0.1
"""Between two looks at snapshots that are being opened."""


class ReadAhead:
    """A daemon thread that reads the run that is shown first, once. Nothing it meets is raised."""

    def __init__(
        self,
        state: Callable[[], State],
        named: str = "",
        *,
        wait: float = _WAIT_SECONDS,
    ) -> None:
        """`named`: path of a file with a history that will be looked at first."""
        self._state = state
        self._named = named
        self._wait = wait
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._guarded, name="memboard-read-ahead", daemon=True
        )

    def start(self) -> None:
        """Begin, a moment from now."""
        atexit.register(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """End within a bite; also called when the interpreter exits."""
        self._stop.set()
        self._thread.join(_EXIT_SECONDS)

    def join(self, seconds: float) -> bool:
        """Wait for the end; False where it takes longer."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _guarded(self) -> None:
        try:
            if not self._stop.wait(self._wait):
                self._read(time.monotonic() + _MOST_SECONDS)
        except Exception:
            _logger.exception(
                "MemBoard stopped reading ahead; requests read themselves"
            )
        finally:
            atexit.unregister(self.stop)

    def _read(self, deadline: float) -> None:
        state = self._state()
        if self._named:
            state.open_ahead(self._named)
        found_by = min(deadline, time.monotonic() + _WALKING_SECONDS)
        while True:
            _, standings = state.glance_at_all()
            # What lies at a store comes folder by folder, each listed when it is looked at; so does
            # what a walk has not seen yet, which may be the newest of all.
            index, now = state.store.index, time.monotonic()
            is_coming = index.is_listing and now < deadline
            is_coming |= index.is_walking and now < found_by
            if not is_coming or self._stop.wait(_LISTING_SECONDS):
                break
        if not standings:
            return
        first = standings[0].run
        run = state.store.run(first)
        # By a process of its own, while this one reads on.
        state.open_trace_ahead(first)
        for _ in _bites(state, run):
            if self._stop.wait(_PAUSE_SECONDS) or time.monotonic() > deadline:
                return
        for standing in standings[: 0 if self._named else _MOST_JUDGED]:
            made_of = state.store.run(standing.run).made_of
            while made_of == "snapshots" and state.judge_ahead(standing.run):
                if self._stop.wait(_JUDGING_SECONDS) or time.monotonic() > deadline:
                    return


def _bites(state: State, run: Run) -> Iterator[None]:
    """Reads a little, with the lock held, before each of its yields."""
    if len(run.found.files) > _MOST_FILES:
        return
    num_read = -1
    # Ends where a round opens nothing more: what is left grows, or cannot be read.
    while run.unfinished and num_read < len(run.files):
        num_read = len(run.files)
        with run.lock:
            run.update(Budget(_BITE_SECONDS), state.read_first)
        yield
    # What requests opened meanwhile, they read for one picture only.
    yield from _each_file(run, state.read_first)
    derived: tuple[Callable[[Run], object], ...] = (
        attrgetter("notes"),
        lambda of: of.catalogue.absent(),
        attrgetter("problems"),
    )
    for derive in derived:
        with run.lock:
            derive(run)
        yield
    for _ in _each_file(run, state.facts.of_file):
        yield
        while state.is_asked:
            yield


def _each_file(run: Run, read: Callable[[RankFile], object]) -> Iterator[None]:
    files = list(run.files.values())
    while files:
        with run.lock:
            budget, more = Budget(_BITE_SECONDS), True
            while files and more:
                file = files.pop()
                read(file)
                file.drop_payloads()
                more = budget.allows()
        yield
