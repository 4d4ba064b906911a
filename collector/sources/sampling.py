"""Sources of one recording: opened, sampled, off for a while where they fail.

Those of steps are sampled on the training thread. Timed ones have a thread of their own,
so that a slow one never delays a flush; it opens them too (NVML takes tens of
milliseconds). One that does not come back (a GPU that fell off the bus, a dead network
mount) cannot be stopped: `replace_if_stuck` leaves its thread behind and starts another
for the rest.

Due times are kept on the monotonic clock. Moments missed, because the machine slept or
a source was slow, are skipped and not made up for.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Final

from memboard.collector.core.guard import Block, Breaker, guarded
from memboard.collector.core.plain import forgiving
from memboard.collector.core.source import Unavailable
from memboard.collector.format.sizes import counted
from memboard.collector.process.own_threads import leave_profilers, own_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.core.source import SourceInfo
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.sources.device.accelerator import Device
    from memboard.collector.sources.source import Reader, Row, Source

    Note = Callable[[SourceInfo, str, str, str], object]

STUCK_SECONDS: Final = 30.0
"""A source that takes longer than this, and than five of its intervals, is given up."""

_STUCK_INTERVALS: Final = 5


def _failed(_where: str, error: BaseException, live: Live) -> None:
    live.failed(error)


class Live:
    """One source of one recording. Nothing here raises."""

    def __init__(
        self,
        source: Source,
        config: RecordConfig,
        device: Device,
        note: Note,
        warn_once: WarnOnce,
    ) -> None:
        self.source = source
        self.columns = source.columns(config)
        pace = getattr(config, source.setting, None)
        self.interval_seconds = source.times * (pace if type(pace) is float else 1.0)
        self.pause = 0.0
        """How long to leave it alone, in seconds: it has just failed; 0: it has not."""
        self._open: Callable[[], Reader] = lambda: source.open(config, device)
        self._reader: Reader | None = None
        self._nothing = (None,) * len(self.columns)
        self._breaker = Breaker(source, note, warn_once, setting=source.setting)
        self._sample: Callable[[], Row] = self._again

    @property
    def is_failing(self) -> bool:
        """Whether it has failed, and has not worked since."""
        return self._breaker.is_failing

    def open(self) -> bool:
        """Open it now, or later where that fails; False where it cannot measure here."""
        with Block(self.failed):
            try:
                self._reader = self._open()
            except Unavailable as missing:
                self._breaker.failed(missing)
                return False
            self._works(self._reader)
        return True

    @guarded(_failed, instead=lambda live: live._nothing)  # noqa: SLF001
    def read(self) -> Row:
        """Its values; None each while it is off."""
        values = self._sample()
        if len(values) != len(self._nothing):
            num_values, expected = len(values), len(self._nothing)
            raise ValueError(
                f"{counted(num_values, 'value')} for {counted(expected, 'column')}"
            )
        return values

    def failed(self, error: BaseException) -> None:
        """It has raised, or does not come back."""
        self.pause = self._breaker.failed(error)
        self._sample = self._again

    def close(self) -> None:
        """Give back what it holds; where it cannot, it is left behind."""
        reader, self._reader = self._reader, None
        if reader is not None:
            with forgiving:
                reader.close()

    def _works(self, reader: Reader) -> None:
        self._breaker.works()
        self.pause = 0.0
        self._sample = reader.sample

    def _again(self) -> Row:
        if not self._breaker.is_due():
            return self._nothing
        reader = self._reader
        if reader is None:
            reader = self._reader = self._open()
        values = reader.sample()
        if len(values) == len(self._nothing):
            self._works(reader)
        return values


def open_sources(
    sources: Iterable[Source],
    config: RecordConfig,
    device: Device,
    note: Note,
    warn_once: WarnOnce,
    *,
    is_first: bool = True,
) -> list[Live]:
    """Those that are switched on and can measure here; notes say it of each.

    `is_first`: whether this is the first rank of its host, which speaks for all of them.
    """
    live_sources = []
    for source in sources:
        setting = getattr(config, source.setting, True)
        if setting is False or setting == "off":
            reason = "switched off in the configuration"
            remedy = (
                f"Remove {source.setting} from the configuration, or set it to true."
            )
            note(source, "off", reason, remedy)
        elif source.per_host and not is_first:
            reason = "recorded by the first rank of each host, once for all"
            note(source, "off", reason, "See it there.")
        else:
            live = Live(source, config, device, note, warn_once)
            if live.open():
                live_sources.append(live)
    return live_sources


class Sampler:
    """Owns the timed sources from `start` to `stop`."""

    def __init__(
        self,
        open_all: Callable[[], Sequence[Live]],
        sampled: Callable[[Live, Row], None],
    ) -> None:
        """`open_all` is called once, and `sampled` with values, both on the thread."""
        self._open_all = open_all
        self._sampled = sampled
        self._round: _Round | None = None

    def start(self) -> None:
        self._round = _Round(self._open_all, self._sampled)
        self._round.thread.start()

    def stop(self, timeout: float) -> None:
        """Have the sources closed on their thread; wait at most `timeout` seconds."""
        if self._round is not None:
            self._round.stop.set()
            self._round.thread.join(timeout)

    def after_fork(self) -> None:
        """The thread does not exist here."""
        self._round = None

    def replace_if_stuck(self, now: float | None = None) -> Live | None:
        """Go on without a source that does not come back; returns it.

        `now` is monotonic seconds.
        """
        current = self._round
        if current is None or current.busy is None or current.stop.is_set():
            return None
        stuck, since = current.busy
        now = time.monotonic() if now is None else now
        if now - since < max(STUCK_SECONDS, _STUCK_INTERVALS * stuck.interval_seconds):
            return None
        current.stop.set()
        rest = [live for live in current.sources if live is not stuck]
        current.sources = [stuck]  # the thread left behind closes no more than this
        self._round = _Round(lambda: rest, self._sampled)
        self._round.thread.start()
        stuck.failed(TimeoutError("a sample did not come back"))
        return stuck


class _Round:
    """One thread and what it samples."""

    def __init__(
        self,
        open_all: Callable[[], Sequence[Live]],
        sampled: Callable[[Live, Row], None],
    ) -> None:
        self.stop = threading.Event()
        self.sources: list[Live] = []
        self.busy: tuple[Live, float] | None = None
        """The source being sampled and since when: what a watcher looks at."""
        self._open_all = open_all
        self._sampled = sampled
        self.thread = own_thread("sampler", self._run)

    def _run(self) -> None:
        self.sources = list(self._open_all())
        now = time.monotonic()
        # The number keeps sources in their order where they are due together.
        due = [
            (now + live.pause, number, live) for number, live in enumerate(self.sources)
        ]
        heapq.heapify(due)
        while due and not self.stop.wait(max(0.0, due[0][0] - time.monotonic())):
            leave_profilers()
            when, number, live = heapq.heappop(due)
            self._sample(live)
            again = (
                time.monotonic() + live.pause if live.pause else next_due(when, live)
            )
            heapq.heappush(due, (again, number, live))
        self.stop.wait()  # nothing to do, but what there is is closed at the end
        for live in self.sources:
            live.close()

    def _sample(self, live: Live) -> None:
        self.busy = (live, time.monotonic())
        values = live.read()
        self.busy = None
        if not self.stop.is_set() and not live.is_failing:
            self._sampled(live, values)


def next_due(when: float, live: Live) -> float:
    """The first moment after now on the grid that `when` and the interval span."""
    missed = (time.monotonic() - when) // live.interval_seconds
    return when + (missed + 1) * live.interval_seconds


def import_ahead() -> None:
    """Import on this thread what the sampler would import on its own.

    A module half imported by another thread at a fork stays locked in the child for
    ever: a dataloader worker that imports it too would hang.
    """
    for name in ("psutil", "pynvml"):
        with contextlib.suppress(ImportError):  # told when the source opens
            import_module(name)
