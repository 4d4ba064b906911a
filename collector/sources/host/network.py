"""Bytes per second over the host's network.

Where the host shows physical interfaces, only they count: a bridge, a bond or a
container's cable would count the same bytes again. The loopback never counts. RDMA
(InfiniBand, RoCE) bypasses these counters.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.format.columns import NETWORK
from collector.sources.contract import FunctionSource, SourceInfo, Unavailable
from collector.sources.host.rates import Rates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.config import RecordConfig
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(name="network", cost="0.1 ms per sample")

_INTERFACES: Final = Path("/sys/class/net")


def open_source(config: RecordConfig, _device: Device) -> FunctionSource:
    """Open the counters of the interfaces there are now.

    Raises:
        Unavailable: there is no interface besides the loopback.
    """
    import psutil

    names = chosen(psutil.net_io_counters(pernic=True, nowrap=False), _INTERFACES)
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

    return FunctionSource(
        info=INFO,
        columns=NETWORK,
        interval_seconds=config.network,
        sample=Rates(counters),
    )


def chosen(names: Iterable[str], interfaces: Path) -> list[str]:
    """The interfaces to count; `interfaces` is where Linux describes them."""
    outward = [name for name in names if name not in {"lo", "lo0"}]
    physical = [name for name in outward if (interfaces / name / "device").exists()]
    return physical or outward
