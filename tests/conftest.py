"""For all tests: nothing of the caller's environment reaches what is tested."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings_of_the_callers(monkeypatch):
    """Tests read `MEMBOARD_REAL_DATA` while they are collected, which is before."""
    for name in os.environ:
        if name.startswith("MEMBOARD_"):
            monkeypatch.delenv(name)
