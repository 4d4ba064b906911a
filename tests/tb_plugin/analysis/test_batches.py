"""A batch that a program moves to the device in its loop, of which a forward is given a part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.categories.attribution import attribution
from memboard.tb_plugin.analysis.snapshots.extras import Tensors
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.tb_plugin.analysis.made_programs import (
    MIB,
    Program,
    at,
    in_loop,
    in_module,
    in_optimizer,
)

MODEL = [at("__init__", 12, "/home/me/model.py"), at("<module>", 190)]
LOGS = [at("log", 7, "/home/me/train.py"), *in_loop(60)]
WEIGHT, INPUTS, TARGETS, SCORES = 5 * MIB, 4 * MIB, 6 * MIB, 3 * MIB


def trained(*, copies=0, steps=4):
    """Sizes of what is said of each allocation; the last batch is there at the end."""
    program = Program()
    weight = program.alloc(WEIGHT, MODEL)
    loop = []
    for _ in range(steps):
        new = [
            *(program.alloc(WEIGHT, in_loop(40)) for _ in range(copies)),
            program.alloc(INPUTS, in_loop(41)),
            program.alloc(TARGETS, in_loop(42)),
            program.alloc(SCORES, LOGS),  # another function's
        ]
        for addr in loop:
            program.free(addr)
        loop = new
        saved = program.alloc(8 * MIB, in_module(10))
        grad = program.alloc(WEIGHT, [])
        program.free(saved)
        program.free(program.alloc(MIB, in_optimizer()))
        program.free(grad)
    snapshot = snapshot_of(tables_of(program.snapshot()))
    tensors = Tensors(
        address=np.array([weight, loop[copies]], np.int64),
        num_bytes=np.array([WEIGHT, INPUTS], np.int64),
        category=np.array([CATEGORIES.index(name) for name in ("param", "input")]),
        name=("weight", "input 0"),
        device=np.full(2, NOTHING),
    )
    snapshot = replace(snapshot, tensors=tensors)
    (device,) = [one for one in snapshot.devices if len(one.events)]
    replay = Replay(snapshot, device)
    category = attribution(replay).category
    found: dict[str, list[int]] = {}
    for code, size in zip(category.tolist(), replay.lives.size.tolist(), strict=True):
        found.setdefault(CATEGORIES[code], []).append(size)
    return found


@pytest.mark.parametrize("copies", [0, 1, 3])
def test_targets_beside_a_recorded_input_are_inputs_and_copies_of_parameters_not(
    copies,
):
    found = trained(copies=copies)
    assert sorted(found["input"]) == sorted([INPUTS, TARGETS] * 4)
    assert found["other"].count(SCORES) == 4
    assert found["other"].count(WEIGHT) == 4 * copies
