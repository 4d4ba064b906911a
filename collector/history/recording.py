"""torch's one recording of allocator history, kept on while somebody here needs it.

Several may need it, one with more stacks than another: it records what the most
demanding of them asks for. How many events torch keeps stays as it was at the start: a
ring that changes its size while it turns loses its order.

There is one per process, and it may be the program's own, with settings of its own: then
it is used as it is and never touched. Where it is ours, it is turned off when the last
holder lets go, unless the program has turned it on itself meanwhile. To know that, the
functions that turn it on and off are watched for as long as it is ours. A program that
turns it on gets events from its own call on, as without us: ours are dropped before.
"""

from __future__ import annotations

import functools
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.collector.core.patches import Patches
from memboard.collector.core.source import TORCH_ERRORS
from memboard.collector.process.fork import ProcessLock, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from memboard.collector.history.allocator import Allocator


_STACKS: Final = ("python", "all")
_CONTEXTS: Final = (None, "alloc", "all")
"""Values of torch's `context`, the least first."""


class RecordingRequest(NamedTuple):
    """What a holder wants recorded; see `Allocator.start`."""

    max_entries: int
    stacks: str
    context: str | None


class HistoryRecording:
    """The recording of one allocator. Safe to use from any thread."""

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self._wishes: dict[Hashable, RecordingRequest] = {}
        self._is_ours = False
        self._now: RecordingRequest | None = None
        """What was asked of torch last."""
        self._starting = False
        self._watched: Patches | None = None
        self._lock = ProcessLock()
        watch(self)

    @property
    def is_ours(self) -> bool:
        """Whether it is on because of us."""
        return self._is_ours

    @property
    def wish(self) -> RecordingRequest | None:
        """What is recorded because of us; None where it is not ours."""
        return self._now if self._is_ours else None

    def hold(
        self,
        holder: Hashable,
        *,
        max_entries: int,
        stacks: str,
        context: str | None = "all",
        in_use: bool | None = None,
    ) -> bool:
        """Have it on from now on; whether it is on: not before the device is in use.

        Where the program has it on already, it goes on as it is. `in_use`: whether the
        device is, where the caller knows better than torch says.
        """
        wish = RecordingRequest(max_entries, stacks, context)
        with self._lock.now:
            if not (self.allocator.in_use() if in_use is None else in_use):
                return False
            is_known = self._is_ours or not self.allocator.says_whether_recording
            if self._wishes.get(holder) == wish and is_known:
                return True
            self._wishes[holder] = wish
            if self._is_ours:
                self._adapt()
            elif not self.allocator.is_recording():
                self._start(self._combined())
                self._watch()
            return True

    def let_go(self, holder: Hashable) -> None:
        """One holder less; the last one's leaves torch as it was found."""
        with self._lock.now:
            self._wishes.pop(holder, None)
            if self._wishes:
                self._adapt()
                return
            self._unwatch()
            if self._is_ours:
                self._is_ours = False
                self.allocator.stop()

    def _combined(self) -> RecordingRequest:
        wishes = self._wishes.values()
        return RecordingRequest(
            max(wish.max_entries for wish in wishes),
            max((wish.stacks for wish in wishes), key=_STACKS.index),
            max((wish.context for wish in wishes), key=_CONTEXTS.index),
        )

    def _adapt(self) -> None:
        """Record more or fewer stacks, where the holders are others than before."""
        if self._is_ours and self._now is not None:
            wanted = self._combined()._replace(max_entries=self._now.max_entries)
            if wanted != self._now:
                self._start(wanted)

    def _start(self, wish: RecordingRequest) -> None:
        self._starting = True  # the watched functions are called by us
        try:
            self.allocator.start(
                max_entries=wish.max_entries, stacks=wish.stacks, context=wish.context
            )
        finally:
            self._starting = False
        self._now = wish
        self._is_ours = True

    def _watch(self) -> None:
        if self._watched is not None:
            return
        self._watched = Patches()
        for owner, attribute in self.allocator.entry_points:
            self._watched.attribute(
                owner, attribute, self._wrapper(getattr(owner, attribute))
            )

    def _unwatch(self) -> None:
        """Put the functions back; one that somebody wrapped since stays, idle."""
        watched, self._watched = self._watched, None
        if watched is not None:
            watched.remove()

    def _wrapper(self, before: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(before)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if self._starting or not self._is_ours:
                return before(*args, **kwargs)
            self._drop_events()
            try:
                result = before(*args, **kwargs)
            except BaseException:
                self._resume()
                raise
            self._is_ours = False  # the program has decided, whichever way
            return result

        return wrapper

    def _drop_events(self) -> None:
        """Turn ours off: torch adds the program's events to those it has."""
        self._starting = True
        try:
            self.allocator.stop()
        finally:
            self._starting = False

    def _resume(self) -> None:
        """Torch refused the program's own recording: ours goes on, without its events."""
        if self._now is not None:
            with suppress(*TORCH_ERRORS):
                self._start(self._now)

    def after_fork(self) -> None:
        """Nobody here holds it: this is a forked child."""
        self._wishes.clear()
        self._is_ours = False


def shared(allocator: Allocator) -> HistoryRecording:
    """The recording of a device type, the same for all recorders of the process."""
    with _lock.now:
        recording = _shared.get(allocator.device_type)
        if recording is None:
            recording = _shared[allocator.device_type] = HistoryRecording(allocator)
        return recording


_shared: Final[weakref.WeakValueDictionary[str, HistoryRecording]] = (
    weakref.WeakValueDictionary()
)
_lock: Final = ProcessLock()
