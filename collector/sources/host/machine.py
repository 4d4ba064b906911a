"""The host as a whole: processors, memory, swap, disks and network."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.source import Unavailable
from memboard.collector.format.columns import CPU, DISK, MEMORY, NETWORK, SWAP
from memboard.collector.process.control_group import find_group
from memboard.collector.sources.source import Reader, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.format.columns import Column
    from memboard.collector.sources.device.accelerator import Device

_MEMINFO: Final = Path("/proc/meminfo")
_INTERFACES: Final = Path("/sys/class/net")
_LOADAVG: Final = Path("/proc/loadavg")


def _open_cpu(_config: RecordConfig, _device: Device) -> Reader:
    import psutil

    shares, num_processors = Shares(psutil.cpu_times), os.cpu_count() or 1

    def sample() -> Sequence[float | None]:
        return (*shares(), runnable_pct(_LOADAVG, num_processors))

    return Reader(sample)


def runnable_pct(loadavg: Path, num_processors: int) -> float | None:
    """Threads that run or wait, without the one that asks; None: not on this system."""
    try:
        runnable = loadavg.read_text(encoding="ascii").split()[3].partition("/")[0]
        return 100.0 * max(0, int(runnable) - 1) / num_processors
    except (OSError, ValueError, IndexError):
        return None


_NUM_SHARES: Final = len(CPU) - 1


class Shares:
    """Shares of the processors' time since the previous call; None at the first one.

    `psutil.cpu_percent` would do it with state that older releases share with the
    user's own calls.
    """

    def __init__(self, cpu_times: Callable[[], Any]) -> None:
        """`cpu_times` returns psutil's named tuple of seconds."""
        self._cpu_times = cpu_times
        self._before: Any = None

    def __call__(self) -> Sequence[float | None]:
        """Total, user, system, waiting for input and output, and stolen; percent."""
        before, now = self._before, self._cpu_times()
        self._before = now
        if before is None:
            return (None,) * _NUM_SHARES
        spent = {
            name: max(0.0, new - old)
            for name, old, new in zip(now._fields, before, now, strict=True)
            # Linux counts a guest's time in user and nice already.
            if not name.startswith("guest")
        }
        whole = sum(spent.values())
        if whole <= 0:
            return (None,) * _NUM_SHARES
        waiting, stolen = spent.get("iowait"), spent.get("steal")
        user = spent["user"] + spent.get("nice", 0.0)
        system = sum(spent.get(n, 0.0) for n in ("system", "irq", "softirq"))
        busy = whole - spent["idle"] - (waiting or 0.0)
        share = 100.0 / whole
        return (
            busy * share,
            user * share,
            system * share,
            None if waiting is None else waiting * share,
            None if stolen is None else stolen * share,
        )


def _open_memory(_config: RecordConfig, _device: Device) -> Reader:
    """The limit is None where there is none."""
    import psutil

    group = find_group()

    def sample() -> Sequence[int | None]:
        host = psutil.virtual_memory()
        return (
            host.total,
            host.used,
            host.available,
            getattr(host, "cached", None),
            None if group is None else group.limit_bytes(),
            None if group is None else group.used_bytes(),
        )

    return Reader(sample)


def _open_swap(_config: RecordConfig, _device: Device) -> Reader:
    total, _ = _swap()
    if not total:
        raise Unavailable("this host has no swap")
    return Reader(_swap)


def _swap() -> Sequence[int]:
    if _MEMINFO.exists():
        # psutil would warn where it finds no paging rates, which are not wanted here.
        return swap_of(_MEMINFO.read_text(encoding="ascii"))
    import psutil

    swap = psutil.swap_memory()
    return swap.total, swap.used


def swap_of(meminfo: str) -> tuple[int, int]:
    """Total and used swap bytes from the text of /proc/meminfo."""
    kib = {
        key: int(rest.split()[0])
        for key, _, rest in (line.partition(":") for line in meminfo.splitlines())
        if key in {"SwapTotal", "SwapFree"}
    }
    total = kib.get("SwapTotal", 0)
    return total * 1024, (total - kib.get("SwapFree", 0)) * 1024


class Rates:
    """Turns running counters into rates per second between two calls.

    None where there is none: at the first call, and where a counter went back (it
    wrapped, or a device left) or no time has passed.
    """

    def __init__(
        self,
        counters: Callable[[], Sequence[int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`counters` returns equally many numbers each time."""
        self._counters = counters
        self._clock = clock
        self._before: Sequence[int] | None = None
        self._time = 0.0

    def __call__(self) -> Sequence[float | None]:
        now, time_now = self._counters(), self._clock()
        before, elapsed = self._before, time_now - self._time
        self._before, self._time = now, time_now
        if before is None or elapsed <= 0:
            return [None] * len(now)
        return [
            (new - old) / elapsed if new >= old else None
            for new, old in zip(now, before, strict=True)
        ]


def _open_disk(_config: RecordConfig, _device: Device) -> Reader:
    _disk_counters()
    return Reader(Rates(_disk_counters))


def _disk_counters() -> Sequence[int]:
    import psutil

    # psutil's own guard against wrapping keeps state that the user's calls share.
    now = psutil.disk_io_counters(perdisk=False, nowrap=False)
    if now is None:
        raise Unavailable(
            "the system shows no disk counters here",
            "In a container, let /proc/diskstats be seen.",
        )
    return now.read_bytes, now.write_bytes, now.read_count + now.write_count


def _open_network(_config: RecordConfig, _device: Device) -> Reader:
    import psutil

    names = counted(psutil.net_io_counters(pernic=True, nowrap=False), _INTERFACES)
    if not names:
        raise Unavailable(
            "this host has no network interface besides the loopback",
            "In a container, give it a network.",
        )

    def counters() -> Sequence[int]:
        now = psutil.net_io_counters(pernic=True, nowrap=False)
        there = [now[name] for name in names if name in now]
        return sum(nic.bytes_sent for nic in there), sum(
            nic.bytes_recv for nic in there
        )

    return Reader(Rates(counters))


def counted(names: Iterable[str], interfaces: Path) -> list[str]:
    """The network interfaces to count; `interfaces` is where Linux describes them.

    Where the host shows physical ones, only they count: a bridge, a bond or a container's
    cable would count the same bytes again. The loopback never counts. RDMA (InfiniBand,
    RoCE) bypasses these counters.
    """
    outward = [interface for interface in names if interface not in {"lo", "lo0"}]
    physical = [
        interface
        for interface in outward
        if (interfaces / interface / "device").exists()
    ]
    return physical or outward


def _source(
    name: str,
    cost: str,
    columns: tuple[Column, ...],
    open_source: Callable[[RecordConfig, Device], Reader],
    times: float = 1.0,
) -> Source:
    return Source(
        name=name,
        cost=f"{cost} ms per sample",
        columns=lambda _: columns,
        open=open_source,
        setting="host",
        times=times,
        per_host=True,
    )


SOURCES: Final = (
    _source("cpu", "0.03", CPU, _open_cpu),
    _source("memory", "0.1", MEMORY, _open_memory),
    _source("swap", "0.05", SWAP, _open_swap, 10),
    _source("disk", "0.1", DISK, _open_disk, 2),
    _source("network", "0.1", NETWORK, _open_network, 2),
)
