"""Keeps the user's own reading of peaks exact while a ledger resets the counters.

All of torch's Python functions that read or reset peaks (`torch.cuda.memory_stats`,
`max_memory_allocated`, `memory_summary`, `reset_peak_memory_stats`, and those of
torch.accelerator) pass through the few C functions that `Backend.entry_points` lists.
While a ledger that resets is in use, these are wrapped: what they return has the
user's peaks put back, and the user's resets go through the ledger.

Recorders of one process that watch the same device share one ledger. When the last
one closes, the functions are put back as they were: at once where torch's counters
hold the user's peaks, else (a peak of theirs is known to the ledger alone) as soon as
they do, or at the user's next reset. `print(torch.cuda.max_memory_allocated())` after
the training must not be the first thing to be wrong.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.process.fork import ProcessLock
from memboard.collector.sources.device.accelerator import original
from memboard.collector.sources.device.peaks import PeakLedger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.collector.sources.device.accelerator import (
        Backend,
        Device,
        EntryPoint,
    )


def open_ledger(device: Device, *, resets: bool) -> PeakLedger:
    """A ledger of the device's peaks, to be given back with `release_ledger`.

    With `resets`, recorders share it and the user's reading is kept exact; without,
    nothing is wrapped and its peaks are those that the user sees.
    """
    backend, index = device.backend, device.index
    if backend is None or index is None:
        raise ValueError("a device without a backend has no peaks to keep")
    with _lock.now:
        wrapping = _wrappings.get(backend.type)
        if not resets:
            return PeakLedger(_UserCounters(backend, index), resets=False)
        if wrapping is None:
            wrapping = _wrappings[backend.type] = _Wrapping(backend)
        return wrapping.acquire(backend, index)


def release_ledger(ledger: PeakLedger) -> None:
    """Give back a ledger; the last recorder's puts torch's functions back."""
    with _lock.now:
        for wrapping in tuple(_wrappings.values()):
            wrapping.release(ledger)


class _Counters:
    def __init__(self, backend: Backend, index: int) -> None:
        self._backend = backend
        self._index = index

    def stats(self) -> Mapping[str, Any] | None:
        """None until the process uses the device, and in a forked child."""
        if not self._backend.in_use():
            return None
        return self._backend.stats(self._index)

    def reset_peaks(self) -> None:
        """Set every peak to its current value."""
        self._backend.reset_peaks(self._index)


class _UserCounters(_Counters):
    """The counters as the user sees them, also beside a recorder that resets them."""

    def stats(self) -> Mapping[str, Any] | None:
        """With the user's own peaks."""
        stats = super().stats()
        wrapping = _wrappings.get(self._backend.type)
        shared = None if wrapping is None else wrapping.shared.get(self._index)
        if stats is None or shared is None:
            return stats
        merged: Mapping[str, Any] = shared.ledger.user_stats(stats)
        return merged


@dataclass(slots=True)
class _SharedLedger:
    """One device's ledger and how many recorders use it."""

    ledger: PeakLedger
    num_recorders: int = 0


class _Wrapping:
    """The wrapped functions of one kind of device, and its ledgers by index."""

    def __init__(self, backend: Backend) -> None:
        self._type = backend.type
        self._points = backend.entry_points()
        self._wrapped: dict[EntryPoint, tuple[Any, Any]] = {}
        self.shared: dict[int, _SharedLedger] = {}

    def acquire(self, backend: Backend, index: int) -> PeakLedger:
        """The device's ledger; the first one of all wraps the functions."""
        for point in self._points:
            if point not in self._wrapped:
                before = getattr(point.owner, point.name)
                wrapper = self._wrapper(before, resets=point.resets)
                setattr(point.owner, point.name, wrapper)
                self._wrapped[point] = (before, wrapper)
        shared = self.shared.get(index)
        if shared is None:
            ledger = PeakLedger(_Counters(backend, index))
            shared = self.shared[index] = _SharedLedger(ledger)
        shared.num_recorders += 1
        return shared.ledger

    def release(self, ledger: PeakLedger) -> None:
        """Count one recorder less, if the ledger is one of these."""
        for index, shared in tuple(self.shared.items()):
            if shared.ledger is ledger:
                shared.num_recorders -= 1
                self._drop_unused(index)

    def _drop_unused(self, index: int) -> None:
        """Forget a ledger that neither a recorder nor the user's peaks need."""
        with _lock.now:
            shared = self.shared.get(index)
            if shared is None or shared.num_recorders or shared.ledger.owes_user():
                return
            del self.shared[index]
            if not self.shared:
                self._unwrap()

    def _unwrap(self) -> None:
        """Put the functions back; one that somebody wrapped since stays, idle."""
        for point, (before, wrapper) in tuple(self._wrapped.items()):
            if getattr(point.owner, point.name) is wrapper:
                setattr(point.owner, point.name, before)
                del self._wrapped[point]
        if not self._wrapped:
            del _wrappings[self._type]

    def _wrapper(self, before: Any, *, resets: bool) -> Any:
        @functools.wraps(before)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            shared = self.shared.get(args[0]) if args else None
            if shared is None:
                return before(*args, **kwargs)
            if resets:
                result = shared.ledger.user_reset(lambda: before(*args, **kwargs))
            else:
                result = shared.ledger.user_stats(before(*args, **kwargs))
            if not shared.num_recorders:
                self._drop_unused(args[0])
            return result

        wrapper.__memboard_original__ = original(before)  # type: ignore[attr-defined]
        return wrapper


_lock: Final = ProcessLock()
_wrappings: Final[dict[str, _Wrapping]] = {}
