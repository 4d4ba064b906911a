"""Files of settings, and what is said of those that cannot be."""

from __future__ import annotations

import pytest

from memboard.collector.config import load
from memboard.collector.errors import ConfigError, MemBoardError


@pytest.fixture
def write(tmp_path):
    """Writes a file of settings; gives its path."""

    def written(text, name="memboard.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return written


def error_of(*args, **kwargs):
    """The text with which settings are refused."""
    with pytest.raises(ConfigError) as raised:
        load(*args, **kwargs)
    assert isinstance(raised.value, (MemBoardError, ValueError))
    return str(raised.value)
