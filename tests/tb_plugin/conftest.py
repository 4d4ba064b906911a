"""Fixtures of the plugin's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.builders import RunBuilder

if TYPE_CHECKING:
    from pathlib import Path

# No deadlines: the machine is shared, and speed is what tests/perf measures.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def run(tmp_path: Path) -> RunBuilder:
    """An empty run `exp` in the logdir `tmp_path`."""
    return RunBuilder(tmp_path / "exp")
