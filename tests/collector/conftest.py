"""Fixtures of the collector's tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from collector import lifecycle

# How long an example takes says something about the machine, not about the code.
settings.register_profile("memboard", deadline=None)
settings.load_profile("memboard")

LAUNCHERS = ("OMPI_", "MV2_", "PMI_", "PMIX_", "PALS_", "SLURM_", "TORCHELASTIC_")
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")
NAMES += ("NODE_RANK", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """No launcher's variables and no settings from outside, no recorder left behind."""
    for name in tuple(os.environ):
        if name in NAMES or name.startswith((*LAUNCHERS, "MEMBOARD_")):
            monkeypatch.delenv(name)
    yield
    left = lifecycle.newest()
    while (recorder := lifecycle.newest()) is not None:
        recorder.close_for(None)
    assert left is None, "a test left its recorder running"
