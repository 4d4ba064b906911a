"""The virtual GPU that this process runs on, from its environment."""

from __future__ import annotations

import os

SPEC = "MEMBOARD_VIRTUAL_GPU"
"""The environment variable that describes the devices, `key=value;` each."""

ACCOUNTING = "MEMBOARD_VIRTUAL_ACCOUNTING"
"""The environment variable with the file in which processes count together."""


def virtual_device() -> str | None:
    """The words for this process's virtual device ("virtual H100 80GB"), else None."""
    return value_of("label")


def value_of(key: str) -> str | None:
    """What the environment says of the virtual devices under `key`."""
    for item in os.environ.get(SPEC, "").split(";"):
        name, _, value = item.partition("=")
        if name == key:
            return value
    return None
