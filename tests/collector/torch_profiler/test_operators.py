"""Nesting and sums of events: known numbers, and torch's own table as an oracle."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.torch_profiler.digest import events as events_module
from memboard.collector.torch_profiler.digest import operators
from memboard.collector.torch_profiler.digest.events import ASYNC, read_events
from memboard.collector.torch_profiler.digest.nesting import nested
from memboard.collector.torch_profiler.digest.operators import (
    OUTSIDE,
    REST,
    operators_table,
)
from memboard.collector.torch_profiler.digest.stacks import folded_stacks, has_stacks
from memboard.collector.torch_profiler.digest.summary import summary
from tests.collector.torch_profiler.made import Results, kernel, memory, op
from tests.collector.torch_profiler.training import Training


def found(*made):
    return read_events(Results(made), pause=lambda _seconds: None)


def row_of(table, name):
    at = table["name"].index(name)
    return {column: values[at] for column, values in table.items() if column != "name"}


LINEAR = (
    op("aten::linear", 0, 100, correlation=1),
    op("aten::addmm", 10, 60, correlation=2, flops=1000),
    memory(20, 512),
    op("aten::t", 80, 10, correlation=3),
    memory(120, -64),
)


def test_own_time_is_without_what_is_inside():
    table = operators_table(found(*LINEAR))
    linear, addmm = row_of(table, "aten::linear"), row_of(table, "aten::addmm")
    assert (linear["cpu_ns"], linear["self_cpu_ns"]) == (100, 30)
    assert (addmm["cpu_ns"], addmm["self_cpu_ns"], addmm["flops"]) == (60, 60, 1000)
    assert int(table["self_cpu_ns"].sum()) == 100


def test_memory_is_the_innermost_operators_and_what_has_none_is_a_row():
    table = operators_table(found(*LINEAR))
    assert row_of(table, "aten::linear")["cpu_memory_bytes"] == 512
    assert row_of(table, "aten::linear")["self_cpu_memory_bytes"] == 0
    assert row_of(table, "aten::addmm")["self_cpu_memory_bytes"] == 512
    assert row_of(table, OUTSIDE)["self_cpu_memory_bytes"] == -64
    assert int(table["self_cpu_memory_bytes"].sum()) == 512 - 64


def test_device_time_is_that_of_who_launched_it():
    table = operators_table(
        found(
            *LINEAR,
            kernel("gemm", 200, 40, linked=2),
            kernel("copy", 250, 5, linked=2, category="gpu_memcpy"),
            kernel(
                "ProfilerStep#0", 200, 100, linked=1, category="gpu_user_annotation"
            ),
            kernel("stray", 300, 7, linked=99),
        )
    )
    assert row_of(table, "aten::linear")["device_ns"] == 45
    assert row_of(table, "aten::linear")["self_device_ns"] == 0
    assert row_of(table, "aten::addmm")["self_device_ns"] == 45
    assert row_of(table, OUTSIDE)["self_device_ns"] == 7
    assert int(table["self_device_ns"].sum()) == 52


def test_a_drivers_calls_are_inside_the_operator_that_makes_them():
    """A driver counts threads and calls in numbers of its own."""
    table = operators_table(
        found(
            op("aten::mm", 0, 100, correlation=2),
            op(
                "cudaLaunchKernel",
                10,
                30,
                thread=4711,
                category="cuda_runtime",
                linked=2,
            ),
            op(
                "cudaStreamSync",
                200,
                5,
                thread=4711,
                category="cuda_runtime",
                correlation=2,
            ),
            kernel("gemm", 300, 40, linked=2),
        )
    )
    product = row_of(table, "aten::mm")
    assert (product["cpu_ns"], product["self_cpu_ns"]) == (100, 70)
    assert product["self_device_ns"] == 40
    assert row_of(table, "cudaStreamSync")["self_device_ns"] == 0


def test_a_torch_that_tells_no_categories_is_summed_up_all_the_same():
    table = operators_table(
        found(
            op("step", 0, 100, correlation=1, category=""),
            op("aten::mm", 0, 90, correlation=2, category=""),
            kernel("gemm", 100, 40, linked=2, category=""),
            kernel("step", 100, 40, linked=1, category=""),
        )
    )
    assert row_of(table, "step")["device_ns"] == 40
    assert int(table["self_device_ns"].sum()) == 40


def test_an_operator_inside_itself_is_one_call():
    table = operators_table(found(op("aten::sum", 0, 10), op("aten::sum", 2, 6)))
    row = row_of(table, "aten::sum")
    assert (row["calls"], row["cpu_ns"], row["self_cpu_ns"]) == (1, 10, 10)


def test_steps_are_one_row_whatever_their_numbers():
    table = operators_table(
        found(op("ProfilerStep#1", 0, 5), op("ProfilerStep#22", 9, 5))
    )
    assert row_of(table, "ProfilerStep*")["calls"] == 2


def test_threads_and_what_changes_them_hold_nothing_of_each_other():
    table = operators_table(
        found(
            op("a", 0, 100, thread=1),
            op("b", 10, 10, thread=2),
            op("gloo", 0, 100, thread=3, is_async=True),
            op("c", 20, 10, thread=2**64 - 1),
        )
    )
    assert row_of(table, "a")["self_cpu_ns"] == 100
    assert row_of(table, "gloo")["self_cpu_ns"] == 100
    assert set(found(op("c", 0, 1, thread=2**64 - 1)).thread) == {ASYNC}


def test_too_many_names_are_summed_up(monkeypatch):
    monkeypatch.setattr(operators, "MAX_ROWS", 2)
    made = [op(f"op{number}", 100 * number, 10 + number) for number in range(5)]
    table = operators_table(found(*made))
    assert table["name"] == ("op4", "op3", REST)
    assert table["self_cpu_ns"].tolist() == [14, 13, 12 + 11 + 10]


def test_an_empty_trace_has_an_empty_table():
    table = operators_table(found())
    assert table["name"] == ()
    assert all(len(values) == 0 for values in table.values())


def test_more_events_than_one_may_hold_are_refused(monkeypatch):
    monkeypatch.setattr(events_module, "MAX_EVENTS", 2)
    with pytest.raises(ValueError, match="3 events are more than 2"):
        found(*LINEAR[:3])


@st.composite
def trees(draw, start=0, end=10**6, depth=4):
    """Intervals of one thread that nest, with the parent of each."""
    made = []

    def fill(begin, stop, parent, level):
        at = begin
        while level and stop - at > 2 and draw(st.booleans()):
            left = draw(st.integers(at, stop - 1))
            right = draw(st.integers(left + 1, stop))
            own = len(made)
            made.append((left, right - left, parent))
            fill(left, right, own, level - 1)
            at = right

    fill(start, end, -1, depth)
    return made


@given(trees(), st.randoms())
def test_nesting_is_that_of_the_intervals(made, random):
    rows = [op(f"{n}", start, duration) for n, (start, duration, _) in enumerate(made)]
    random.shuffle(rows)
    events = found(*rows)
    nesting = nested(events, np.arange(len(events)))
    for at, row in enumerate(nesting.rows.tolist()):
        begin = events.start_ns[row]
        end = begin + events.duration_ns[row]
        parent = nesting.parent[at]
        if parent >= 0:
            around = nesting.rows[parent]
            assert events.start_ns[around] <= begin
            assert events.start_ns[around] + events.duration_ns[around] >= end
            assert nesting.level[at] == nesting.level[parent] + 1
        else:
            assert nesting.level[at] == 0
    durations = events.duration_ns[nesting.rows].astype(float)
    own = nesting.without_inner(durations)
    top = durations[nesting.parent < 0].sum()
    assert own.sum() == pytest.approx(top)
    assert (own >= 0).all()
    assert nesting.upwards(own) == pytest.approx(durations)


def test_the_table_is_torchs_own():
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
    table = operators_table(read_events(profile.profiler.kineto_results))
    theirs = {row.key: row for row in profile.key_averages()}
    assert set(table["name"]) - {OUTSIDE} == set(theirs) - {"[memory]"}
    for name in set(table["name"]) - {OUTSIDE}:
        row, other = row_of(table, name), theirs[name]
        assert row["calls"] == other.count
        assert row["flops"] == other.flops
        assert row["cpu_ns"] == pytest.approx(other.cpu_time_total * 1000, abs=2)
        assert row["self_cpu_ns"] == pytest.approx(
            other.self_cpu_time_total * 1000, abs=2
        )
        assert row["cpu_memory_bytes"] == other.cpu_memory_usage
        assert row["self_cpu_memory_bytes"] == other.self_cpu_memory_usage


# The summary.


def test_the_summary_has_a_table_for_each_time_that_was_measured():
    text = summary(operators_table(found(*LINEAR)), rank=3)
    heads = [part.splitlines()[0] for part in text.split("\n\n")]
    assert heads == ["rank 3, by self CPU"]
    first = text.splitlines()[2]
    assert first.startswith("aten::addmm")
    assert "60.0 %" in first
    assert "1.00 K" in first
    assert "device" not in text


def test_the_summary_is_cut_to_size():
    made = [op(f"{number:02}" + "x" * 80, 100 * number, 10) for number in range(25)]
    lines = summary(operators_table(found(*made)), rank=3).splitlines()
    assert lines[0] == "rank 3, by self CPU: 20 of 25"
    assert len(lines) == 22
    assert lines[2].startswith("00" + "x" * 50 + "...  ")


def test_the_summary_of_an_empty_trace_is_empty():
    assert summary(operators_table(found()), rank=3) == ""


# Stacks.


def call(name, start, duration, thread=1):
    return op(name, start, duration, thread=thread, category="python_function")


def test_stacks_are_folded_with_their_own_microseconds():
    events = found(
        call("train.py(3): main", 0, 100_000),
        call("train.py(9): step;x", 10_000, 50_000),
        op("aten::mm", 20_000, 30_000),
        op("aten::mm", 50_000, 5_000),
        call("other thread", 0, 10**9, thread=2**64 - 1),
    )
    assert has_stacks(events)
    assert folded_stacks(events, "self_cpu", lambda _s: None).splitlines() == [
        "train.py(3): main 50",
        "train.py(3): main;train.py(9): step:x 15",
        "train.py(3): main;train.py(9): step:x;aten::mm 35",
    ]


def test_stacks_may_weigh_what_runs_on_the_device():
    events = found(
        call("main", 0, 100_000),
        op("aten::mm", 20_000, 30_000, correlation=5),
        kernel("gemm", 60_000, 8_000, linked=5),
    )
    folded = folded_stacks(events, "self_device", lambda _s: None)
    assert folded == "main;aten::mm 8\n"
    assert not has_stacks(found(*LINEAR))


def test_a_name_that_is_no_text_loses_nothing_else():
    class Odd(type(op("", 0, 0))):
        def name(self):
            return b"\xb5s wait".decode("utf-8")

    table = operators_table(found(Odd("", 0, 10), op("aten::mm", 20, 5)))
    assert list(table["name"]) == ["�s wait", "aten::mm"]
