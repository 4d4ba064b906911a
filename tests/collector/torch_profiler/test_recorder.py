"""A trace below our dispatch mode: operators once, and the recorder's time in one row."""

from __future__ import annotations

import numpy as np
import pytest

import memboard as mb
from memboard.collector.format.own.frames import DISPATCH_MODE, RECORDER
from memboard.collector.format.own.slices import METADATA_KEY, TRACKS_MODULES
from tests.collector.torch_profiler.training import (
    CYCLES,
    Training,
    artifacts,
    load,
    needs_python_calls,
    traces,
)

STACKS = "stacks.txt"


def recorded(run_dir, *, modules, **profiler):
    """The capture of a trace of two steps, and the trace."""
    training = Training()
    with mb.record(
        run_dir,
        scalars=False,
        history=False,
        schedule={**CYCLES, "repeat": 1},
        modules=modules,
        model=training.net,
        torch_profiler={"enabled": True, "with_flops": True, **profiler},
    ) as recorder:
        for _ in range(6):
            training.step()
            recorder.step()
    (name,) = (name for name in artifacts(run_dir) if ".pt.trace.json" in name)
    return traces(run_dir)[-1], load(artifacts(run_dir)[name])


def calls_of(capture):
    table = capture.tables["operators"]
    return dict(zip(table["name"], np.asarray(table["calls"]).tolist(), strict=True))


@needs_python_calls
@pytest.mark.parametrize("with_stack", [False, True])
def test_operators_and_flops_are_those_without_tracked_modules(tmp_path, with_stack):
    plain, plain_file = recorded(tmp_path / "plain", modules=False)
    tracked, tracked_file = recorded(
        tmp_path / "tracked",
        modules=True,
        with_stack=with_stack,
        stacks_filename=STACKS if with_stack else "",
    )
    expected, found = calls_of(plain), calls_of(tracked)
    assert found[RECORDER] > 0
    assert DISPATCH_MODE not in found
    names = [name for name in expected if name.startswith("aten::") and "mm" in name]
    assert names
    assert {name: found[name] for name in names} == {
        name: expected[name] for name in names
    }
    assert tracked.meta["flops"] == plain.meta["flops"] > 0
    assert DISPATCH_MODE not in tracked.meta["summary"]
    assert RECORDER in tracked.meta["summary"]
    assert tracked_file[METADATA_KEY] == {TRACKS_MODULES: True}
    assert METADATA_KEY not in plain_file
    if with_stack:
        stacks = artifacts(tmp_path / "tracked")[STACKS].read_text()
        assert RECORDER in stacks
        assert "modules/dispatch.py" not in stacks
