"""MemBoard's TensorBoard plugin: reads what the collector wrote and serves the page."""

from __future__ import annotations

PLUGIN_NAME = "memboard"
"""In URLs, and what the entry point is called."""


def plugin_version() -> str:
    """The installed version of MemBoard."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("memboard")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"
