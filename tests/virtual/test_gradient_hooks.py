"""Gradients of activations in a history, against what autograd's hooks were given."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots import tables_of
from memboard.collector.virtual.devices import parse_device
from memboard.collector.virtual.environment import environment
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.categories.attribution import attribution
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests import programs
from tests.virtual.running import ROOT, python

RUNS = """
import os, sys
from pathlib import Path
from tests.virtual import gradient_hooks
gradient_hooks.main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
sys.stdout.flush()
os._exit(0)
"""
RECALL = {
    "mlp": (0.9, 0.8),
    "mlp-square": (0.9, 0.8),
    "mlp-accumulate": (0.9, 0.8),
    "mlp-square-accumulate": (0.3, 0.25),
    "transformer": (0.99, 0.75),
    "transformer-reentrant": (0.99, 0.75),
    "transformer-nonreentrant": (0.99, 0.85),
    "transformer-amp": (0.95, 0.75),
    "transformer-accumulate": (0.85, 0.7),
    "conv": (0.85, 0.6),
    "conv-amp": (0.85, 0.85),
    "ddp": (0.9, 0.8),
    "ddp-views": (0.9, 0.8),
}
"""At least, by bytes: with stacks of frees, and of allocations alone. As large as parameters
they are told only where gradients of these stay: with accumulation, in the first backward."""


def trained(folder, model, context):
    """The history's replay, and by life what hooks saw of it: 1 of a parameter, 2 not."""
    variables = environment(
        parse_device("h100"), python=python(), accounting=folder / "accounting"
    )
    variables["PYTHONPATH"] = str(ROOT)
    out = folder / "snapshot.pickle"
    programs.run(RUNS, model, context, out, env=variables, python=python())
    raw, seen = pickle.loads(out.read_bytes())
    snapshot = snapshot_of(tables_of(raw))
    (device,) = [one for one in snapshot.devices if len(one.events)]
    replay = Replay(snapshot, device)
    lives, times = replay.lives, replay.device.events.time_us
    begins = np.where(lives.born < 0, 0, times[lives.born])
    ends = np.append(times, 1 << 62)[lives.freed]
    kind = np.zeros(len(lives), np.int64)
    for time_us, address, of_parameter in seen:
        rows = np.flatnonzero(lives.addr == address)
        rows = rows[(begins[rows] <= time_us) & (ends[rows] >= time_us)]
        kind[rows[-1]] = 1 if of_parameter or kind[rows[-1]] == 1 else 2
    return replay, kind


@pytest.mark.parametrize("context", ["all", "alloc"])
@pytest.mark.parametrize("model", RECALL)
def test_what_is_called_a_gradient_of_an_activation_is_one(tmp_path, model, context):
    replay, kind = trained(tmp_path, model, context)
    category, size = attribution(replay).category, replay.lives.size
    said = category == CATEGORIES.index("activation_grad")
    right, every = size[said & (kind == 2)].sum(), size[kind == 2].sum()
    print(f"{model}, {context}: recall {right / every:.3f} of {every / 2**20:.0f} MiB")
    assert every > 0
    assert size[said].sum() == right
    assert right >= RECALL[model][context == "alloc"] * every
    saved = category == CATEGORIES.index("activation")
    assert not (saved & (kind != 0)).any()
