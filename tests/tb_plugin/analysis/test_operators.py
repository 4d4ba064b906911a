"""Times of operators and kernels, of traces made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.operators.operators import IN_NO_OPERATOR, is_eligible
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.traces_builder import MadeTrace, operator_details


def table_of(trace, *, by_shapes: bool = False):
    profile = TraceProfile(trace)
    table = profile.operators_by_shapes if by_shapes else profile.operators
    return table, {trace.strings[int(name)]: at for at, name in enumerate(table.name)}


def row(table, at: int) -> tuple[int, ...]:
    columns = (table.num_calls, table.host_self_ns, table.host_total_ns)
    columns += (table.device_self_ns, table.device_total_ns)
    return tuple(int(column[at]) for column in columns)


def test_calls_of_one_name_are_one_row_and_shapes_keep_them_apart():
    made = MadeTrace()
    for at in (0, 100, 200):
        made.slice("main", "aten::mm", at, 10 + at // 10)
    trace = made.build()
    small, large = 0, len(trace.strings)
    trace = replace(
        trace,
        strings=(*trace.strings, "[[9, 9]]"),
        operators=operator_details(
            np.arange(3),
            input_dims=np.array([small, large, large]),
            external_id=np.array([1, 2, 3]),
        ),
    )
    table, at = table_of(trace)
    assert row(table, at["aten::mm"]) == (3, 60, 60, 0, 0)
    assert trace.slices.start_ns[table.example].tolist() == [200], "the longest call"
    apart, _ = table_of(trace, by_shapes=True)
    found = zip(apart.shapes.tolist(), apart.num_calls.tolist(), strict=True)
    assert sorted(found) == [(small, 1), (large, 2)]


def test_an_operator_that_only_calls_its_own_name_is_one_call():
    made = MadeTrace()
    made.slice("main", "aten::div", 0, 100)
    made.slice("main", "aten::div", 10, 50)
    made.slice("main", "aten::to", 20, 10)
    made.slice("main", "aten::add", 200, 100)
    made.slice("main", "aten::add", 210, 20)
    made.slice("main", "aten::add", 240, 20)
    table, at = table_of(made.build())
    assert row(table, at["aten::div"]) == (1, 90, 100, 0, 0)
    assert row(table, at["aten::add"])[0] == 3


def test_what_only_marks_operators_is_none():
    made = MadeTrace()
    for start, name in enumerate(
        (
            "ProfilerStep#3",
            "Optimizer.step#AdamW.step",
            "DistributedDataParallel.forward",
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
            "aten::add",
        )
    ):
        made.slice("main", name, start * 10, 5, "operator")
    assert list(table_of(made.build())[1]) == ["aten::add"]


def test_a_launch_outside_of_operators_belongs_to_the_one_its_id_names():
    made = MadeTrace()
    made.slice("main", "aten::mm", 0, 10)
    made.slice("other", "cudaLaunchKernel", 5, 2, "cuda_runtime", correlation=1)
    made.track("stream 7", kind="device", device=0, stream=7)
    made.slice("stream 7", "gemm", 20, 30, "kernel", correlation=1)
    trace = made.build()
    ids = operator_details(
        np.array([0]),
        external_id=np.array([77]),
    )
    for external_id, device_ns in ((77, 30), (0, 0), (78, 0)):
        work = replace(trace.device_work, external_id=np.array([external_id]))
        table, at = table_of(replace(trace, operators=ids, device_work=work))
        assert int(table.device_self_ns[at["aten::mm"]]) == device_ns


def at_edges(ids: tuple[int, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """Own and total device time; calls of no length at both edges of an inner operator."""
    made = MadeTrace()
    outer = made.slice("main", "aten::linear", 0, 90)
    inner = made.slice("main", "aten::addmm", 30, 40)
    made.track("stream 7", kind="device", device=0, stream=7)
    for number, call in enumerate((30, 30, 70, 70), 1):
        name, start = "cudaLaunchKernel", 100 * number
        made.slice("main", name, call, 0, "cuda_runtime", correlation=number)
        made.slice("stream 7", "gemm", start, number, "kernel", correlation=number)
    trace = made.build()
    rows = np.sort(made.rows[[outer, inner]])
    trace = replace(
        trace,
        operators=operator_details(rows, external_id=np.array([11, 12])),
        launches=replace(
            trace.launches,
            external_id=np.array(ids)[trace.launches.correlation - 1],
        ),
    )
    table, at = table_of(trace)
    return (
        {name: int(table.device_self_ns[row]) for name, row in at.items()},
        {name: int(table.device_total_ns[row]) for name, row in at.items()},
    )


def test_a_launch_at_an_operators_edge_belongs_to_the_one_its_id_names():
    own, total = at_edges((12, 11, 12, 11))
    assert own == {"aten::linear": 2 + 4, "aten::addmm": 1 + 3}
    assert total == {"aten::linear": 10, "aten::addmm": 4}
    own, _ = at_edges((11, 12, 11, 12))
    assert own == {"aten::linear": 1 + 3, "aten::addmm": 2 + 4}
    # Ids of another kind name no operator, or one that is elsewhere: times decide.
    assert at_edges((1, 2, 3, 4)) == at_edges((-1, -1, -1, -1))
    assert at_edges((-1, -1, -1, -1))[1]["aten::linear"] == 10


def test_an_id_that_names_an_operator_elsewhere_is_not_believed():
    made = MadeTrace()
    made.slice("main", "aten::mm", 0, 10)
    elsewhere = made.slice("main", "aten::add", 50, 10)
    made.slice("main", "cudaLaunchKernel", 5, 2, "cuda_runtime", correlation=9)
    made.track("stream 7", kind="device", device=0, stream=7)
    made.slice("stream 7", "gemm", 20, 30, "kernel", correlation=9)
    trace = made.build()
    trace = replace(
        trace,
        operators=operator_details(made.rows[[elsewhere]], external_id=np.array([9])),
        launches=replace(trace.launches, external_id=np.array([9])),
    )
    table, at = table_of(trace)
    assert int(table.device_self_ns[at["aten::mm"]]) == 30
    assert int(table.device_self_ns[at["aten::add"]]) == 0


def test_one_launch_may_start_kernels_on_several_devices():
    made = MadeTrace()
    made.slice("main", "Broadcast", 0, 100)
    made.slice("main", "cudaLaunchCooperativeKernelMultiDevice", 10, 5, "cuda_runtime")
    made.correlations.append((1, "cuda_runtime", 4))
    for device in (0, 1):
        made.track(f"stream {device}", kind="device", device=device, stream=7)
        made.slice(f"stream {device}", "copy", 20, 30 + device, "kernel", correlation=4)
    table, at = table_of(made.build())
    assert row(table, at["Broadcast"])[3:] == (61, 61)


@pytest.mark.parametrize(
    ("name", "eligible"),
    [
        ("aten::mm", True),
        ("aten::convolution_backward", True),
        ("aten::cudnn_convolution_backward_weight", True),
        ("autograd::engine::evaluate_function: AddmmBackward0", True),
        ("aten::_scaled_mm", True),
        ("aten::add", False),
        ("aten::copy_", False),
        ("aten::mm_like_thing", False),
    ],
)
def test_eligible_are_operators_with_matrix_products(name, eligible):
    assert is_eligible(name) is eligible


def test_kernels_by_name_and_by_what_launched_them():
    made = MadeTrace()
    made.slice("main", "aten::mm", 0, 50)
    made.kernel(10, 100, 30)
    made.slice("main", "aten::bmm", 60, 50)
    made.kernel(70, 200, 10)
    made.kernel(80, 300, 20, "ncclDevKernel_AllReduce")
    trace = made.build()
    trace = replace(
        trace,
        device_work=replace(
            trace.device_work, blocks_per_sm=np.array([1.0, 3.0, np.nan])
        ),
    )
    profile = TraceProfile(trace)
    table = profile.kernels
    found = {trace.strings[int(n)]: i for i, n in enumerate(table.name)}
    gemm = found["gemm"]
    assert int(table.num_calls[gemm]) == 2
    assert (int(table.min_ns[gemm]), int(table.max_ns[gemm])) == (10, 30)
    assert float(table.mean_ns[gemm]) == 20
    assert float(table.blocks_per_sm[gemm]) == pytest.approx((30 * 1 + 10 * 3) / 40)
    assert np.isnan(table.blocks_per_sm[found["ncclDevKernel_AllReduce"]])
    apart = profile.kernels_by_properties
    pairs = {
        (trace.strings[int(n)], trace.strings[int(o)]): int(total)
        for n, o, total in zip(apart.name, apart.operator, apart.total_ns, strict=True)
    }
    assert pairs == {
        ("gemm", "aten::mm"): 30,
        ("gemm", "aten::bmm"): 10,
        ("ncclDevKernel_AllReduce", "aten::bmm"): 20,
    }


def test_tables_of_a_trace_without_anything_are_empty():
    profile = TraceProfile(MadeTrace().build())
    assert len(profile.operators) == 0
    assert len(profile.kernels) == 0
    assert len(profile.kernels_by_properties) == 0


SLICES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 40), st.sampled_from("abc")),
    max_size=20,
)


@given(SLICES, st.sets(st.sampled_from("abc")))
def test_sums_along_the_tree_are_those_of_walking_it(slices, kept_names):
    made = MadeTrace()
    for start, took, name in slices:
        made.slice("main", name, start, took)
    trace = made.build()
    kept = np.array(
        [trace.name_of(at) in kept_names for at in range(len(trace.slices))], bool
    )
    tree = SliceTree(trace.slices, kept)
    values = np.arange(1, len(kept) + 1)
    inner, total = [0] * len(kept), [0] * len(kept)
    for at in range(len(kept)):
        around = int(trace.slices.parent[at])
        while around >= 0 and not kept[around]:
            around = int(trace.slices.parent[around])
        assert tree.parent[at] == around
        if not kept[at]:
            continue
        if around >= 0:
            inner[around] += int(values[at])
        while around >= 0:
            total[around] += int(values[at]) if kept[around] else 0
            around = int(trace.slices.parent[around])
        total[at] += int(values[at])
    assert tree.inner_sums(values).tolist() == inner
    assert tree.total_sums(values).tolist() == total


LAUNCHES = st.tuples(
    st.sampled_from(["operator", "graph", "mark", "autograd", "unknown"]),
    st.lists(st.integers(1, 500), min_size=1, max_size=4),
)


@given(st.lists(LAUNCHES, min_size=1, max_size=12), st.booleans())
def test_all_time_of_devices_is_in_a_row(launches, by_shapes):
    """Of what operators launched, and of what is launched without them."""
    made = MadeTrace()
    made.slice("main", "aten::add", 0, 1)
    made.track("stream 7", kind="device", device=0, stream=7)
    total, free, graphs = 0, 10_000, []
    for number, (kind, kernels) in enumerate(launches, 1):
        at, call = number * 100, "cudaLaunchKernel"
        if kind == "operator":
            made.slice("main", "aten::mm", at, 50)
        elif kind == "mark":
            made.slice("main", "Optimizer.step#SGD.step", at, 50, "operator")
        elif kind == "graph":
            call = "hipGraphLaunch"
            graphs += kernels
        if kind != "unknown":
            thread = "autograd" if kind == "autograd" else "main"
            made.slice(thread, call, at + 5, 10, "cuda_runtime", None, number)
        for took in kernels:
            correlation = number if kind != "unknown" else number + 1000
            made.slice("stream 7", "k", free, took, "kernel", None, correlation)
            free += took + 1
            total += took
    profile = TraceProfile(made.build())
    table = profile.launching_by_shapes if by_shapes else profile.launching
    assert table.device_self_ns.sum() == table.kernel_self_ns.sum() == total
    kernels = profile.kernels_by_properties
    assert profile.kernels.total_ns.sum() == kernels.total_ns.sum() == total
    unknown = sum(sum(took) for kind, took in launches if kind == "unknown")
    names = [profile.operator_names[row] for row in table.name]
    assert names.count(IN_NO_OPERATOR) == bool(unknown)
    assert not unknown or table.device_self_ns[names.index(IN_NO_OPERATOR)] == unknown
    assert kernels.total_ns[kernels.operator == NOTHING].sum() == unknown
    if graphs:
        (row_of,) = np.flatnonzero(
            [profile.operator_names[row] == "hipGraphLaunch" for row in table.name]
        )
        num = sum(kind == "graph" for kind, _ in launches)
        assert row(table, row_of) == (num, 10 * num, 10 * num, sum(graphs), sum(graphs))
        assert (table.group_of == row_of).sum() == num
