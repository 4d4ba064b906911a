"""Fixtures of the collector's tests."""

from __future__ import annotations

import os
import sys

import pytest

from memboard.collector.process import lifecycle
from tests.examples_of_properties import load_profile
from tests.limits import lift

load_profile()

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


@pytest.fixture(scope="module", autouse=True)
def _patient():
    """Closing gives a disk up after 2 s; a busy machine's is not to be given up."""
    with pytest.MonkeyPatch.context() as patch:
        lift(patch.setattr)
        yield


@pytest.fixture(autouse=True)
def _nothing_compiled():
    """Another test of this process may have compiled something: hooks would stay away."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()
