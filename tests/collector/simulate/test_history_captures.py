"""A simulated run's allocators: what the faults say is in their histories."""

from __future__ import annotations

import numpy as np
import pytest

from collector.format import oom
from collector.format.framing import read_frames
from collector.format.memory import CATEGORIES
from collector.format.snapshots import rebuilt
from collector.format.snapshots.tags import tag_data
from collector.simulate import SimulatedRun, write_run
from collector.simulate.curves import DEVICE_TOTAL_BYTES, NON_TORCH_BYTES
from collector.simulate.faults import IMBALANCE_BYTES, plan_faults
from collector.simulate.history.captures import has_history
from tests.recordings import read_run

RUN = SimulatedRun(num_ranks=9, num_steps=60)
FAULTS = {fault.kind: fault for fault in plan_faults(RUN.num_ranks, RUN.num_steps)}
GIB = 1 << 30


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    write_run(RUN, directory)
    return read_run(directory)


def histories(recording):
    return [c for c in recording.captures if c.kind == "history"]


def live(capture):
    """Active bytes in the snapshot's segments."""
    blocks = capture.tables["blocks"]
    strings = capture.tables["strings"]["text"]
    active = np.array([strings[row] != "inactive" for row in blocks["state"]])
    return int(blocks["size"][active].sum())


def test_chosen_ranks_have_two_histories_each_and_others_none(ranks):
    faults = tuple(FAULTS.values())
    for rank, recording in ranks.items():
        steps = [c.step for c in histories(recording)]
        if rank in FAULTS["oom"].ranks:
            assert steps == [FAULTS["oom"].last_step]
        elif has_history(rank, faults, RUN.num_ranks):
            assert steps == [30, 59]
        else:
            assert steps == []
    assert sum(bool(histories(r)) for r in ranks.values()) >= 5


def test_the_failing_ranks_file_ends_with_report_and_history(ranks):
    fault = FAULTS["oom"]
    recording = ranks[fault.ranks[0]]
    report, history = [c for c in recording.captures if c.kind in ("oom", "history")]
    assert report.meta["device"] == recording.header.device_index
    assert recording.close is None
    assert (report.kind, report.label, history.label) == ("oom", "oom", "oom")
    assert report.meta["report"] == history.meta["report"] == 1
    assert recording.notes_of("oom")[0].data["report"] == 1
    assert report.step == history.step == fault.last_step
    assert report.time_ns <= history.time_ns
    meta = report.meta
    assert set(meta) == set(oom.META)
    assert meta["simulated"]
    assert history.meta["simulated"]
    assert set(meta["memory"]) == set(oom.MEMORY)
    reserved = meta["memory"]["reserved_bytes"]
    free = meta["device_free_bytes"]
    assert free + reserved == DEVICE_TOTAL_BYTES - NON_TORCH_BYTES
    assert meta["other_bytes"] == NON_TORCH_BYTES
    assert meta["requested_bytes"] > free
    snapshot = rebuilt(history.tables)
    last = [e for e in snapshot["device_traces"][0] if e["action"] != "snapshot"][-1]
    assert last["action"] == "oom"
    assert last["size"] == meta["requested_bytes"]
    assert last["device_free"] == free
    assert live(history) == meta["memory"]["active_bytes"]
    # What was kept of every step is the largest holder, in one line.
    holders = report.tables["holders"]
    assert holders["num_bytes"][0] == max(holders["num_bytes"]) > 0.4 * live(history)
    frames = report.tables["holder_frames"]
    assert frames["holder"][0] == 0
    assert frames["filename"][0].endswith(".py")


def test_the_step_table_says_what_the_allocator_did(ranks):
    for recording in ranks.values():
        steps = recording.steps
        for capture in histories(recording):
            at = steps["step"].tolist().index(capture.step)
            assert live(capture) == steps["active_bytes"][at]
            if capture.label != "oom":
                continue
            report = next(c for c in recording.captures if c.kind == "oom")
            for name in ("allocated_bytes", "allocated_peak_bytes", "active_bytes"):
                assert report.meta["memory"][name] == steps[name][at]
        reserved = steps["reserved_bytes"] - steps["inactive_split_bytes"]
        assert (steps["allocated_bytes"] <= steps["active_bytes"]).all()
        assert (steps["active_bytes"] <= reserved).all()


def test_a_leak_rises_with_every_step_a_history_shows(ranks):
    (leaking,) = FAULTS["leak"].ranks
    kept = ranks[leaking].steps["allocated_bytes"][-3:]
    assert np.diff(kept) == pytest.approx(FAULTS["leak"].bytes_per_step, rel=0.2)


def test_the_histories_tags_are_the_steps_of_the_run(ranks):
    for recording in ranks.values():
        for capture in histories(recording):
            events = rebuilt(capture.tables)["device_traces"][0]
            steps = {
                data["step"]
                for event in events
                if (data := tag_data(event["user_metadata"])) is not None
            }
            assert max(steps) == capture.step
            times = [event["time_us"] for event in events]
            assert times == sorted(times)
            assert times[-1] * 1000 <= capture.time_ns


def test_faults_are_in_the_histories(ranks):
    quiet = live(histories(ranks[0])[-1])
    (unequal,) = FAULTS["imbalance"].ranks
    assert live(histories(ranks[unequal])[-1]) - quiet == pytest.approx(
        IMBALANCE_BYTES, rel=0.05
    )
    (leaking,) = FAULTS["leak"].ranks
    first, last = map(live, histories(ranks[leaking]))
    assert last - first == pytest.approx(29 * FAULTS["leak"].bytes_per_step, rel=0.05)


def test_tensors_are_blocks_of_the_snapshot(ranks):
    for recording in ranks.values():
        for capture in histories(recording):
            tensors = capture.tables["tensors"]
            blocks = capture.tables["blocks"]["address"].tolist()
            assert set(tensors["address"].tolist()) <= set(blocks)
            names = {CATEGORIES[code] for code in tensors["category"].tolist()}
            assert {"sharded_param", "optimizer"} <= names


def test_few_events_and_equal_bytes_however_many_processes_write(tmp_path, ranks):
    found = [c.meta["num_events"] for r in ranks.values() for c in histories(r)]
    assert sum(found) < 200_000
    run = SimulatedRun(num_ranks=40, num_steps=6)
    write_run(run, tmp_path / "one", num_processes=3)
    write_run(run, tmp_path / "two", num_processes=2)
    assert differences(tmp_path / "one", tmp_path / "two") == []


def differences(one, two):
    """Where the files of two runs differ: file, offset, and the record there."""
    names = {path.relative_to(one) for path in one.rglob("*.events")}
    assert names == {path.relative_to(two) for path in two.rglob("*.events")}
    found = []
    for name in sorted(names):
        mine, other = (one / name).read_bytes(), (two / name).read_bytes()
        if mine != other:
            at = next(
                (at for at, (a, b) in enumerate(zip(mine, other)) if a != b),  # noqa: B905
                min(len(mine), len(other)),
            )
            records = [r for r in read_frames(mine) if r.offset <= at < r.end]
            found.append((name.name, at, records, other[at : at + 64]))
    return found


@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_short_runs_run_out_too(tmp_path, num_steps):
    write_run(SimulatedRun(num_ranks=4, num_steps=num_steps), tmp_path)
    kinds = [c.kind for r in read_run(tmp_path).values() for c in r.captures]
    assert kinds.count("oom") == 1
