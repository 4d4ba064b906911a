"""What was asked of `memboard run --on`, checked and put together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from collector.cli.failure import Failure
from tb_plugin.cli.prediction.ranks import Ranks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from collector.running.program import Program
    from collector.virtual.devices import Device

WARM_UP_STEPS: Final = 1
"""Before those that were asked for: optimizers make their states in the first one."""

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One program on one kind of device."""

    program: Program
    device: Device
    python: str
    run_dir: Path
    ranks: Ranks = field(default_factory=Ranks)
    num_devices: int = 1
    steps: int = 2
    """Beside the one to warm up."""
    timeout_seconds: float = 600.0
    alloc_conf: str = ""
    config: tuple[Path, ...] | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the program's environment, beside the caller's own."""
    outside_bytes: int | None = None
    is_verbose: bool = False
    is_quiet: bool = False
    """Whether what the program prints is kept from the terminal."""


def size_of(text: str) -> int:
    """Bytes of `1.5GiB`, `800MB` and the like; binary units, as everywhere here.

    Raises:
        ValueError: it is no size.
    """
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is no size such as 800MiB or 1.5GiB")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def device_of(text: str) -> Device:
    """The device that `--on` names.

    Raises:
        Failure: there is no such device.
    """
    from collector.virtual.devices import parse_device

    try:
        return parse_device(text)
    except ValueError as error:
        raise Failure(str(error), code=2) from error
