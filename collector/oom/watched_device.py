"""The device that errors are watched for: torch's observer on it, and its history.

Neither is begun before the device is in use: to ask for either would make a context on it,
and take memory from a program that wants none.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

from collector.history.allocator import find_allocator
from collector.history.recording import shared
from collector.oom import facts, observer
from collector.oom.history import OomHistory
from collector.oom.torch_side import find_torch_side
from collector.sources.contract import SourceInfo, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.config import RecordConfig
    from collector.core.engine import Engine
    from collector.oom.torch_side import TorchSide

_OBSERVER: Final = SourceInfo(name="oom.observer", cost="")
_HISTORY: Final = SourceInfo(name="oom.history", cost="2 us per allocation")


class WatchedDevice:
    """What of one recorder is on its device."""

    def __init__(
        self,
        config: RecordConfig,
        engine: Engine,
        guarded: Callable[[str, Callable[[], Any]], None],
    ) -> None:
        """`guarded` calls a function by a name of ours, and reports what it raises."""
        self.side: TorchSide | None = None
        """How torch tells of errors; None: it has no way here."""
        self.history: OomHistory | None = None
        """None: there is no allocator that could be asked."""
        self._config = config
        self._engine = engine
        self._guarded = guarded
        self._closed = False

    def close(self) -> None:
        """Begin nothing any more, and let go of the history. May raise."""
        self._closed = True
        if self.history is not None:
            self.history.let_go()

    def start(self) -> None:
        """Find it, and begin as soon as it is in use. May raise."""
        try:
            self.side = find_torch_side(self._config.device)
        except Unavailable as missing:
            self._engine.note_kind(_OBSERVER, "absent", missing.reason, missing.remedy)
        try:
            recording = shared(find_allocator(self._config.device))
        except Unavailable as missing:
            self._engine.note_kind(_HISTORY, "absent", missing.reason, missing.remedy)
        else:
            self.history = OomHistory(
                self._config, self._engine, recording, self._num_allocations
            )
            if self._config.oom.history:
                self._engine.note_kind(_HISTORY, "recorded", "", "")
            else:
                remedy = "Set oom.history: true to record it."
                reason = "switched off in the configuration"
                self._engine.note_kind(_HISTORY, "off", reason, remedy)
        if self._in_use():
            self._begin(in_use=None)
        elif self.side is not None and self.side.when_in_use is not None:
            reference = weakref.ref(self)

            def came() -> None:
                watched = reference()
                if watched is not None:
                    watched._guarded("device", lambda: watched._begin(in_use=True))  # noqa: SLF001

            self.side.when_in_use(came)

    def _begin(self, *, in_use: bool | None) -> None:
        """The device is in use, or will be in a moment."""
        if self._closed:
            return
        if self.side is not None:
            observer.attach_once(self.side)
        if self.history is not None:
            self.history.hold(in_use=in_use)

    def watch(self) -> None:
        """On the writer's thread, at each flush. Does not raise."""
        side = self.side
        if (
            side is not None
            and not observer.is_attached(side.device_type)
            and side.in_use()
        ):
            self._guarded("device", lambda: self._begin(in_use=None))
        if self.history is not None:
            self._guarded("check", self.history.check)

    def _in_use(self) -> bool:
        if self.side is not None:
            return self.side.in_use()
        return self.history is not None and self.history.allocator.in_use()

    def _num_allocations(self) -> int | None:
        device = self._engine.device
        memory = facts.memory_of(device, device.index)
        return None if memory is None else memory["num_allocations"]
