"""What torch offers to whoever watches for out-of-memory errors on one type of device.

All of torch's functions for it are private; what a release lacks is done without and said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from memboard.collector.core.source import Unavailable
from memboard.collector.sources.device.accelerator import find_device

if TYPE_CHECKING:
    from collections.abc import Callable

    Observer: TypeAlias = Callable[[int, int, int, int], None]
    """Given the device, the bytes asked of it, what torch may use of it, what is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchSide:
    """What torch offers for one type of device; tests replace it."""

    device_type: str
    attach: Callable[[Observer], Any]
    """Has the observer called at each out-of-memory error, before the exception is raised
    and without any lock of the allocator; for as long as the process lives. Starts the
    device."""
    in_use: Callable[[], bool]
    """Whether the process uses the device already."""
    when_in_use: Callable[[Callable[[], None]], Any] | None = None
    """Calls back once the device is there, before anything is allocated on it."""
    backend: Callable[[], str] | None = None
    """Which allocator is in use."""
    settings: Callable[[], str] | None = None
    """The allocator's settings as set last, from the environment or by the program."""


def find_torch_side(choice: str | int) -> TorchSide:
    """That of the device which the setting `device` names.

    Raises:
        Unavailable: there is no such device, or torch takes no observers for it.
    """
    device = find_device(choice, local_rank=0)
    if device.absent is not None:
        raise device.absent
    import torch

    names = (
        f"_{device.type}_attach_out_of_memory_observer",
        f"_{device.type}_attachOutOfMemoryObserver",
    )
    c = torch._C  # noqa: SLF001
    attach = next((getattr(c, name) for name in names if hasattr(c, name)), None)
    if attach is None:
        raise Unavailable(
            f"torch {torch.__version__} does not report out-of-memory errors on"
            f" {device.type}",
            "It does on CUDA and ROCm; elsewhere the exception itself is read.",
        )
    module = getattr(torch, device.type, None)
    memory = getattr(module, "memory", None)
    return TorchSide(
        device_type=device.type,
        attach=attach,
        in_use=device.in_use,
        when_in_use=getattr(module, "_lazy_call", None),
        backend=getattr(memory, "get_allocator_backend", None),
        settings=getattr(c, "_accelerator_getAllocatorSettings", None),
    )
