"""What the operating system says of its clocks: which host's, and how far off they may be."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_TIME_NAMESPACE: Final = "/proc/self/ns/time"
_TIME_ERROR: Final = 5
"""`ntp_gettime` returns it where nothing keeps the clock."""

_MAX_ERROR_US: Final = 16_000_000
"""The kernel counts no further: from there on it says nothing."""


def host_id() -> str:
    """Equal in processes that share one monotonic clock; empty where unknown.

    The kernel's start and the time namespace: host names repeat in containers.
    """
    try:
        boot = Path(_BOOT_ID).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    try:
        namespace = os.readlink(_TIME_NAMESPACE)  # noqa: PTH115  # no path, a name
    except OSError:  # a kernel without time namespaces: there is only one
        namespace = ""
    return f"{boot} {namespace}".strip()


def wall_error_ns() -> int | None:
    """How far the system takes its wall clock to be from true time, at most.

    From the kernel's `maxerror`, which the program that keeps the clock (chrony, ntpd,
    systemd-timesyncd) maintains. None where nothing keeps it, or on another system.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = (ctypes.c_long * 16)()  # seconds, fraction, bound in us, more
        state = ctypes.CDLL(None).ntp_gettime(found)
    except (OSError, AttributeError):
        return None
    bound_us = found[2]
    if state in (-1, _TIME_ERROR) or not 0 <= bound_us < _MAX_ERROR_US:
        return None
    return bound_us * 1000
