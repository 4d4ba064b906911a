"""One ledger for torch's peak counters: steps, nested spans, the run and the user.

torch keeps one peak per statistic since the last reset, so whoever resets falsifies
everybody else's peak. The ledger owns every reset: before one it folds the peaks into
all open scopes, so each scope's peak is the maximum of what was folded into it and what
the counters say now. Opening a scope resets, so all that the counters hold belongs to
every open scope. The user is one more scope, the only one that covers all statistics:
it begins at their own resets, and `user_stats` answers as if nobody else had reset.

Between a reading of the counters and the reset that follows, an allocation by another
thread that is freed at once would go unseen; nothing runs between the two calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from memboard.collector.core.source import TORCH_ERRORS
from memboard.collector.format.columns import DEVICE_STATS
from memboard.collector.process.fork import ProcessLock

if TYPE_CHECKING:
    from collections.abc import Mapping

    Peaks: TypeAlias = tuple[int | None, ...]

POOLS: Final = ("all", "small_pool", "large_pool")
KEYS: Final = tuple((f"{stat}_bytes", pool) for pool in POOLS for stat in DEVICE_STATS)
"""The byte statistics whose peaks a scope keeps, in the order of the columns."""


class Counters(Protocol):
    """One device's counters: torch's, or a model of them in a test."""

    def stats(self) -> Mapping[str, Any] | None:
        """The nested statistics; None while the device is not in use."""

    def reset_peaks(self) -> None:
        """Set every peak to its current value."""


class Scope:
    """A stretch of time whose peaks are wanted."""

    __slots__ = ("folded",)

    def __init__(self) -> None:
        self.folded: Peaks | None = None


class FullScope:
    """A stretch of time of which the peaks of all statistics are wanted."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}


class Reading(NamedTuple):
    """The counters at one moment and the peaks of one scope up to it."""

    stats: Mapping[str, Any]
    peaks: Peaks
    """In the order of `KEYS`; None where the device lacks a statistic."""


class PeakLedger:
    """Safe to use from any thread; methods take microseconds."""

    def __init__(self, counters: Counters, *, resets: bool = True) -> None:
        """`resets` False: never reset; a scope's peaks are then the counters' own."""
        self._counters = counters
        self._resets = resets
        self._scopes: set[Scope] = set()
        self._full_scopes: set[FullScope] = set()
        self._user: dict[Any, Any] = {}
        self._lock = ProcessLock()

    def open(self) -> Scope:
        """Begin a scope now; scopes nest and overlap as they like."""
        scope = Scope()
        with self._lock.now:
            if self._resets:
                self._reset()
            self._scopes.add(scope)
        return scope

    def open_full(self) -> tuple[FullScope, Mapping[str, Any] | None]:
        """Begin a scope of all statistics now; it, and the statistics at this moment."""
        scope = FullScope()
        with self._lock.now:
            if self._resets:
                self._reset()
            self._full_scopes.add(scope)
            return scope, self._counters.stats()

    def close_full(self, scope: FullScope) -> Mapping[str, Any] | None:
        """End it: the statistics, with the peaks of its time; None while not in use.

        Of a ledger that never resets, the peaks are the counters' own.
        """
        with self._lock.now:
            self._full_scopes.discard(scope)
            stats = self._counters.stats()
            if isinstance(stats, dict):
                _raise(stats, scope.kept)
            return stats

    def cut(self, scope: Scope) -> Reading | None:
        """End a scope and begin it anew at the same moment, as steps do.

        None while the device is not in use.
        """
        with self._lock.now:
            if not self._resets:
                return self._read(scope)
            stats = self._reset()
            if stats is None:
                return None
            peaks, scope.folded = scope.folded, None
            return Reading(stats, peaks or peaks_of(stats))

    def close(self, scope: Scope) -> Reading | None:
        """End a scope. None while the device is not in use. Closing twice is harmless."""
        with self._lock.now:
            self._scopes.discard(scope)
            return self._read(scope)

    def user_stats(self, stats: Any) -> Any:
        """`stats` as they were had only the user reset peaks; changed in place."""
        with self._lock.now:
            if isinstance(stats, dict):
                _raise(stats, self._user)
            return stats

    def user_reset(self, reset: Any) -> Any:
        """Reset for the user by calling `reset`; every other scope keeps its peak."""
        with self._lock.now:
            try:
                stats = self._counters.stats()
            except TORCH_ERRORS:  # the user's call must not fail for ours
                stats = None
            result = reset()
            if stats is not None:
                self._fold(stats)
            self._user = {}
            return result

    def owes_user(self) -> bool:
        """Whether the user's peaks are known here alone: torch's are lower."""
        with self._lock.now:
            try:
                stats = self._counters.stats()
            except TORCH_ERRORS:  # then the user cannot read them either
                return False
            return stats is not None and _exceeds(self._user, stats)

    def _read(self, scope: Scope) -> Reading | None:
        stats = self._counters.stats()
        if stats is None:
            return None
        return Reading(stats, _highest(scope.folded, peaks_of(stats)))

    def _reset(self) -> Mapping[str, Any] | None:
        stats = self._counters.stats()
        if stats is None:
            return None
        self._counters.reset_peaks()
        self._fold(stats)
        _keep(self._user, stats)
        return stats

    def _fold(self, stats: Mapping[str, Any]) -> None:
        peaks = peaks_of(stats)
        for scope in self._scopes:
            scope.folded = _highest(scope.folded, peaks)
        for full in self._full_scopes:
            _keep(full.kept, stats)


def peaks_of(stats: Mapping[str, Any]) -> Peaks:
    """The peaks of `KEYS` in nested statistics; None where a statistic is missing."""
    return picked(stats, "peak")


def picked(stats: Mapping[str, Any], metric: str) -> Peaks:
    """One metric (current, peak) of every byte statistic, in the order of `KEYS`."""
    try:
        return tuple([stats[stat][pool][metric] for stat, pool in KEYS])
    except KeyError:
        lacking: dict[str, Any] = {}
        return tuple(
            [stats.get(s, lacking).get(pool, lacking).get(metric) for s, pool in KEYS]
        )


def _highest(folded: Peaks | None, peaks: Peaks) -> Peaks:
    if folded is None:
        return peaks
    return tuple(
        [
            high if low is None or (high is not None and high > low) else low
            for high, low in zip(folded, peaks, strict=True)
        ]
    )


def _keep(kept: dict[Any, Any], stats: Mapping[Any, Any]) -> None:
    """Raise `kept` to the peaks in `stats`: one number per statistic, nested alike."""
    for key, value in stats.items():
        if isinstance(value, dict):
            peak = value.get("peak")
            if peak is None:
                _keep(kept.setdefault(key, {}), value)
            elif peak > kept.get(key, -1):
                kept[key] = peak


def _raise(stats: dict[Any, Any], kept: Mapping[Any, Any]) -> None:
    """Raise the peaks in `stats` to those in `kept`, in place."""
    for key, high in kept.items():
        value = stats.get(key)
        if not isinstance(value, dict):
            continue
        if isinstance(high, dict):
            _raise(value, high)
        elif value.get("peak", high) < high:
            value["peak"] = high


def _exceeds(kept: Mapping[Any, Any], stats: Mapping[Any, Any]) -> bool:
    for key, high in kept.items():
        value = stats.get(key)
        if not isinstance(value, dict):
            continue
        if _exceeds(high, value) if isinstance(high, dict) else value["peak"] < high:
            return True
    return False
