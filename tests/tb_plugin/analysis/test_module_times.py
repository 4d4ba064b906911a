"""Time of modules, of traces made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.traces_builder import MadeTrace


def table_of(made: MadeTrace):
    return TraceProfile(made.build()).modules


def modules_of(made: MadeTrace) -> dict[str, dict[str, int]]:
    table = table_of(made)
    found, paths = {}, []
    for at, name in enumerate(table.name):
        parent = int(table.parent[at])
        assert parent < at
        paths.append(f"{paths[parent]}/{name}" if parent >= 0 else name)
        found[paths[at]] = {
            column: int(getattr(table, column)[at])
            for column in table.__slots__
            if isinstance(getattr(table, column), np.ndarray)
            and column not in ("parent", "example")
        }
    return found


def python(made: MadeTrace, name: str, start: int, took: int) -> None:
    made.slice("main", name, start, took, "python_function")


def test_what_operators_launched_is_their_modules():
    made = MadeTrace()
    python(made, "nn.Module: Net_0", 0, 500)
    python(made, "nn.Module: Linear_0", 10, 100)
    made.slice("main", "aten::linear", 20, 60)
    made.slice("main", "aten::addmm", 30, 40)
    made.kernel(40, 100, 33)
    made.slice("main", "aten::relu", 200, 60)
    made.kernel(210, 250, 5, "relu")
    found = modules_of(made)
    assert (found["Net_0"]["device_ns"], found["Net_0"]["device_self_ns"]) == (38, 5)
    linear = found["Net_0/Linear_0"]
    assert (linear["device_ns"], linear["device_self_ns"]) == (33, 33)


def test_what_is_launched_without_operators_is_its_modules_too():
    made = MadeTrace()
    python(made, "nn.Module: Net_0", 0, 500)
    python(made, "nn.Module: Layer_0", 10, 100)
    made.track("stream 7", kind="device", device=0, stream=7)
    made.slice("main", "cudaGraphLaunch", 20, 5, "cuda_runtime", correlation=1)
    for start in (100, 200, 300):
        made.slice("stream 7", "gemm", start, 50, "kernel", correlation=1)
    made.slice("main", "aten::copy_", 700, 60)
    made.slice("main", "cudaMemcpyAsync", 710, 5, "cuda_runtime", correlation=2)
    made.slice("stream 7", "copy", 800, 7, "kernel", correlation=2)
    table = table_of(made)
    assert table.device_self_ns.tolist() == [0, 150]
    assert table.device_ns.tolist() == [150, 150]
    assert table.outside_device_ns == 7


def test_recomputed_forward_in_backward_counts_once():
    made = MadeTrace()
    python(made, "nn.Module: Net_0", 0, 500)
    forward = made.slice("main", "aten::mm", 10, 50)
    outer = made.slice("main", "autograd::engine::evaluate_function: X", 600, 300)
    made.flow("fwdbwd", forward, outer)
    python(made, "nn.Module: Net_0", 610, 100)
    made.slice("main", "aten::mm", 620, 50)
    made.kernel(630, 1000, 11)
    made.slice("main", "aten::mm", 800, 50)
    made.kernel(810, 1100, 13)
    table = table_of(made)
    assert table.device_self_ns.tolist() == [11]
    assert table.backward_device_self_ns.tolist() == [13]
    assert table.outside_device_ns == 0


def test_backward_belongs_to_the_module_of_the_forward_it_undoes():
    made = MadeTrace()
    python(made, "nn.Module: Net_0", 0, 500)
    python(made, "nn.Module: Linear_0", 10, 100)
    forward = made.slice("main", "aten::addmm", 30, 40)
    relu = made.slice("main", "aten::relu", 200, 60)
    outer = made.slice("backward", "autograd::engine::evaluate_function: X", 600, 90)
    inner = made.slice("backward", "AddmmBackward0", 610, 70)
    other = made.slice("backward", "ReluBackward0", 700, 11)
    made.flow("fwdbwd", forward, outer)
    made.flow("fwdbwd", forward, inner)
    made.flow("fwdbwd", relu, other)
    made.flow("ac2g", relu, inner)
    for at, (start, row) in enumerate(((620, inner), (702, other))):
        launch = made.slice(
            "backward", "cudaLaunchKernel", start, 2, "cuda_runtime", correlation=at + 1
        )
        assert launch > row
        made.track("stream 7", kind="device", device=0, stream=7)
        made.slice("stream 7", "k", start + 9, 5 + at, "kernel", correlation=at + 1)
    found = modules_of(made)
    net, linear = found["Net_0"], found["Net_0/Linear_0"]
    assert (linear["backward_host_ns"], linear["backward_host_self_ns"]) == (90, 90)
    assert (net["backward_host_ns"], net["backward_host_self_ns"]) == (101, 11)
    assert (linear["backward_device_ns"], linear["backward_device_self_ns"]) == (5, 5)
    assert (net["backward_device_ns"], net["backward_device_self_ns"]) == (11, 6)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=12),
    st.integers(0, 2),
)
def test_totals_are_the_selves_of_a_module_and_those_in_it(undone, depth):
    """Modules 0 > 1 > 2 (as deep as `depth`); operators in them and (3) in none."""
    made = MadeTrace()
    for level in range(depth + 1):
        python(made, f"nn.Module: M_{level}", level * 100, 1000 - level * 200)
    for at, (where, took) in enumerate(undone):
        start = 1100 + at if where > depth else where * 100 + 1 + at * 2
        forward = made.slice("main", "aten::mm", start, 1)
        node = made.slice("backward", "MmBackward0", 5000 + at * 100, took)
        made.flow("fwdbwd", forward, node)
    table = table_of(made)
    inside = [took for where, took in undone if where <= depth]
    if not inside:
        assert table.backward_by == ("not_in_modules" if undone else "not_run")
    assert table.backward_host_self_ns.sum() == sum(inside)
    assert table.backward_host_ns[table.parent < 0].sum() == sum(inside)
    for row in range(len(table)):
        below = table.backward_host_ns[table.parent == row].sum()
        own = table.backward_host_self_ns[row]
        assert table.backward_host_ns[row] == own + below


def test_backward_of_what_lies_in_no_module_is_nobodys():
    made = MadeTrace()
    python(made, "nn.Module: Net_0", 0, 50)
    loss = made.slice("main", "aten::nll_loss", 60, 10)
    undone = made.slice("backward", "NllLossBackward0", 100, 20)
    assert table_of(made).backward_by == "not_linked"
    made.flow("fwdbwd", loss, undone)
    table = table_of(made)
    assert table.backward_by == "not_in_modules"
    assert table.backward_host_ns.tolist() == [0]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("nn.Module: Linear_3", "Linear_3"),
        ("[pl][module]torch.nn.modules.linear.Linear: encoder.0", "encoder.0"),
        ("[pl][module]encoder", "encoder"),
        ("nn.Module: <b>_0\nx", "<b>_0\nx"),
    ],
)
def test_names_of_modules(name, shown):
    made = MadeTrace()
    made.slice("main", name, 0, 10, "user_annotation")
    assert list(modules_of(made)) == [shown]


def test_lightnings_actions_are_around_its_modules():
    made = MadeTrace()
    for name, start, took in (
        ("[pl][profile]run_training_batch", 0, 1000),
        ("[pl][profile][Strategy]SingleDeviceStrategy.training_step", 100, 500),
        ("[pl][module]torch.nn.modules.linear.Linear: layer_1", 200, 100),
        ("[pl][profile][Strategy]SingleDeviceStrategy.backward", 700, 200),
    ):
        made.slice("main", name, start, took, "user_annotation")
    forward = made.slice("main", "aten::linear", 210, 50)
    backward = made.slice("main", "AddmmBackward0", 710, 90)
    made.flow("fwdbwd", forward, backward)
    found = modules_of(made)
    training = "run_training_batch/[Strategy]SingleDeviceStrategy.training_step"
    assert set(found) == {
        "run_training_batch",
        training,
        f"{training}/layer_1",
        "run_training_batch/[Strategy]SingleDeviceStrategy.backward",
    }
    assert found[training]["host_self_ns"] == 400
    assert found[f"{training}/layer_1"]["backward_host_ns"] == 90
    assert found["run_training_batch"]["host_ns"] == 1000


def test_a_trace_without_modules_has_none():
    made = MadeTrace()
    made.slice("main", "aten::mm", 0, 10)
    made.slice("main", "[pl][profile]run_training_batch", 20, 10, "user_annotation")
    assert modules_of(made) == {}
    assert modules_of(MadeTrace()) == {}
