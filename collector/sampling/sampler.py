"""Timed sources on a thread of their own, so that a slow one never delays a flush.

The thread opens the sources too (NVML takes tens of milliseconds). One that raises is
reported and tried again later (see `retry`), the rest go on. One that does not come back (a GPU that fell off
the bus, a dead network mount) cannot be stopped: `replace_if_stuck` leaves its thread
behind and starts another for the rest.

Due times are kept on the monotonic clock. Moments missed, because the machine slept or
a source was slow, are skipped and not made up for.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final, Protocol

from collector.core.retry import Retry
from collector.sources.late import LateSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.sources.contract import TimedSource

    Open = Callable[[], Sequence[TimedSource]]

STUCK_SECONDS: Final = 30.0
"""A source that takes longer than this, and than five of its intervals, is given up."""

_STUCK_INTERVALS: Final = 5


class Listener(Protocol):
    """Who takes what the sampler finds; called on the sampler's thread."""

    def sampled(
        self, source: TimedSource, values: Sequence[int | float | None]
    ) -> None:
        """Values of a source, in the order of its columns."""

    def works(self, source: TimedSource) -> None:
        """One that had failed gives values again."""

    def failed(self, source: TimedSource, error: BaseException) -> None:
        """A source raised; it is asked again after a while. Said once, until it works."""


class Sampler:
    """Owns the timed sources from `start` to `stop`."""

    def __init__(self, open_sources: Open, listener: Listener) -> None:
        """`open_sources` is called once, on the thread; it must not raise."""
        self._open = open_sources
        self._listener = listener
        self._round: _Round | None = None

    def start(self) -> None:
        """Start the thread."""
        self._round = _Round(self._open, self._listener)
        self._round.thread.start()

    def stop(self, timeout: float) -> None:
        """Have the sources closed on their thread; wait at most `timeout` seconds."""
        if self._round is not None:
            self._round.stop.set()
            self._round.thread.join(timeout)

    def forget(self) -> None:
        """In a forked child: the thread does not exist here."""
        self._round = None

    def replace_if_stuck(self, now: float | None = None) -> TimedSource | None:
        """Go on without a source that does not come back; returns it.

        `now` is monotonic seconds.
        """
        current = self._round
        if current is None or current.busy is None or current.stop.is_set():
            return None
        source, since = current.busy
        now = time.monotonic() if now is None else now
        limit = max(STUCK_SECONDS, _STUCK_INTERVALS * source.interval_seconds)
        if now - since < limit:
            return None
        current.stop.set()
        rest = [other for other in current.sources if other is not source]
        current.sources = [source]  # the thread left behind closes no more than this
        self._round = _Round(lambda: rest, self._listener)
        self._round.thread.start()
        return source


class _Round:
    """One thread and what it samples."""

    def __init__(self, open_sources: Open, listener: Listener) -> None:
        self.stop = threading.Event()
        self.sources: list[TimedSource] = []
        self.busy: tuple[TimedSource, float] | None = None
        """The source being sampled and since when: what a watcher looks at."""
        self._open = open_sources
        self._listener = listener
        self._failing: set[TimedSource] = set()
        self._retries: defaultdict[TimedSource, Retry] = defaultdict(Retry)
        self.thread = threading.Thread(
            target=self._run, name="memboard-sampler", daemon=True
        )

    def _run(self) -> None:
        self.sources = list(self._open())
        now = time.monotonic()
        self._failing.update(one for one in self.sources if type(one) is LateSource)
        # The number keeps sources in their order where they are due together.
        due = [
            (now + self._pause(source), number, source)
            for number, source in enumerate(self.sources)
        ]
        heapq.heapify(due)
        while due and not self.stop.wait(max(0.0, due[0][0] - time.monotonic())):
            when, number, source = heapq.heappop(due)
            self._sample(source)
            pause = self._pause(source)
            again = time.monotonic() + pause if pause else next_due(when, source)
            heapq.heappush(due, (again, number, source))
        self.stop.wait()  # nothing to do, but what there is is closed at the end
        for source in self.sources:
            _close(source)

    def _pause(self, source: TimedSource) -> float:
        """How long to leave it alone, in seconds: it has just failed; 0: it has not."""
        return self._retries[source].failed() if source in self._failing else 0.0

    def _sample(self, source: TimedSource) -> None:
        self.busy = (source, time.monotonic())
        try:
            values = _checked(source)
        except Exception as error:  # noqa: BLE001  # one source must not cost the others
            self.busy = None
            if not self.stop.is_set() and source not in self._failing:
                self._failing.add(source)
                self._listener.failed(source, error)
            return
        self.busy = None
        if not self.stop.is_set():
            if source in self._failing:
                self._failing.discard(source)
                self._listener.works(source)
            self._listener.sampled(source, values)


def next_due(when: float, source: TimedSource) -> float:
    """The first moment after now on the grid that `when` and the interval span."""
    missed = (time.monotonic() - when) // source.interval_seconds
    return when + (missed + 1) * source.interval_seconds


def _checked(source: TimedSource) -> Sequence[int | float | None]:
    values = source.sample()
    found, expected = len(values), len(source.columns)
    if found != expected:
        raise ValueError(f"{found} values for {expected} columns")
    return values


def _close(source: TimedSource) -> None:
    with contextlib.suppress(Exception):  # it is being left behind either way
        source.close()
