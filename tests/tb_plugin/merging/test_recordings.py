"""Recordings: spans, steps, counters and traces of all ranks, on rank 0's clock."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format.records import ClockAnchor
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.index.listing import FoundRun
from memboard.tb_plugin.index.run import Run
from memboard.tb_plugin.merging.discovery import inputs_of_run
from tests.builders import START_NS, RunBuilder
from tests.tb_plugin.merging.chrome import (
    events,
    merge,
    ns_of,
    process_names,
    rank_of,
    slice_of,
    torch_trace,
)

SECOND = 10**9
MS = 10**6


@pytest.fixture
def run(tmp_path):
    return RunBuilder(tmp_path / "exp")


def inputs(run, **options):
    found = FoundRun.recorded("id", "exp", str(run.files), "exp", str(run.folder))
    found.list_files()
    recorded = Run(found)
    recorded.update(Budget(float("inf")))
    return inputs_of_run(recorded.attempts[-1], run.folder, **options)


def anchored(offset_ns=0):
    return ClockAnchor(wall_ns=START_NS + offset_ns, monotonic_ns=5 * SECOND)


def clock_note(rank, at_ns, offset_ns, error_ns=1000, method="distributed", **fields):
    """A comparison `at_ns` after the start, by the rank's own clock."""
    data = {
        "monotonic_ns": 5 * SECOND + at_ns,
        "wall_ahead_ns": 0,
        "offset_ns": offset_ns,
        "error_ns": error_ns,
        "method": method,
        "reference_rank": 0,
        "cycle": 1,
        "host_id": f"host {rank.rank if hasattr(rank, 'rank') else 0}",
        **fields,
    }
    rank.note("clock", time_ns=START_NS + at_ns, **data)


def spans(rank, *starts, cycle=1, name="forward", thread=4321):
    number = len(starts)
    rank.capture(
        "spans",
        time_ns=max(starts),
        meta={"cycle": cycle, "num_dropped": 0},
        tables={
            "names": {"name": (name, "loss"), "category": ("forward", "user")},
            "threads": {"thread_id": np.array([thread]), "name": ("MainThread",)},
            "args": {"json": ('{"batch": 7}',)},
            "spans": {
                "name": np.zeros(number, np.int64),
                "thread": np.zeros(number, np.int64),
                "start_ns": np.array(starts, np.int64),
                "duration_ns": np.full(number, 2 * MS, np.int64),
                "step": np.arange(number),
                "depth": np.zeros(number, np.int64),
                "state": np.full(number, 2, np.int64),
                "args": np.array([0] + [-1] * (number - 1), np.int64),
            },
            "instants": {
                "name": np.array([1]),
                "thread": np.array([0]),
                "time_ns": np.array(starts[:1], np.int64),
                "step": np.array([0]),
                "state": np.array([2]),
                "args": np.array([-1]),
            },
            "counters": {
                "name": np.array([1]),
                "time_ns": np.array(starts[:1], np.int64),
                "step": np.array([0]),
                "value": np.array([0.25]),
            },
        },
    )


def test_spans_of_two_ranks_meet_on_rank_0s_clock(run):
    """Rank 1's clock is 3 ms ahead and gains 100 us a second."""
    zero = run.rank(0, world_size=2, started=anchored())
    spans(zero, START_NS + 10 * SECOND)
    zero.close()
    one = run.rank(1, world_size=2, started=anchored())
    clock_note(one, 0, -3 * MS)
    clock_note(one, 20 * SECOND, -5 * MS)
    spans(one, START_NS + 10 * SECOND + 4 * MS)
    one.close()
    found = inputs(run)
    trace = merge(found)
    assert found.problems == []
    begun = {
        rank_of(trace, e): ns_of(trace, e) - START_NS
        for e in events(trace, "X")
        if e["name"] == "forward"
    }
    assert begun[0] == 10 * SECOND
    # At ten seconds and 4 ms the offset is -4 ms, and -400 ns for the 4 ms.
    assert begun[1] == 10 * SECOND - 400
    by_rank = {told["rank"]: told for told in trace["metadata"]["ranks"]}
    assert by_rank[0]["clock_method"] == "reference"
    assert by_rank[1]["clock_method"] == "distributed"
    assert by_rank[1]["offset_ns"] == -3 * MS
    assert by_rank[1]["error_ns"] >= 1000


def test_a_span_says_step_state_and_arguments(run):
    rank = run.rank(0, world_size=1, host="node7", pid=4321)
    spans(rank, START_NS + SECOND, START_NS + 2 * SECOND)
    rank.close()
    trace = merge(inputs(run))
    first, second = (e for e in events(trace, "X") if e["name"] == "forward")
    assert first["args"] == {"step": 0, "state": "active", "batch": 7}
    assert second["args"] == {"step": 1, "state": "active"}
    assert (first["cat"], first["dur"]) == ("forward", 2000.0)
    assert process_names(trace)[first["pid"]] == "Rank 0 node7 4321"
    (instant,) = (e for e in events(trace, "i") if e["name"] == "loss")
    assert instant["s"] == "t"
    counted = [e for e in events(trace, "C") if e["name"] == "loss"]
    assert [e["args"] for e in counted] == [{"value": 0.25}]
    threads = [e for e in events(trace, "M") if e["name"] == "thread_name"]
    assert sorted(e["args"]["name"] for e in threads) == ["MainThread spans", "steps"]


def test_columns_are_counters_and_absence_is_no_zero(run):
    rank = run.rank(0, world_size=1)
    rank.steps(
        range(4), allocated_peak_bytes=[100, None, 100, 0], rss_bytes=[7, 7, 8, 8]
    )
    rank.rows("memory", [0, 2], memory_used_bytes=[5, 6])
    rank.note("mark", label="resumed")
    rank.close()
    trace = merge(inputs(run))

    def counted(name):
        found = [e for e in events(trace, "C") if e["name"] == name]
        return [(ns_of(trace, e) - START_NS, e["args"]["bytes"]) for e in found]

    assert [value for _, value in counted("allocated_peak_bytes")] == [100, 0]
    assert counted("rss_bytes") == [(SECOND, 7), (3 * SECOND, 8)]
    assert [value for _, value in counted("memory_used_bytes")] == [5, 6]
    (mark,) = (e for e in events(trace, "i") if e["name"] == "mark resumed")
    assert mark["s"] == "p"


def test_steps_are_slices_that_do_not_overlap(run):
    rank = run.rank(0, world_size=1)
    # The first lasted 0.5 s, the second is said to have lasted longer than can be.
    rank.steps(range(2), step_time_seconds=[0.5, 1.5])
    rank.close()
    trace = merge(inputs(run))
    found = [
        (ns_of(trace, e) - START_NS, e["dur"] * 1000, e["args"]["step"])
        for e in events(trace, "X")
        if e["name"] == "step"
    ]
    assert found == [(SECOND // 2, SECOND // 2, 0), (SECOND, SECOND, 1)]


def test_traces_that_the_recording_names_are_put_on_the_clock(run):
    """The wall clock was set forward by 2 s before the trace; recorded times were not."""
    rank = run.rank(1, world_size=2, started=anchored(), pid=12)
    clock_note(rank, 0, 50 * MS)
    rank.note(
        "clock_jump", time_ns=START_NS + SECOND, jumped_ns=2 * SECOND,
        wall_ahead_ns=2 * SECOND,
    )  # fmt: skip
    artifacts = rank.path.with_suffix("")
    base_ns = START_NS // SECOND * SECOND
    at_us = (START_NS - base_ns + 10 * SECOND) / 1000
    path = torch_trace(
        artifacts / "rank1.3.pt.trace.json",
        [slice_of("aten::add", at_us)],
        rank=1,
        base_ns=base_ns,
    )
    rank.capture("trace", meta={"path": path.name, "cycle": 1, "kept": True})
    rank.capture("trace", meta={"path": "gone.json", "cycle": 1, "kept": True})
    rank.capture("trace", meta={"path": "../../../../x.json", "cycle": 1})
    rank.capture("trace", meta={"path": "deleted.json", "cycle": 1, "kept": False})
    spans(rank, START_NS + 8 * SECOND)
    rank.close()
    found = inputs(run)
    trace = merge(found)
    (op,) = (e for e in events(trace, "X") if e["name"] == "aten::add")
    (span,) = (e for e in events(trace, "X") if e["name"] == "forward")
    assert ns_of(trace, op) - START_NS == 8 * SECOND + 50 * MS
    assert ns_of(trace, span) == ns_of(trace, op)
    assert op["pid"] == span["pid"]  # one process, told apart by its id alone
    assert op["tid"] != span["tid"]  # but never two clocks' slices on one track
    told = sorted(problem.what for problem in found.problems)
    assert told == ["Rank 0 has no recording."] + ["The trace is not there."] * 2


@pytest.mark.parametrize("linked", ["file", "folder within", "whole folder"])
def test_no_trace_of_a_recording_is_read_outside_its_folder(run, tmp_path, linked):
    """However the logdir links there: whoever wrote it may not read what we may."""
    rank = run.rank(0, world_size=1)
    outside = tmp_path / "outside" / "rank0.1.pt.trace.json"
    torch_trace(outside, [slice_of("secret", 1.0)], rank=0)
    artifacts = rank.path.with_suffix("")
    if linked == "whole folder":
        artifacts.symlink_to(outside.parent)
        said = outside.name
    else:
        artifacts.mkdir()
        (artifacts / "in").symlink_to(outside if linked == "file" else outside.parent)
        said = "in" if linked == "file" else f"in/{outside.name}"
    rank.capture("trace", meta={"path": said, "cycle": 1, "kept": True})
    rank.close()
    found = inputs(run)
    assert not [e for e in events(merge(found), "X") if e["name"] == "secret"]
    (problem,) = found.problems
    assert (problem.path, problem.what) == (said, "The trace is not there.")


def test_traces_that_lie_in_the_runs_directory_come_along_once(run):
    rank = run.rank(0, world_size=1)
    base_ns = START_NS // SECOND * SECOND
    for name in ("traces/rank0.pt.trace.json", "traces/config.json"):
        found = [slice_of("x", 10_000_000.0)] if "rank" in name else []
        torch_trace(run.folder / name, found, rank=0, base_ns=base_ns)
    rank.close()
    trace = merge(inputs(run))
    (event,) = (e for e in events(trace, "X") if e["name"] == "x")
    assert rank_of(trace, event) == 0


def test_one_cycle_and_some_ranks_alone(run):
    for number in range(3):
        rank = run.rank(number, world_size=3)
        spans(rank, START_NS + 10 * SECOND, cycle=1, name="one")
        spans(rank, START_NS + 50 * SECOND, cycle=2, name="two")
        rank.steps(range(100), rss_bytes=range(100))
        rank.close()
    found = inputs(run, ranks={0, 2}, cycle=2)
    trace = merge(found)
    names = {e["name"] for e in events(trace, "X")}
    assert "two" in names
    assert "one" not in names
    assert {rank_of(trace, e) for e in events(trace, "X")} == {0, 2}
    counters = [e for e in events(trace, "C") if e["name"] == "rss_bytes"]
    seconds = {round((ns_of(trace, e) - START_NS) / SECOND) for e in counters}
    assert seconds == {49, 50, 51}


def test_ranks_of_one_host_need_no_comparison(run):
    anchors = (anchored(), anchored(700))
    for number, anchor in enumerate(anchors):
        rank = run.rank(number, world_size=2, started=anchor)
        rank.note("clock", monotonic_ns=1, wall_ahead_ns=0, host_id="boot 1",
                  offset_ns=0, error_ns=None, method="wall", reference_rank=None)  # fmt: skip
        rank.close()
    told = merge(inputs(run))["metadata"]["ranks"][1]
    assert (told["clock_method"], told["offset_ns"]) == ("same_host", -700)


@pytest.mark.parametrize(
    ("errors", "expected"), [((4000, 6000), 10_000), ((None, 6000), None)]
)
def test_by_wall_clock_alone_the_bounds_add_up_or_are_unknown(run, errors, expected):
    for number, error in enumerate(errors):
        rank = run.rank(number, world_size=2, started=anchored())
        clock_note(
            rank, 0, 30 * number, error, "wall", reference_rank=None,
            host_id=f"boot {number}",
        )  # fmt: skip
        rank.close()
    told = merge(inputs(run))["metadata"]["ranks"][1]
    assert told["clock_method"] == "wall"
    assert told["error_ns"] == expected
    assert told["offset_ns"] == 30


def test_damage_costs_what_it_hit_and_is_named(run):
    whole = run.rank(0, world_size=2)
    spans(whole, START_NS + SECOND)
    whole.close()
    broken = run.rank(1, world_size=2)
    spans(broken, START_NS + SECOND)
    broken.steps(range(10), rss_bytes=range(10))
    broken.close()
    start, end = next(at[1:] for at in broken.offsets if "capture" in at[0])
    data = bytearray(broken.path.read_bytes())
    data[(start + end) // 2] ^= 0xFF
    broken.path.write_bytes(data)
    found = inputs(run)
    trace = merge(found)
    names = {(rank_of(trace, e), e["name"]) for e in events(trace, "X")}
    assert (0, "forward") in names
    assert {e["name"] for e in events(trace, "C") if rank_of(trace, e) == 1} == {
        "rss_bytes"
    }
    assert {problem.rank for problem in found.problems} == {1}


def test_of_very_many_rows_counters_keep_the_highest(run, monkeypatch):
    monkeypatch.setattr("memboard.tb_plugin.merging.merged_trace._MOST_COUNTERS", 1)
    monkeypatch.setattr("memboard.tb_plugin.merging.merged_trace._LEAST_COUNTERS", 500)
    rank = run.rank(0, world_size=1)
    values = [None if step % 3 else step * 7919 % 1009 for step in range(1000)]
    rank.steps(range(1000), rss_bytes=values)
    rank.close()
    trace = merge(inputs(run))
    found = [e["args"]["bytes"] for e in events(trace, "C")]
    width = trace["metadata"]["ranks"][0]["rows_per_counter_value"]
    assert width > 1
    assert len(found) <= 500
    assert max(found) == max(value for value in values if value is not None)
    assert set(found) <= set(values)


@pytest.mark.parametrize("drift_ns", [-2 * MS, 2 * MS])
def test_what_lies_in_a_slice_stays_inside_where_clocks_drift_apart(run, drift_ns):
    """By 100 us a second; viewers drop slices that leave the one around them."""
    rank = run.rank(1, world_size=2, started=anchored(), pid=12)
    clock_note(rank, 0, 0)
    clock_note(rank, 20 * SECOND, drift_ns)
    base_ns = START_NS // SECOND * SECOND
    at_us = (START_NS - base_ns + 8 * SECOND) / 1000
    path = torch_trace(
        rank.path.with_suffix("") / "rank1.3.pt.trace.json",
        [
            slice_of("around", at_us, dur=2e6),
            slice_of("first", at_us, dur=1e6 - 0.007),
            slice_of("last", at_us + 1e6, dur=1e6, odd="key"),
            slice_of("point", at_us + 2e6, dur=0),
        ],
        rank=1,
        base_ns=base_ns,
    )
    rank.capture("trace", meta={"path": path.name, "cycle": 1, "kept": True})
    starts = [START_NS + 8 * SECOND, START_NS + 8 * SECOND + SECOND]
    spans(rank, *starts)
    rank.steps(range(3), step_time_seconds=[1.0] * 3)
    rank.close()
    trace = merge(inputs(run))
    found = {event["name"]: event for event in events(trace, "X")}
    ends = {
        name: ns_of(trace, event) + round(event["dur"] * 1000)
        for name, event in found.items()
    }
    assert ends["last"] == ends["around"] == ns_of(trace, found["point"])
    assert ns_of(trace, found["first"]) == ns_of(trace, found["around"])
    assert 0 < ns_of(trace, found["last"]) - ends["first"] <= 8
    assert round(found["around"]["dur"] * 1000) == 2 * SECOND + drift_ns // 10
    assert found["last"]["odd"] == "key"
    (forward,) = {e["dur"] for e in events(trace, "X") if e["name"] == "forward"}
    assert round(forward * 1000) == 2 * MS + drift_ns // 10_000
