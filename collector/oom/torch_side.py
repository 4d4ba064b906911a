"""torch's side of out-of-memory errors: the one way to it, which tests replace.

All of it is private to torch. What a release lacks is done without and said; nothing here
starts a device that training has not started.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from collector.sources.contract import Unavailable
from collector.sources.device.accelerator import find_device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Observer: TypeAlias = Callable[[int, int, int, int], None]
    """Given the device, the bytes asked of it, what torch may use of it, what is free."""

_SETTINGS_VARIABLES: Final = (
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchSide:
    """What torch offers for one type of device."""

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
            f"torch {torch.__version__} does not tell of out-of-memory errors on"
            f" {device.type}",
            "It does on CUDA and ROCm; elsewhere the exception itself is looked at.",
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


def settings_text() -> str:
    """The allocator's settings as the environment has them; empty: none."""
    found = (os.environ.get(name, "") for name in _SETTINGS_VARIABLES)
    return next(filter(None, found), "")


def allocator_facts(side: TorchSide | None) -> Mapping[str, Any]:
    """The allocator's settings, which one it is, and what of both torch says itself."""
    facts: dict[str, Any] = {"settings": settings_text(), "backend": None}
    if side is not None and side.in_use():
        if side.backend is not None:
            with suppress(Exception):
                facts["backend"] = str(side.backend())
        if side.settings is not None:
            with suppress(Exception):
                facts["settings"] = str(side.settings()) or facts["settings"]
    facts.update(_parsed(facts["settings"]))
    return facts


def _parsed(text: str) -> dict[str, Any]:
    """What of the settings a reader asks for most; None where they do not say."""
    entries = dict(
        part.split(":", 1) for part in text.replace(" ", "").split(",") if ":" in part
    )
    found: dict[str, Any] = {
        "expandable_segments": None,
        "max_split_size_bytes": None,
        "garbage_collection_threshold": None,
    }
    if "expandable_segments" in entries:
        found["expandable_segments"] = entries["expandable_segments"].lower() == "true"
    with suppress(ValueError, KeyError):
        found["max_split_size_bytes"] = int(entries["max_split_size_mb"]) << 20
    with suppress(ValueError, KeyError):
        threshold = float(entries["garbage_collection_threshold"])
        found["garbage_collection_threshold"] = threshold
    return found
