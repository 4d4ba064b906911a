"""Sums by name over a range, search, families and steps of traces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.time.profiled_steps import steps_of
from memboard.tb_plugin.analysis.trace.timeline.families import family_of
from memboard.tb_plugin.analysis.trace.timeline.totals import (
    found_rows,
    matching,
    totals,
)
from tests.traces_builder import trace_of


def by_name(trace, start, end, tracks=(0,)):
    found = totals(trace, tracks, start, end)
    return {
        trace.strings[int(name)]: (int(count), int(total), int(own), int(most))
        for name, count, total, own, most in zip(
            found.name,
            found.count,
            found.total_ns,
            found.self_ns,
            found.max_ns,
            strict=True,
        )
    }


NESTED = [
    (0, 0, 100, "step"),
    (0, 10, 30, "mm"),
    (0, 15, 5, "launch"),
    (0, 60, 30, "mm"),
]


def test_sums_of_all():
    assert by_name(trace_of(NESTED), 0, 1000) == {
        "step": (1, 100, 40, 100),
        "mm": (2, 60, 55, 30),
        "launch": (1, 5, 5, 5),
    }


def test_of_a_slice_only_what_lies_in_the_range_counts():
    # 20..70: step 50, of it mm 20 + 10; launch ends where the range begins.
    assert by_name(trace_of(NESTED), 20, 70) == {
        "step": (1, 50, 20, 100),
        "mm": (2, 30, 30, 30),
    }


def test_sums_of_each_track_add_up_to_those_of_all():
    trace = trace_of([*NESTED, (1, 5, 40, "mm"), (1, 50, 10, "copy")])
    sums = totals(trace, [0, 1], 10, 80, by_track=True)
    columns = (sums.track, sums.name, sums.count, sums.total_ns, sums.max_ns)
    rows = {
        (int(track), trace.strings[int(name)]): tuple(map(int, values))
        for track, name, *values in zip(*columns, strict=True)
    }
    assert rows == {
        (0, "step"): (1, 70, 100),
        (0, "mm"): (2, 50, 30),
        (0, "launch"): (1, 5, 5),
        (1, "mm"): (1, 35, 40),
        (1, "copy"): (1, 10, 10),
    }
    of_all = by_name(trace, 10, 80, (0, 1))
    assert of_all["mm"][:2] == (3, 85)


@given(
    st.lists(
        st.tuples(st.just(0), st.integers(0, 90), st.integers(0, 40), st.just("a")),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 100),
    st.integers(1, 60),
)
def test_own_times_are_at_most_the_range_where_slices_nest(made, start, width):
    trace = trace_of(made)
    found = totals(trace, [0], start, start + width)
    inside = sum(
        max(0, min(s + d, start + width) - max(s, start)) for _, s, d, _ in made
    )
    assert found.total_ns.sum() == inside
    assert (found.self_ns <= found.total_ns).all()


def test_search_finds_names_whatever_their_case():
    trace = trace_of(
        [(0, 5, 1, "aten::Linear"), (1, 2, 1, "linear"), (1, 9, 1, "relu")],
        num_tracks=2,
    )
    rows, _ = found_rows(trace.slices, [0, 1], matching(trace.strings, "LINEAR"), 10)
    assert [trace.name_of(int(row)) for row in rows] == ["linear", "aten::Linear"]
    assert found_rows(trace.slices, [0], matching(trace.strings, "linear"), 10)[1] == 1
    rows, number = found_rows(trace.slices, [0, 1], matching(trace.strings, ""), 2)
    assert (len(rows), number) == (2, 3)


@pytest.mark.parametrize(
    ("category", "name", "family"),
    [
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "communication"),
        ("Kernel", "void at::native::vectorized_elementwise_kernel", "kernel"),
        ("cpu_op", "c10d::allreduce_", "communication"),
        ("cpu_op", "aten::mm", "operator"),
        ("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", "backward"),
        ("user_annotation", "nccl:all_reduce", "communication"),
        ("user_annotation", "ProfilerStep#12", "step"),
        ("user_annotation", "Optimizer.step#AdamW.step", "optimizer"),
        (
            "user_annotation",
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "dataloader",
        ),
        ("cuda_runtime", "cudaLaunchKernel", "runtime"),
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "memory"),
        ("python_function", "nn.Module: Linear_0", "python"),
        ("user_annotation", "## backward ##", "backward"),
        ("gpu_user_annotation", "DistributedDataParallel.forward", "forward"),
        ("user_annotation", "my_forward_pass", "annotation"),
        ("", "what is this", "other"),
        ("Operator", "ProfilerStep#16", "step"),
    ],
)
def test_families_are_told_by_category_and_name(category, name, family):
    assert family_of(category, name) == family


def test_steps_are_named_by_the_profiler():
    trace = trace_of(
        [(0, 0, 10, "ProfilerStep#7"), (0, 12, 10, "ProfilerStep#8"), (0, 1, 2, "mm")]
    )
    steps = steps_of(trace)
    assert steps.number.tolist() == [7, 8]
    assert steps.start_ns.tolist() == [0, 12]
    assert steps.end_ns.tolist() == [10, 22]


def test_an_empty_trace_has_no_sums():
    trace = trace_of([])
    assert len(totals(trace, [0], 0, 10).name) == 0
    assert len(steps_of(trace).number) == 0
    assert found_rows(trace.slices, [0], np.zeros(2, np.bool_), 5)[1] == 0
