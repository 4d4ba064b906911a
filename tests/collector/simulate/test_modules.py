"""Simulated module captures: their sums, their shape, and how many there are."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest

from collector.format.memory import CATEGORIES, STATES
from collector.simulate import SimulatedRun, write_run
from collector.simulate.modules.captures import is_tracked, tracked_steps
from collector.simulate.modules.modules import ROOT, ShardedStep
from collector.simulate.modules.transformer import TransformerShape
from tests.recordings import read_run

if TYPE_CHECKING:
    from pathlib import Path

SHAPE = TransformerShape(
    num_layers=3,
    hidden=64,
    feed_forward=128,
    num_heads=4,
    vocabulary=512,
    num_shards=4,
    max_tokens=256,
)


@pytest.fixture
def tables() -> dict:
    step = ShardedStep(SHAPE)
    log = step.run(256)
    return {
        **step.modules(),
        **log.tables(unattributed_bytes=4096, duration_us=500_000),
    }


def test_every_block_is_freed_as_what_it_was(tables: dict):
    alive: dict[int, tuple[int, int, int]] = {}
    events = tables["events"]
    rows = zip(
        *(events[n].tolist() for n in ("storage", "delta_bytes", "category", "module")),
        strict=True,
    )
    for storage, delta, category, module in rows:
        if delta > 0:
            assert storage not in alive
            alive[storage] = (delta, category, module)
        else:
            assert alive.pop(storage) == (-delta, category, module)
        assert delta % 512 == 0
    left = defaultdict(int)
    for size, category, _ in alive.values():
        left[CATEGORIES[category]] += size
    # The step leaves parameters and moments: two fp32 numbers for each of one.
    assert set(left) == {"sharded_param", "optimizer", "other"}
    assert left["optimizer"] == 2 * left["sharded_param"]
    assert left["other"] == 4096
    assert left["sharded_param"] >= SHAPE.num_parameters // 4 * 4


def test_boundaries_nest_and_name_modules(tables: dict):
    bounds, modules = tables["boundaries"], tables["modules"]
    assert modules["fqn"][0] == ROOT
    assert modules["fqn"][4] == f"{ROOT}.layers.0.attention_norm"
    assert (np.diff(bounds["event"]) >= 0).all()
    assert (np.diff(bounds["time_us"]) >= 0).all()
    assert bounds["event"][-1] <= len(tables["events"]["time_us"])
    assert abs(int(tables["events"]["time_us"][-1]) - 500_000) <= 500_000 * 0.01
    opened: list[int] = []
    for module, index in zip(bounds["module"], bounds["state"], strict=True):
        state = STATES[index]
        if state.startswith("before_pre"):
            parent = modules["parent"][module]
            while opened and parent >= 0 and opened[-1] != parent:
                parent = modules["parent"][parent]
            assert not opened or opened[-1] == parent
            opened.append(int(module))
        elif state.startswith("after_post"):
            assert opened.pop() == module
    assert opened == []


def test_captures_reach_the_peak_of_the_step_table(tmp_path: Path):
    write_run(SimulatedRun(num_ranks=4, num_steps=30), tmp_path)
    by_rank = read_run(tmp_path)
    assert set(by_rank) == {0, 1, 2, 3}
    for recording in by_rank.values():
        peaks = recording.steps["allocated_peak_bytes"]
        steps = [step for step in (1, 15, 29) if step < len(peaks)]
        captures = [one for one in recording.captures if one.kind == "modules"]
        assert [capture.step for capture in captures] == steps
        listed = [
            entry
            for _, digest in recording.digests
            for entry in digest.captures
            if entry.kind == "modules"
        ]
        assert [entry.step for entry in listed] == steps[: len(listed)]
        for capture in captures:
            deltas = capture.tables["events"]["delta_bytes"]
            peak = int(np.cumsum(deltas).max())
            assert abs(peak - int(peaks[capture.step])) <= 0.03 * peak
            assert capture.iteration == capture.step + 1


def test_tracked_ranks_are_few_and_steps_exist():
    for num_ranks in (1, 64, 65, 4096, 100_000):
        tracked = [rank for rank in range(num_ranks) if is_tracked(rank, (), num_ranks)]
        assert 1 <= len(tracked) <= 64
    assert tracked_steps(1) == (0,)
    assert tracked_steps(2) == (1,)
    assert tracked_steps(200) == (1, 100, 199)
