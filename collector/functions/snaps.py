"""Memory at the start and end of each collected call: the table `function/<name>`.

One row per end: statistics of the device, resident and virtual memory of the process,
and what hooks left on the root module. A start is written when the call starts, so that
a call that never ends is seen too.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.clock.process_clock import now_ns
from memboard.collector.core.calls import WHOLE_STEP
from memboard.collector.core.source import SourceInfo
from memboard.collector.format.columns import AXES, Column
from memboard.collector.sources.host.rss import BOUNDARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from memboard.collector.core.calls import Call, Results, Sink
    from memboard.collector.format.columns import Kind, Unit
    from memboard.collector.sources.device.accelerator import Device
    from memboard.collector.sources.device.peaks import FullScope, PeakLedger
    from memboard.collector.sources.host.rss import PsutilSource, StatmSource

    HookValues = Callable[[], Mapping[str, float | None]]

INFO: Final = SourceInfo(
    name="functions", cost="150 us per collected call on a GPU, 20 us without"
)
DEVICE_INFO: Final = SourceInfo(name="functions.device", cost=INFO.cost)

TABLE_PREFIX: Final = "function/"
HOOK_PREFIX: Final = "hook."

START: Final = 0
END: Final = 1

_ROW_BYTES: Final = 1000
_STAT_BYTES: Final = 100
"""Of a row that is yet to be made, and of each of the device's statistics in it, about."""

_KEY: Final = (
    Column(name="iteration", unit="index", group="progress"),
    Column(name="context", unit="index", group="progress"),
)
_HOST: Final = (
    Column(name="rss_bytes", unit="bytes", group="process"),
    Column(name="vms_bytes", unit="bytes", group="process"),
)


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


class SnapsKind:
    """Writes the rows of both ends."""

    info = INFO

    def __init__(
        self,
        sink: Sink,
        device: Device,
        sizes: StatmSource | PsutilSource,
        *,
        on_device: Callable[[str], bool],
        on_host: Callable[[str], bool],
        hook_values: Callable[[Call], HookValues],
    ) -> None:
        """`on_device`, `on_host`: which functions.

        `hook_values`: what makes those of the root, by name, at this moment.
        """
        self._sink = sink
        self._device = DeviceStats(device)
        # Asked at both ends of each call, and the answer stays.
        self._on_device = functools.cache(on_device)
        self._on_host = functools.cache(on_host)
        self._hook_values = hook_values
        self._sizes = sizes
        self._started: dict[Call, Any] = {}
        """What the device's statistics want back at the end."""
        self._columns: dict[tuple[Any, ...], tuple[Column, ...]] = {}
        if device.absent is not None:
            absent = device.absent
            sink.note_kind(DEVICE_INFO, "absent", absent.reason, absent.remedy)

    def begin(self, call: Call) -> None:
        """Leave the row of the start to be written."""
        hooked = self._hook_values(call)
        sizes = self._host(call)
        started: Any = None
        stats: dict[str, int] = {}
        if self._on_device(call.function):
            started, stats = self._device.start()
        self._put(call, START, now_ns(), stats, sizes, hooked)
        self._started[call] = started

    def end(self, call: Call, error: BaseException | None) -> None:  # noqa: ARG002
        """Likewise of the end, whether or not the call went well."""
        started = self._started.pop(call, None)
        stats = {} if started is None else self._device.end(started)
        sizes = self._host(call)
        now = now_ns()
        self._put(call, END, now, stats, sizes, self._hook_values(call))

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """Memory is the process's; models do not matter."""

    def release(self) -> None:
        """Nothing is held between calls."""

    def close(self) -> None:
        """Give back the peak scopes of calls that never ended."""
        for started in self._started.values():
            if started is not None:
                self._device.end(started)
        self._started = {}

    def _host(self, call: Call) -> tuple[int, int] | None:
        if not self._on_host(call.function):
            return None
        at_boundary = BOUNDARY.sizes if call.function == WHOLE_STEP else None
        return at_boundary or self._sizes.sizes()

    def _put(
        self,
        call: Call,
        context: int,
        now: int,
        stats: dict[str, int],
        sizes: tuple[int, int] | None,
        hooked: HookValues,
    ) -> None:
        size_bytes = _ROW_BYTES + _STAT_BYTES * len(stats)
        self._sink.put_later(
            size_bytes, self._write, call, context, now, stats, sizes, hooked
        )

    # On the writer's thread.

    def _write(
        self,
        results: Results,
        call: Call,
        context: int,
        now: int,
        stats: dict[str, int],
        sizes: tuple[int, int] | None,
        hook_values: HookValues,
    ) -> None:
        hooked = hook_values()
        device_columns = self._device.columns(stats)
        shape = (id(device_columns), sizes is None, tuple(hooked))
        columns = self._columns.get(shape)
        if columns is None:
            columns = (*AXES, *_KEY, *(() if sizes is None else _HOST))
            columns += (
                *device_columns,
                *(_hook_column(attribute) for attribute in hooked),
            )
            self._columns[shape] = columns
        row = [now, call.step, call.iteration, context, *(sizes or ())]
        row += [*stats.values(), *hooked.values()]
        table = TABLE_PREFIX + call.function
        results.put_row(table, call.phase, columns, row, rolled_up=False)


def _hook_column(attribute: str) -> Column:
    unit: Any = "bytes" if attribute.startswith(("rss_", "npp_")) else "count"
    return Column(name=HOOK_PREFIX + attribute, unit=unit, group="process", dtype="f8")


class DeviceStats:
    """All statistics of a device's allocator at the two ends of a call, under torch's names.

    Peaks are the call's own: at its start they are the current values, at its end the
    highest since then, whoever resets torch's counters in between. Where recording resets
    nothing (`device_peaks: run`), they are what torch says.
    """

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

    def end(self, started: tuple[PeakLedger, FullScope]) -> dict[str, int]:
        """The statistics, with the peaks since `start`."""
        ledger, scope = started
        return flat(ledger.close_full(scope) or {})

    def columns(self, stats: dict[str, int]) -> tuple[Column, ...]:
        """What `stats` are; the same object, kept for good, for the same names.

        Names that come and go make new tables: after `MAX_SHAPES` they are left out.
        """
        names = tuple(stats)
        columns = self._columns.get(names)
        if columns is not None:
            return columns
        if len(self._columns) >= MAX_SHAPES:
            for stat in names:
                if stat not in (self._always or ()):
                    del stats[stat]
            names = tuple(stats)
            columns = self._columns.get(names)
            if columns is not None:
                return columns
        elif names:
            always = self._always
            self._always = frozenset(names) if always is None else always & set(names)
        columns = self._columns[names] = tuple(_column(stat) for stat in names)
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


def _column(stat: str) -> Column:
    first, _, last = stat.partition(".")
    unit: Unit = "bytes" if "bytes" in first or first.endswith("_size") else "count"
    kind = _KINDS.get(last.rpartition(".")[2], "gauge")
    if first.startswith("num_"):
        kind = "counter"
    return Column(name=stat, unit=unit, group="device", kind=kind)
