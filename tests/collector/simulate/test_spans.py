"""Simulated spans and parts of steps: what they add up to, and where they lie."""

from __future__ import annotations

import numpy as np
import pytest

from collector.format.columns import STEP_PARTS
from collector.simulate import SimulatedRun, write_run
from collector.simulate.faults import plan_faults
from collector.simulate.span_captures import CYCLE, cycle_starts
from tests.collector.recordings import rank_files, read

NUM_RANKS, NUM_STEPS = 24, 120


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    directory = tmp_path_factory.mktemp("spans")
    write_run(SimulatedRun(num_ranks=NUM_RANKS, num_steps=NUM_STEPS), directory)
    found = [read(path) for path in rank_files(directory)]
    return {recording.header.rank: recording for recording in found}


def part(recording, name):
    return np.array(recording.column(f"{name}_seconds"), float)


def test_parts_are_at_most_the_step_and_most_of_it(ranks):
    for recording in ranks.values():
        seconds = part(recording, "step_time")[1:]
        total = sum(np.nan_to_num(part(recording, name))[1:] for name in STEP_PARTS)
        assert (total <= seconds * (1 + 1e-5)).all()
        assert (total >= 0.8 * seconds).all()
        assert np.isnan(part(recording, "eval")).all()
        assert (part(recording, "checkpoint") == 0).all()


def test_a_straggler_computes_longer_and_an_epoch_waits_for_its_workers(ranks):
    (slow,) = [f for f in plan_faults(NUM_RANKS, NUM_STEPS) if f.kind == "straggler"]
    late = slice(slow.first_step + 1, 95)
    usual = np.median([part(r, "backward")[late] for r in ranks.values()])
    found = np.median(part(ranks[slow.ranks[0]], "backward")[late])
    assert found > 1.3 * usual
    waits = part(ranks[0], "dataloader")
    assert waits[100] > 1.8 > 10 * np.median(waits)


def test_flops_give_a_utilization_that_a_device_can_have(ranks):
    recording = ranks[0]
    flops = np.array(recording.column("flops"), float)[1:]
    peak = recording.header.config["flops"]["device_peak"]
    used = flops / part(recording, "step_time")[1:] / peak
    assert 0.05 < np.median(used) < 0.7


def test_some_ranks_have_their_spans_and_all_lie_within_their_steps(ranks):
    with_spans = [r for r in ranks if any(c.kind == "spans" for c in ranks[r].captures)]
    assert with_spans[:16] == list(range(16))
    starts = cycle_starts(NUM_STEPS)
    assert starts == (30, 60)
    captures = [c for c in ranks[3].captures if c.kind == "spans"]
    assert [capture.meta["cycle"] for capture in captures] == [1, 2]
    for capture, start in zip(captures, starts, strict=True):
        spans = capture.tables["spans"]
        names = [capture.tables["names"]["name"][row] for row in spans["name"]]
        ends = spans["start_ns"] + spans["duration_ns"]
        steps = [at for at, name in enumerate(names) if name == "step"]
        assert [int(spans["step"][at]) for at in steps] == [start + n for n in range(4)]
        assert [int(spans["state"][at]) for at in steps] == list(CYCLE)
        for at in range(len(names)):
            (whole,) = [s for s in steps if spans["step"][s] == spans["step"][at]]
            assert spans["start_ns"][whole] <= spans["start_ns"][at]
            assert ends[at] <= ends[whole]
        row = names.index("forward")
        alone = part(ranks[3], "forward")[start]
        within = part(ranks[3], "communication")[start] / 2
        assert spans["duration_ns"][row] * 1e-9 == pytest.approx(alone + within, 1e-4)


def test_a_short_run_has_no_cycle_it_has_no_room_for():
    assert cycle_starts(3) == ()
    assert cycle_starts(6) == (1,)
    assert cycle_starts(8) == (2,)
