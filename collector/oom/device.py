"""The device that errors are watched for: torch's observer on it, and its history.

torch cannot be made to forget an observer, so there is one per process and device type. It
holds no recorder: it asks, each time, which one lives; the newest that reports such errors
is told.

Neither observer nor history is begun before the device is in use: to ask for either would
make a context on it, and take memory from a program that wants none.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.guard import guarded
from memboard.collector.core.source import SourceInfo, Unavailable
from memboard.collector.core.warn_once import warn
from memboard.collector.history.allocator import find_allocator
from memboard.collector.history.recording import shared
from memboard.collector.oom import facts
from memboard.collector.oom.history import OomHistory
from memboard.collector.oom.torch_side import find_torch_side
from memboard.collector.process import lifecycle
from memboard.collector.process.fork import ProcessLock

if TYPE_CHECKING:
    from memboard.collector.config import RecordConfig
    from memboard.collector.core.guard import Guard
    from memboard.collector.engine import Engine
    from memboard.collector.oom.torch_side import TorchSide

_OBSERVER: Final = SourceInfo(name="oom.observer", cost="")
_HISTORY: Final = SourceInfo(name="oom.history", cost="2 us per allocation")


def _unreported(_where: str, error: BaseException, *_: Any) -> None:
    warn("an out-of-memory error could not be reported", error=error)


class _Observer:
    """What torch holds for ever."""

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type

    @guarded(_unreported)
    def __call__(self, device: int, requested: int, limit: int, free: int) -> None:
        """On the thread that allocates. An exception here would hide the user's."""
        reporter = lifecycle.newest_reporter()
        if reporter is not None:
            reporter.observed(device, requested, limit, free, self._device_type)


_attached: Final[set[str]] = set()
"""Types of devices for which torch calls us."""
_lock: Final = ProcessLock()


class WatchedDevice:
    """What of one recorder is on its device."""

    def __init__(self, config: RecordConfig, engine: Engine, guard: Guard) -> None:
        self.side: TorchSide | None = None
        """How torch tells of errors; None: it has no way here."""
        self.history: OomHistory | None = None
        """None: there is no allocator that could be asked."""
        self._config = config
        self._engine = engine
        self._guard = guard
        self._closed = False

    def close(self) -> None:
        """Begin nothing any more, and let go of the history. May raise."""
        self._closed = True
        if self.history is not None:
            self.history.let_go()

    def start(self) -> None:
        """Find it, and begin as soon as it is in use. May raise."""
        note = self._engine.note_kind
        try:
            self.side = find_torch_side(self._config.device)
        except Unavailable as missing:
            note(_OBSERVER, "absent", missing.reason, missing.remedy)
        try:
            recording = shared(find_allocator(self._config.device))
        except Unavailable as missing:
            note(_HISTORY, "absent", missing.reason, missing.remedy)
        else:
            self.history = OomHistory(
                self._config, self._engine, recording, self._num_allocations
            )
            if self._config.oom.history:
                note(_HISTORY, "recorded", "", "")
            else:
                remedy = "Set oom.history: true to record it."
                note(_HISTORY, "off", "switched off in the configuration", remedy)
        if self._in_use():
            self._begin(in_use=None)
        elif self.side is not None and self.side.when_in_use is not None:
            reference = weakref.ref(self)

            def came() -> None:
                watched = reference()
                if watched is not None:
                    with watched._guard("device"):  # noqa: SLF001
                        watched._begin(in_use=True)  # noqa: SLF001

            self.side.when_in_use(came)

    def watch(self) -> None:
        """On the writer's thread, at each flush. Does not raise."""
        side = self.side
        if side is not None and side.device_type not in _attached:
            with self._guard("device"):
                if side.in_use():
                    self._begin(in_use=None)
        if self.history is not None:
            with self._guard("check"):
                self.history.check()

    def _begin(self, *, in_use: bool | None) -> None:
        """The device is in use, or will be in a moment."""
        if self._closed:
            return
        side = self.side
        if side is not None:
            with _lock.now:
                if side.device_type not in _attached:
                    side.attach(_Observer(side.device_type))
                    _attached.add(side.device_type)
        if self.history is not None:
            self.history.hold(in_use=in_use)

    def _in_use(self) -> bool:
        if self.side is not None:
            return self.side.in_use()
        return self.history is not None and self.history.allocator.in_use()

    def _num_allocations(self) -> int | None:
        device = self._engine.device
        memory = facts.memory_of(device, device.index)
        return None if memory is None else memory["num_allocations"]
