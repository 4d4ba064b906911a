"""A disk that a test fills."""

from __future__ import annotations

import pytest

from tests.collector.writing.clockwork import Disk


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)
