"""The state at the error: against the simulated allocator's own, and a real crash."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.lifetimes import OOM
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.oom.case import Case
from memboard.tb_plugin.analysis.oom.holders import holders
from memboard.tb_plugin.analysis.oom.judge import verdict
from memboard.tb_plugin.analysis.oom.replayed_case import facts_at
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.made_snapshots import frame, read_snapshot
from tests.simulate import OOM_CAUSES, oom_case
from tests.tb_plugin.analysis.oom_cases import HELD_BACK, cases, judged, replayed

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "missing"), "snapshots")
CRASH = REAL / "Constructor-Sun+code_location__memory_snapshot.pickle"

GIB = 1 << 30
MIB = 1 << 20

PER_CAUSE = 4


@pytest.fixture(scope="module")
def found():
    return [judged(case) for case in cases(HELD_BACK, PER_CAUSE)]


def test_every_cause_is_told(found):
    """The full matrix over 200 cases is printed by tests/perf/oom_verdicts.py."""
    wrong = [
        (one.label.cause, one.label.also, one.verdict)
        for one in found
        if one.verdict.cause != one.label.cause
    ]
    assert wrong == []
    assert Counter(one.label.cause for one in found) == dict.fromkeys(
        OOM_CAUSES, PER_CAUSE
    )


def test_the_state_is_that_of_the_allocator_at_the_error(found):
    """Also where the exception had unwound the step before the snapshot was taken."""
    assert any(one.label.unwound for one in found)
    for one in found:
        label, facts = one.label, one.facts
        assert facts.requested_bytes == label.requested_bytes
        assert facts.device_free_bytes == label.device_free_bytes
        assert facts.reserved_bytes == label.reserved_bytes
        # Events say what was asked for; the allocator counts what it gave.
        assert facts.active_bytes == pytest.approx(label.active_bytes, rel=2e-3)
        assert facts.allocated_bytes == pytest.approx(label.allocated_bytes, rel=2e-3)
        assert facts.free.num_bytes == pytest.approx(
            label.same_free_bytes, rel=2e-3, abs=4 * MIB
        )
        assert facts.free.largest_bytes == pytest.approx(
            label.same_largest_bytes, rel=2e-3, abs=4 * MIB
        )
        elsewhere = 0 if facts.elsewhere is None else facts.elsewhere.largest_bytes
        assert elsewhere == pytest.approx(
            label.other_largest_bytes, rel=2e-3, abs=4 * MIB
        )


def test_what_grew_is_about_what_was_planted(found):
    for one in found:
        planted = one.label.planted_bytes.get("growth", 0)
        grown = 0 if one.facts.growth is None else one.facts.growth.num_bytes
        if one.label.cause == "growth":
            assert 0.6 * planted <= grown <= 1.2 * planted
            assert one.facts.growth.num_rounds <= one.label.num_steps
        elif not planted:
            assert grown <= 0.02 * one.label.device_total_bytes


def test_holders_are_the_planted_ones():
    case = oom_case("growth", 3)
    replay = replayed(case)
    event = int(replay.device.events.of_action(OOM)[-1])
    held = holders(replay.lives, replay.stacks, event)
    (kept,) = [size for name, size in case.label.holders.items() if "kept" in name]
    assert held[0].label == "evaluate.py:52 append"
    # The ring of events began later than the training.
    assert held[0].num_bytes == pytest.approx(kept, rel=0.01)
    assert sum(one.share for one in held) <= 1.0


def test_a_line_holds_what_it_retains_and_what_the_step_under_way_allocated():
    trace, step = [], []
    for number in range(8):
        for place, (size, line) in enumerate(((7 * MIB, 3), (MIB - 100, 5))):
            addr = (2 * number + place + 1) << 30
            told = {"addr": addr, "size": size, "stream": 0}
            trace.append({"action": "alloc", **told, "frames": [frame("run", line)]})
            if line == 3 and number < 7:
                trace.append({"action": "free_requested", **told})
                trace.append({"action": "free_completed", **told})
        step += [number] * (len(trace) - len(step))
    trace.append({"action": "oom", "device_free": 0, "size": MIB, "stream": 0})
    step.append(7)
    read = snapshot_of(tables_of({"segments": [], "device_traces": [trace]}))
    replay = Replay(read, read.devices[0])
    facts = facts_at(replay, len(trace) - 1, np.array(step))
    assert facts.growth.lines == ("train.py:5 run",)
    (retained,) = [
        one
        for one in holders(replay.lives, replay.stacks, len(trace) - 1)
        if one.label in facts.growth.lines
    ]
    assert retained.num_bytes == 8 * (MIB - 100)
    assert facts.growth.num_bytes == retained.num_bytes - (MIB - 100)
    # Of nine blocks the small ones are rounded up to a MiB each.
    assert facts.held_bytes == facts.active_bytes == 8 * MIB + 7 * MIB
    assert replay.rounding_bytes(len(trace) - 1, with_pending=False) == 8 * 100


def test_two_errors_of_one_history_have_their_own_state():
    """The first one is not judged by what came later."""
    case = oom_case("really_full", 3)
    snapshot = case.snapshot()
    trace = snapshot["device_traces"][0]
    early = {**trace[-1], "size": 1024}
    trace.insert(len(trace) // 2, early)
    read = snapshot_of(tables_of(snapshot))
    replay = Replay(read, read.devices[0])
    first, last = replay.device.events.of_action(OOM).tolist()
    before, after = facts_at(replay, first), facts_at(replay, last)
    assert before.active_bytes < after.active_bytes
    assert before.requested_bytes == 1024


def test_a_history_that_contradicts_itself_has_facts_all_the_same():
    """Frees without allocs, negative sizes, overlapping blocks, no segments."""
    trace = [
        {"action": "free_completed", "addr": 5, "size": 10, "stream": 0},
        {"action": "alloc", "addr": 7, "size": -1, "stream": 0},
        {"action": "alloc", "addr": 7, "size": 1 << 62, "stream": 0},
        {"action": "alloc", "addr": 512, "size": 4096, "stream": 3},
        {"action": "segment_free", "addr": 0, "size": 1 << 40, "stream": 0},
        {"action": "oom", "device_free": -5, "size": 2 * MIB, "stream": 9},
    ]
    read = snapshot_of(tables_of({"segments": [], "device_traces": [trace]}))
    replay = Replay(read, read.devices[0])
    (event,) = replay.device.events.of_action(OOM).tolist()
    facts = facts_at(replay, event)
    assert facts.requested_bytes == 2 * MIB
    assert facts.device_free_bytes is None
    assert verdict(Case(facts=facts)).cause
    assert holders(replay.lives, replay.stacks, event)


def test_a_history_of_an_error_alone():
    trace = [{"action": "oom", "device_free": 1024, "size": 2 * MIB, "stream": 0}]
    read = snapshot_of(tables_of({"segments": [], "device_traces": [trace]}))
    replay = Replay(read, read.devices[0])
    facts = facts_at(replay, 0)
    assert facts.active_bytes == 0
    assert facts.largest_before_bytes is None
    assert verdict(Case(facts=facts)).cause == "unsure"
    assert holders(replay.lives, replay.stacks, 0) == []


@pytest.mark.skipif(not CRASH.is_file(), reason="the recorded snapshots are not here")
def test_a_real_crash_is_judged_by_the_moment_it_happened():
    """Its end holds 0.38 GiB; at the error 78.3 GiB was live, in four lines."""
    snapshot = snapshot_of(read_snapshot(CRASH))
    replay = Replay(snapshot, snapshot.device(1))
    (event,) = replay.device.events.of_action(OOM).tolist()
    assert event == 421
    facts = facts_at(replay, event)
    assert facts.requested_bytes == 5_308_694_528
    assert facts.device_free_bytes == 95_682_560
    assert facts.active_bytes / GIB == pytest.approx(78.29, abs=0.01)
    assert verdict(Case(facts=facts)).cause == "really_full"
    assert verdict(Case(facts=facts)).also == ()
    held = holders(replay.lives, replay.stacks, event)
    assert [one.label for one in held[:4]] == [
        f"models.py:{line} update_nodes" for line in (174, 181, 176, 178)
    ]
    # 79,645,970,736 of 84,063,351,764 bytes.
    assert np.sum([one.share for one in held[:4]]) == pytest.approx(0.94745, abs=1e-5)
