"""All statistics of the device's allocator, under torch's own flat names.

Peaks are the call's own: at its start they are the current values, at its end the
highest since then, whoever resets torch's counters in between. Where recording resets
nothing (`device_peaks: run`), they are what torch says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.format.columns import Column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.format.columns import Kind, Unit
    from collector.sources.device.accelerator import Device
    from collector.sources.device.peaks import FullScope, PeakLedger

MAX_STATS: Final = 400
"""torch has about 122; each private pool of CUDA graphs adds some more."""

MAX_SHAPES: Final = 16
"""Sets of names that are recorded, as private pools come and go."""

_KINDS: Final[Mapping[str, Kind]] = {
    "peak": "peak",
    "allocated": "counter",
    "freed": "counter",
}
"""By the last part of a name; all else is a gauge, but for counts named `num_...`."""


class DeviceStats:
    """Reads one device's statistics at the two ends of a call."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._columns: dict[tuple[str, ...], tuple[Column, ...]] = {}
        self._always: frozenset[str] | None = None
        """Names that every set so far has had."""

    def start(self) -> tuple[Any, dict[str, int]]:
        """What comes back at the end, and the statistics; empty while not in use."""
        ledger = self._device.ledger
        if ledger is None:
            return None, {}
        scope, stats = ledger.open_full()
        return (ledger, scope), flat(stats or {})

    def end(self, started: tuple[PeakLedger, FullScope] | None) -> dict[str, int]:
        """The statistics, with the peaks since `start`; empty while not in use."""
        if started is None:
            return {}
        ledger, scope = started
        return flat(ledger.close_full(scope) or {})

    def columns(self, stats: dict[str, int]) -> tuple[Column, ...]:
        """What `stats` are; the same object, kept for good, for the same names.

        Names that come and go make new tables: after `MAX_SHAPES` they are left out.
        """
        names = tuple(stats)
        known = self._columns.get(names)
        if known is not None:
            return known
        if len(self._columns) >= MAX_SHAPES:
            for name in names:
                if name not in (self._always or ()):
                    del stats[name]
            names = tuple(stats)
            known = self._columns.get(names)
            if known is not None:
                return known
        elif names:
            always = self._always
            self._always = frozenset(names) if always is None else always & set(names)
        columns = self._columns[names] = tuple(_column(name) for name in names)
        return columns


def flat(stats: Mapping[str, Any]) -> dict[str, int]:
    """Nested statistics as torch.cuda.memory_stats has them, sorted by name."""
    return dict(sorted(_leaves("", stats))[:MAX_STATS])


def _leaves(above: str, stats: Mapping[Any, Any]) -> Iterator[tuple[str, int]]:
    for key, value in stats.items():
        part = "_".join(map(str, key)) if isinstance(key, tuple) else str(key)
        if isinstance(value, dict):
            yield from _leaves(f"{above}{part}.", value)
        elif type(value) is int:
            yield above + part, value


def _column(name: str) -> Column:
    first, _, last = name.partition(".")
    unit: Unit = "bytes" if "bytes" in first or first.endswith("_size") else "count"
    kind = _KINDS.get(last.rpartition(".")[2], "gauge")
    if first.startswith("num_"):
        kind = "counter"
    return Column(name=name, unit=unit, group="device", kind=kind)
