"""What is measured: the ordered table of contents, and how sources are opened.

One file per thing measured; `contract` says what a source is. `STEP` and `TIMED` list
them in the order their columns and their notes appear. A source that is switched off,
cannot measure here, or fails to open is not missing silently: it is returned as
`NotOpened` with the reason and the remedy that the page shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from collector.sources.contract import (
    SourceInfo,
    StepSource,
    TimedSource,
    Unavailable,
    remedy_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.config import RecordConfig
    from collector.format.columns import Column
    from collector.sources.device.accelerator import Device

_Source = TypeVar("_Source", StepSource, TimedSource)

STEP: Final = (
    "device",  # torch's allocator: allocated, active, reserved ..., current and peak
    "rss",  # resident memory of the process
)
"""Sampled by `rec.step()`; each is a module here with `INFO`, `columns_of`
and `open_source`."""

TIMED: Final = (
    "device_free",  # the whole device, whoever uses it
    "gpu",  # NVML's sensors
    "pinned",  # torch's pinned host memory
    "process",  # RSS, VMS, shared, threads, descriptors, CPU
    "process_full",  # USS and PSS
    "workers",  # the dataloader workers
    "cpu",  # the host's processors
    "memory",  # the host's memory and the control group's limit
    "swap",  # the host's swap
    "disk",  # the host's disks
    "network",  # the host's network interfaces
)
"""Sampled on the recorder's thread; each has a setting of the same name."""

HOMES: Final = {
    "device": "device.used",
    "rss": "host.rss",
    "device_free": "device.free",
    "gpu": "device.sensors",
    "pinned": "device.pinned",
    "process": "host.process",
    "process_full": "host.process_full",
    "workers": "host.workers",
    "cpu": "host.cpu",
    "memory": "host.memory",
    "swap": "host.swap",
    "disk": "host.disk",
    "network": "host.network",
}
"""The module of each, below this package."""

HOST_WIDE: Final = ("cpu", "memory", "swap", "disk", "network")
"""Timed sources that tell the same on every rank of a host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotOpened:
    """A source that records nothing, and why. Same words as a "source" note's data."""

    info: SourceInfo
    status: Literal["absent", "off", "failed"]
    """absent: cannot measure here; off: switched off; failed: raised while opening."""
    reason: str
    remedy: str
    error: BaseException | None = None
    """Set where the status is failed, for the log."""
    again: Callable[[], Any] | None = None
    """Tries once more to open it, where it failed."""
    columns: tuple[Column, ...] = ()
    """Those of a step source that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Generic[_Source]):
    """Live sources, to be closed by the caller, and the rest with their reasons."""

    sources: tuple[_Source, ...]
    not_opened: tuple[NotOpened, ...]


def open_step_sources(config: RecordConfig, device: Device) -> Opened[StepSource]:
    """Open what `rec.step()` samples. Never raises.

    The device source owns the peak ledger; `device.ledger` is it while it lives.
    """
    switches = {"device": config.device != "off", "rss": True}
    sources: list[StepSource] = []
    not_opened: list[NotOpened] = []
    for name in STEP:
        opened = _open(name, switches[name], config, device)
        if isinstance(opened, NotOpened):
            not_opened.append(opened)
        else:
            sources.append(opened)
    return Opened(sources=tuple(sources), not_opened=tuple(not_opened))


def open_timed_sources(
    config: RecordConfig, device: Device, local_rank: int = 0
) -> Opened[TimedSource]:
    """Open what the recorder's own thread samples. Never raises.

    Opening may take tens of milliseconds (NVML): call it on that thread.
    """
    elsewhere = config.host_ranks == "first" and local_rank != 0
    sources: list[TimedSource] = []
    not_opened: list[NotOpened] = []
    for name in TIMED:
        enabled = getattr(config, name) is not False
        opened = _open(name, enabled, config, device, elsewhere and name in HOST_WIDE)
        if isinstance(opened, NotOpened):
            not_opened.append(opened)
        else:
            sources.append(opened)
    return Opened(sources=tuple(sources), not_opened=tuple(not_opened))


def _open(
    name: str,
    enabled: bool,
    config: RecordConfig,
    device: Device,
    elsewhere: bool = False,
) -> Any:
    info = SourceInfo(name=name, cost="")
    module: Any = None
    try:
        module = import_module(f"collector.sources.{HOMES[name]}")
        info = module.INFO
        if enabled and elsewhere:
            return NotOpened(
                info=info,
                status="off",
                reason="recorded by the first rank of each host, once for all",
                remedy='Set host_ranks: "all" to record it on every rank.',
            )
        if enabled:
            return module.open_source(config, device)
    except Unavailable as missing:
        return NotOpened(
            info=info, status="absent", reason=missing.reason, remedy=missing.remedy
        )
    except Exception as error:  # noqa: BLE001  # one source must not cost the others
        return NotOpened(
            info=info,
            status="failed",
            reason=f"{type(error).__name__}: {error}",
            remedy=remedy_of(name, error),
            error=error,
            again=None
            if module is None
            else lambda: module.open_source(config, device),
            columns=module.columns_of(config) if module and name in STEP else (),
        )
    return NotOpened(
        info=info,
        status="off",
        reason="switched off in the configuration",
        remedy=f"Remove {name} from the configuration, or set it to true.",
    )
