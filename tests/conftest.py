"""For all tests: nothing of the caller's environment reaches what is tested."""

from __future__ import annotations

import os


def pytest_collection_finish() -> None:
    """Tests read `MEMBOARD_REAL_DATA` while they are collected, which is before."""
    for name in [name for name in os.environ if name.startswith("MEMBOARD_")]:
        del os.environ[name]
