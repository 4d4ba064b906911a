"""Memory at the start and end of each collected call: the table `function/<name>`.

One row per end: statistics of the device, resident and virtual memory of the process,
and what hooks left on the root module. A start is written when the call starts, so that
a call that never ends is seen too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.clock.process_clock import now_ns
from collector.format.columns import AXES, Column
from collector.functions.device_stats import DeviceStats
from collector.sources.contract import SourceInfo
from collector.sources.host.rss import open_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.functions.contract import Call, Sink
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(
    name="functions", cost="150 us per collected call on a GPU, 20 us without"
)
DEVICE_INFO: Final = SourceInfo(name="functions.device", cost=INFO.cost)

TABLE_PREFIX: Final = "function/"
HOOK_PREFIX: Final = "hook."

START: Final = 0
END: Final = 1

_KEY: Final = (
    Column(name="iteration", unit="index", group="progress"),
    Column(name="context", unit="index", group="progress"),
)
_HOST: Final = (
    Column(name="rss_bytes", unit="bytes", group="process"),
    Column(name="vms_bytes", unit="bytes", group="process"),
)


class SnapsKind:
    """See the module."""

    info = INFO

    def __init__(
        self,
        sink: Sink,
        device: Device,
        *,
        on_device: Callable[[str], bool],
        on_host: Callable[[str], bool],
        hook_values: Callable[[Call], Mapping[str, Any]],
    ) -> None:
        """`on_device`, `on_host`: which functions.

        `hook_values`: of the root, by name; numbers, or what is one when it is encoded.
        """
        self._sink = sink
        self._device = DeviceStats(device)
        self._on_device = on_device
        self._on_host = on_host
        self._hook_values = hook_values
        self._sizes = open_sizes()
        self._started: dict[Call, Any] = {}
        """What the device's statistics want back at the end."""
        self._columns: dict[tuple[Any, ...], tuple[Column, ...]] = {}
        if device.absent is not None:
            absent = device.absent
            sink.note_kind(DEVICE_INFO, "absent", absent.reason, absent.remedy)

    def begin(self, call: Call) -> None:
        """Write the row of the start."""
        hooked = dict.fromkeys(self._hook_values(call))
        sizes = self._host(call)
        started: Any = None
        stats: dict[str, int] = {}
        if self._on_device(call.function):
            started, stats = self._device.start()
        self._put(call, START, now_ns(), stats, sizes, hooked)
        self._started[call] = started

    def end(self, call: Call, error: BaseException | None) -> None:  # noqa: ARG002
        """Write the row of the end, whether or not the call went well."""
        stats = self._device.end(self._started.pop(call, None))
        sizes = self._host(call)
        now = now_ns()
        self._put(call, END, now, stats, sizes, self._hook_values(call))

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """Memory is the process's; models do not matter."""

    def release(self) -> None:
        """Nothing is held between calls."""

    def close(self) -> None:
        """Give back the peak scopes of calls that never ended, and the descriptor."""
        for started in self._started.values():
            self._device.end(started)
        self._started = {}
        self._sizes.close()

    def _host(self, call: Call) -> tuple[int, int] | None:
        return self._sizes.sizes() if self._on_host(call.function) else None

    def _put(
        self,
        call: Call,
        context: int,
        now: int,
        stats: dict[str, int],
        sizes: tuple[int, int] | None,
        hooked: Mapping[str, Any],
    ) -> None:
        device_columns = self._device.columns(stats)
        shape = (id(device_columns), sizes is None, tuple(hooked))
        columns = self._columns.get(shape)
        if columns is None:
            columns = (*AXES, *_KEY, *(() if sizes is None else _HOST))
            columns += (*device_columns, *(_hook_column(name) for name in hooked))
            self._columns[shape] = columns
        row = [now, call.step, call.iteration, context, *(sizes or ())]
        row += [*stats.values(), *hooked.values()]
        table = TABLE_PREFIX + call.function
        self._sink.put_row(table, call.phase, columns, row, rolled_up=False)


def _hook_column(name: str) -> Column:
    unit: Any = "bytes" if name.startswith(("rss_", "npp_")) else "count"
    return Column(name=HOOK_PREFIX + name, unit=unit, group="process", dtype="f8")
