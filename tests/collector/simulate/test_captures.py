"""Captures of a simulated run: they agree with its step table, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format import oom
from memboard.collector.format.memory import CATEGORIES, STATES
from memboard.collector.format.snapshots import rebuilt
from memboard.collector.format.snapshots.tags import tag_data
from memboard.collector.simulate import SimulatedRun
from memboard.collector.simulate.captures import CYCLE, cycle_starts
from memboard.collector.simulate.device import OutOfMemory
from memboard.collector.simulate.memory import DEVICE_TOTAL_BYTES, NON_TORCH_BYTES
from memboard.collector.simulate.program import ROOT
from memboard.collector.simulate.replay import Replay
from memboard.collector.simulate.series import rank_series, scenario_of


def captures(recording, kind):
    return [capture for capture in recording.captures if capture.kind == kind]


def of_kind(simulated, kind):
    for recording in simulated.values():
        for capture in captures(recording, kind):
            yield recording, capture


def live(capture):
    """Blocks that the snapshot's segments show as live."""
    blocks = capture.tables["blocks"]
    strings = capture.tables["strings"]["text"]
    return np.array([strings[row] != "inactive" for row in blocks["state"]])


@pytest.mark.parametrize(("num_ranks", "num_steps"), [(4, 12), (9, 10)])
def test_the_step_table_says_what_the_program_does_to_a_device(num_ranks, num_steps):
    scenario = scenario_of(SimulatedRun(num_ranks=num_ranks, num_steps=num_steps))
    for rank in range(4):
        series = rank_series(scenario, rank)
        for first in (0, num_steps // 2):
            replay = Replay(scenario, series, first)
            for step in range(first, series.num_rows):
                replay.step()
                for name, value in replay.device.row().items():
                    assert series.columns[name][step] == value, (rank, step, name)
            if series.num_rows < num_steps:
                with pytest.raises(OutOfMemory):
                    replay.step()


def test_histories_are_of_some_ranks_and_of_those_with_a_fault(simulated, faults):
    steps = {
        r: [c.step for c in captures(one, "history")] for r, one in simulated.items()
    }
    failing = faults["oom"].ranks[0]
    assert steps.pop(failing) == [faults["oom"].last_step]
    found = {rank: steps for rank, steps in steps.items() if steps}
    assert set(map(tuple, found.values())) == {(60, 119)}
    faulty = {faults[kind].ranks[0] for kind in ("leak", "imbalance", "straggler")}
    assert set(found) == {0, 12, 24, 36, 48, 60} | faulty


def test_what_is_live_in_a_history_is_what_the_step_table_has(simulated):
    for recording, capture in of_kind(simulated, "history"):
        blocks = capture.tables["blocks"]
        held = int(blocks["size"][live(capture)].sum())
        if capture.label == "oom":
            (report,) = captures(recording, "oom")
            assert held == report.meta["memory"]["allocated_bytes"]
        else:
            steps = recording.steps
            assert held == steps["allocated_bytes"][capture.step]
            assert int(blocks["size"].sum()) == steps["reserved_bytes"][capture.step]
        tensors = capture.tables["tensors"]
        assert set(tensors["address"].tolist()) <= set(blocks["address"].tolist())
        names = {CATEGORIES[code] for code in tensors["category"].tolist()}
        assert {"sharded_param", "optimizer"} <= names


def test_a_history_s_events_are_of_its_steps_and_lead_to_what_is_live(simulated):
    for _, capture in of_kind(simulated, "history"):
        events = rebuilt(capture.tables)["device_traces"][0]
        assert len(events) == capture.meta["num_events"]
        tags = [tag_data(event["user_metadata"])["step"] for event in events]
        before = 9 if capture.label == "oom" else 2
        assert set(tags) == set(range(capture.step - before, capture.step + 1))
        times = [event["time_us"] for event in events]
        assert times == sorted(times)
        assert times[-1] * 1000 <= capture.time_ns
        alive = set()
        for event in events:
            if event["action"] == "alloc":
                alive.add(event["addr"])
            elif event["action"] == "free_completed":
                alive.discard(event["addr"])
        assert alive <= set(capture.tables["blocks"]["address"][live(capture)].tolist())


def test_the_failing_rank_s_file_ends_with_report_and_history(simulated, faults):
    fault = faults["oom"]
    recording = simulated[fault.ranks[0]]
    report, history = recording.captures[-2:]
    assert (report.kind, report.label, history.label) == ("oom", "oom", "oom")
    assert report.meta["device"] == recording.header.device_index
    assert report.meta["report"] == history.meta["report"] == 1
    assert recording.notes_of("oom")[0].data["report"] == 1
    assert report.step == history.step == fault.last_step
    meta = report.meta
    assert set(meta) == set(oom.META)
    assert meta["simulated"]
    assert set(meta["memory"]) == set(oom.MEMORY)
    assert set(meta["last_step"]) == set(oom.LAST_STEP)
    free = meta["device_free_bytes"]
    reserved = meta["memory"]["reserved_bytes"]
    assert free + reserved == DEVICE_TOTAL_BYTES - NON_TORCH_BYTES
    assert meta["other_bytes"] == NON_TORCH_BYTES
    assert meta["requested_bytes"] > free
    snapshot = rebuilt(history.tables)
    *earlier, last = snapshot["device_traces"][0]
    assert last["action"] == "oom"
    # As torch does, it has given back every page that no block touches.
    assert "segment_unmap" in {event["action"] for event in earlier}
    for segment in snapshot["segments"]:
        page = (2 if segment["segment_type"] == "small" else 20) << 20
        for block in segment["blocks"]:
            if block["state"] == "inactive":
                start = block["address"]
                assert -(-start // page) >= (start + block["size"]) // page
    assert last["size"] == meta["requested_bytes"]
    assert last["device_free"] == free
    # What was kept of every step is the largest holder, in one line.
    holders, frames = report.tables["holders"], report.tables["holder_frames"]
    held = history.tables["blocks"]["size"][live(history)].sum()
    assert holders["num_bytes"][0] == max(holders["num_bytes"]) > 0.3 * held
    assert (frames["holder"][0], frames["name"][0]) == (0, "append")
    assert frames["filename"][0].endswith("evaluate.py")
    assert report.tables["stack"]["name"][0]


def test_modules_reach_the_peak_of_the_step_table(simulated):
    found = list(of_kind(simulated, "modules"))
    assert len(found) > 3 * 36
    for recording, capture in found:
        assert capture.step in (1, 60, 119)
        assert capture.iteration == capture.step + 1
        peak = int(np.cumsum(capture.tables["events"]["delta_bytes"]).max())
        assert peak == recording.steps["allocated_peak_bytes"][capture.step]


def test_the_events_of_a_step_are_in_order_of_time_and_end_with_it(simulated):
    for recording, capture in of_kind(simulated, "modules"):
        times = capture.tables["events"]["time_us"]
        assert (np.diff(times) >= 0).all()
        steps = recording.steps["time_ns"]
        took = int(steps[capture.step] - steps[capture.step - 1]) // 1000
        assert 0.85 * took < times[-1] <= took


def test_every_block_of_a_step_is_freed_as_what_it_was(simulated):
    (_, capture, *_) = captures(simulated[0], "modules")
    alive = {}
    events = capture.tables["events"]
    names = ("storage", "delta_bytes", "category", "module")
    for storage, delta, *what in zip(*(events[n].tolist() for n in names), strict=True):
        if delta > 0:
            assert storage not in alive
            alive[storage] = (delta, what)
        else:
            assert alive.pop(storage) == (-delta, what)
        assert delta % 512 == 0
    left = dict.fromkeys(CATEGORIES, 0)
    for size, (category, _) in alive.values():
        left[CATEGORIES[category]] += size
    assert {name for name, size in left.items() if size} == {
        "sharded_param",
        "optimizer",
        "other",
    }
    assert left["optimizer"] == 2 * left["sharded_param"]


def test_boundaries_nest_and_name_modules(simulated):
    capture = captures(simulated[0], "modules")[0]
    bounds, modules = capture.tables["boundaries"], capture.tables["modules"]
    assert modules["fqn"][0] == ROOT
    assert modules["fqn"][4] == f"{ROOT}.layers.0.attention_norm"
    assert (np.diff(bounds["event"]) >= 0).all()
    assert (np.diff(bounds["time_us"]) >= 0).all()
    assert bounds["event"][-1] <= len(capture.tables["events"]["time_us"])
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


def test_some_ranks_have_their_spans_and_all_lie_within_their_steps(simulated):
    ranks = [r for r, one in simulated.items() if captures(one, "spans")]
    assert set(range(0, 72, 2)) <= set(ranks)
    assert len(ranks) <= 64
    recording = simulated[4]
    starts = cycle_starts(120)
    assert starts == (30, 60)
    found = captures(recording, "spans")
    assert [capture.meta["cycle"] for capture in found] == [1, 2]
    for capture, start in zip(found, starts, strict=True):
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
        alone = recording.steps["forward_seconds"][start]
        within = recording.steps["communication_seconds"][start] / 2
        assert spans["duration_ns"][row] * 1e-9 == pytest.approx(alone + within, 1e-4)
