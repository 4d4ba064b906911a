"""What a recording keeps of a trace: operators, stacks; torch's own table as an oracle."""

from __future__ import annotations

import json

import pytest
import torch

from memboard.collector.torch_profiler.digest.digest import flops_of
from memboard.collector.torch_profiler.digest.summary import summary
from memboard.tb_plugin.analysis.operators import operator_sums as module
from memboard.tb_plugin.analysis.operators.folded_stacks import (
    folded_stacks,
    python_calls,
)
from memboard.tb_plugin.analysis.operators.operator_sums import (
    OUTSIDE,
    REST,
    operator_sums,
)
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.collector.torch_profiler.training import Training
from tests.tb_plugin.readers.traces.reading import document, event, read


def op(name, ts, dur, external_id=0, **more):
    return event(name, ts, dur, args={"External id": external_id}, **more)


def call(name, ts, dur):
    return event(name, ts, dur, cat="python_function")


def memory(ts, num_bytes, address=0):
    args = {
        "Bytes": num_bytes,
        "Device Type": 0,
        "Device Id": -1,
        "Addr": address,
        "Total Allocated": 0,
    }
    return {
        "ph": "i",
        "s": "t",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": ts,
        "args": args,
    }


def launch(ts, correlation, external_id, name="cudaLaunchKernel"):
    args = {"correlation": correlation, "External id": external_id}
    return event(name, ts, 1, cat="cuda_runtime", args=args)


def kernel(name, ts, dur, correlation, cat="kernel"):
    args = {"correlation": correlation, "device": 0, "stream": 7}
    return event(name, ts, dur, cat=cat, pid=0, tid=7, args=args)


def table_of(*events, flops=None):
    return operator_sums(TraceProfile(read(document(list(events)))), flops or {})


def row_of(table, name):
    at = table["name"].index(name)
    return {
        column: int(values[at]) for column, values in table.items() if column != "name"
    }


LINEAR = (
    op("aten::linear", 0, 100, 1),
    op("aten::addmm", 10, 60, 2),
    memory(20, 512, 64),
    op("aten::t", 80, 10, 3),
    memory(120, -64, 128),
)


def test_own_figures_are_without_what_is_inside_and_add_up():
    table = table_of(*LINEAR, flops={2: 1000, 99: 5})
    linear, addmm = row_of(table, "aten::linear"), row_of(table, "aten::addmm")
    assert (linear["cpu_ns"], linear["self_cpu_ns"]) == (100_000, 30_000)
    assert (addmm["cpu_ns"], addmm["self_cpu_ns"]) == (60_000, 60_000)
    assert (linear["flops"], addmm["flops"]) == (0, 1000)
    assert int(table["self_cpu_ns"].sum()) == 100_000
    assert linear["cpu_memory_bytes"] == addmm["self_cpu_memory_bytes"] == 512
    assert linear["self_cpu_memory_bytes"] == 0
    assert row_of(table, OUTSIDE)["self_cpu_memory_bytes"] == -64
    assert int(table["self_cpu_memory_bytes"].sum()) == 512 - 64


def test_device_time_is_that_of_who_launched_it_and_what_nobody_did_is_a_row():
    table = table_of(
        op("aten::linear", 0, 100, 1),
        op("aten::addmm", 10, 60, 2),
        launch(20, 11, 2),
        launch(30, 12, 2, "cudaMemcpyAsync"),
        kernel("gemm", 200, 40, 11),
        kernel("copy", 250, 5, 12, "gpu_memcpy"),
        kernel("stray", 300, 7, 99),
    )
    linear, addmm = row_of(table, "aten::linear"), row_of(table, "aten::addmm")
    assert (linear["device_ns"], linear["self_device_ns"]) == (45_000, 0)
    assert (addmm["device_ns"], addmm["self_device_ns"]) == (45_000, 45_000)
    assert addmm["self_cpu_ns"] == 58_000
    assert row_of(table, OUTSIDE)["self_device_ns"] == 7_000
    assert int(table["self_device_ns"].sum()) == 52_000


def test_steps_are_one_row_whatever_their_numbers():
    steps = [
        event(f"ProfilerStep#{number}", number * 10, 5, cat="user_annotation")
        for number in (1, 22)
    ]
    assert row_of(table_of(*steps), "ProfilerStep*")["calls"] == 2


def test_too_many_names_are_summed_up(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 2)
    table = table_of(
        *(op(f"op{number}", 100 * number, 10 + number) for number in range(5))
    )
    assert table["name"] == ("op4", "op3", REST)
    assert table["self_cpu_ns"].tolist() == [14_000, 13_000, 33_000]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A profiler of three steps, and its trace's file."""
    training = Training()
    training.step()
    profile = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        profile_memory=True,
        with_flops=True,
    )
    with profile:
        for number in range(3):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                training.step()
    path = tmp_path_factory.mktemp("trained") / "rank0.pt.trace.json"
    profile.export_chrome_trace(str(path))
    return profile, path


def test_the_table_is_torchs_own(trained):
    profile, path = trained
    table = operator_sums(TraceProfile(read(path)), flops_of(profile, lambda _s: None))
    theirs = {row.key: row for row in profile.key_averages()}
    assert set(table["name"]) - {OUTSIDE} == set(theirs) - {"[memory]"}
    events = json.loads(path.read_text())["traceEvents"]
    operators = {one["name"] for one in events if one.get("cat") == "cpu_op"}
    for name in set(table["name"]) - {OUTSIDE}:
        row, other = row_of(table, name), theirs[name]
        assert row["calls"] == other.count
        assert row["flops"] == other.flops
        assert row["cpu_ns"] == pytest.approx(other.cpu_time_total * 1000, abs=2)
        assert row["self_cpu_ns"] == pytest.approx(
            other.self_cpu_time_total * 1000, abs=2
        )
        if name in operators:  # memory of annotations is the step's, as on the page
            assert row["cpu_memory_bytes"] == other.cpu_memory_usage
            assert row["self_cpu_memory_bytes"] == other.self_cpu_memory_usage


# The summary.


def test_the_summary_has_a_table_for_each_time_that_was_measured():
    text = summary(table_of(*LINEAR, flops={2: 1000}), rank=3)
    heads = [part.splitlines()[0] for part in text.split("\n\n")]
    assert heads == ["rank 3, by self CPU"]
    first = text.splitlines()[2]
    assert first.startswith("aten::addmm")
    assert "60.0 %" in first
    assert "1.00 K" in first
    assert "device" not in text


def test_the_summary_is_cut_to_size():
    events = [op(f"{number:02}" + "x" * 80, 100 * number, 10) for number in range(25)]
    lines = summary(table_of(*events), rank=3).splitlines()
    assert lines[0] == "rank 3, by self CPU: 20 of 25"
    assert len(lines) == 22
    assert lines[2].startswith("00" + "x" * 50 + "...  ")


def test_the_summary_of_an_idle_trace_is_empty():
    table = table_of(call("main", 0, 10))
    assert table["name"] == ()
    assert summary(table, rank=3) == ""


# Stacks.


def stacks_of(metric, *events):
    profile = TraceProfile(read(document(list(events))))
    assert python_calls(profile.trace).any()
    return folded_stacks(profile.times, metric).splitlines()


def test_stacks_are_folded_with_their_own_microseconds():
    assert stacks_of(
        "self_cpu",
        call("train.py(3): main", 0, 100),
        call("train.py(9): step;x", 10, 50),
        op("aten::mm", 20, 30),
        op("aten::mm", 50, 5),
    ) == [
        "train.py(3): main 50",
        "train.py(3): main;train.py(9): step:x 15",
        "train.py(3): main;train.py(9): step:x;aten::mm 35",
    ]


def test_stacks_may_weigh_what_runs_on_the_device():
    assert stacks_of(
        "self_device",
        call("main", 0, 100),
        op("aten::mm", 20, 30, 5),
        launch(25, 7, 5),
        kernel("gemm", 60, 8, 7),
    ) == ["main;aten::mm 8"]
