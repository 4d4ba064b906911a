"""Gradients of activations in a trace, against what autograd's hooks were given."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from memboard.collector.format.memory import CATEGORIES
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.formats.traces import read_trace
from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.importer import Importer
from tests import programs

pytest.importorskip("torch")

RUNS = """
import os, sys
from pathlib import Path
import torch
from tests.virtual import gradient_hooks
torch.set_num_threads(1)
gradient_hooks.traced(sys.argv[1], Path(sys.argv[2]), "cpu")
sys.stdout.flush()
os._exit(0)
"""
MODELS = (
    "mlp",
    "mlp-square",
    "mlp-square-accumulate",
    "transformer",
    "transformer-reentrant",
    "transformer-nonreentrant",
    "transformer-amp",
    "transformer-accumulate",
    "conv",
    "conv-amp",
    "ddp",
    "ddp-views",
)
OF_LOSS = 4
"""Bytes of the first gradient, which no node makes: a number for each backward."""
AN_ACTIVATIONS, A_PARAMETERS = 2, 1


def kinds_of(profile, seen):
    """By life, what hooks saw of it: a gradient of a parameter, or of an activation."""
    lives, trace = profile.lives, profile.trace
    times = trace.memory.time_ns.astype(np.int64) + trace.base_ns
    begins = np.where(lives.born == NOTHING, 0, times[lives.born])
    ends = np.append(times, 1 << 62)[lives.gone]
    address = trace.memory.address[lives.event]
    kind = np.zeros(len(lives), np.int64)
    for time_us, data_ptr, of_parameter in seen:
        rows = np.flatnonzero(address == data_ptr)
        rows = rows[(begins[rows] <= time_us * 1000) & (ends[rows] >= time_us * 1000)]
        for row in rows[-1:]:
            is_parameters = of_parameter or kind[row] == A_PARAMETERS
            kind[row] = A_PARAMETERS if is_parameters else AN_ACTIVATIONS
    return kind


@pytest.fixture(scope="module")
def importer(tmp_path_factory):
    made = Importer(ColumnCache(tmp_path_factory.mktemp("cache")))
    yield made
    made.close()


@pytest.mark.parametrize("model", MODELS)
def test_all_gradients_of_activations_are_called_so_and_nothing_else(
    tmp_path, importer, model
):
    path = tmp_path / "rank_0.1.pt.trace.json"
    programs.run(RUNS, model, path)
    seen = pickle.loads(path.with_suffix(".seen").read_bytes())
    profile = TraceProfile(read_trace(path, importer)())
    kind, lives = kinds_of(profile, seen), profile.lives
    said = lives.category == CATEGORIES.index("activation_grad")
    size = lives.num_bytes
    missed = size[(kind == AN_ACTIVATIONS) & ~said]
    assert size[said].sum() > 1 << 20
    assert not (said & (kind != AN_ACTIVATIONS)).any()
    assert missed.max(initial=0) <= OF_LOSS
    # What is said of other gradients and of activations is as right as before.
    saved = lives.category == CATEGORIES.index("activation")
    assert size[saved & (kind != 0)].max(initial=0) <= OF_LOSS
    named = lives.category == CATEGORIES.index("grad")
    assert not (named & (kind != A_PARAMETERS)).any()
