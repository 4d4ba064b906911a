"""Kernels that graphs replay, and the operators and modules that were captured."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.operators.captured import captured_graphs
from memboard.tb_plugin.analysis.operators.replayed import replayed_time, with_captured
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.traces_builder import MadeTrace


@dataclass
class Layer:
    """A module whose operators launch a kernel each."""

    module: str
    operators: list[tuple[str, str]] = field(default_factory=list)
    """Operator, and the kernel that it launches."""


def capture(layers: list[Layer], *, says_kernels: bool = True):
    """A trace of the capture: an operator before it runs, those in it only launch."""
    made = MadeTrace()
    made.slice("main", "aten::fill_", 0, 20)
    made.kernel(5, 50, 10, "fill")
    made.slice("main", "hipStreamBeginCapture", 100, 5, "cuda_runtime", correlation=50)
    at, number = 200, 1_000
    for layer in layers:
        took = 100 * len(layer.operators) + 20
        made.slice("main", f"nn.Module: {layer.module}", at, took, "python_function")
        for operator, kernel in layer.operators:
            made.slice("main", operator, at + 10, 80)
            call = ("hipLaunchKernel", at + 30, 20, "cuda_runtime")
            made.slice("main", *call, correlation=number)
            if says_kernels:
                made.launched[number] = made.text(kernel)
            at, number = at + 100, number + 1
        at += 50
    made.slice("main", "hipStreamEndCapture", at, 5, "cuda_runtime", correlation=51)
    return made.build()


def replay(
    kernels: list[tuple[str, str, int]], *, num_replays: int = 1, module: str = ""
):
    """A trace that launches a graph; kernels with their stream and duration."""
    made = MadeTrace()
    made.slice("main", "aten::mm", 0, 20)
    made.kernel(5, 50, 7)
    at, device = 100, 200
    for number in range(num_replays):
        if module:
            made.slice("main", f"nn.Module: {module}", at, 40, "python_function")
        call = ("hipGraphLaunch", at + 10, 20, "cuda_runtime")
        made.slice("main", *call, correlation=10_000 + number)
        for name, stream, took in kernels:
            made.track(stream, kind="device", device=0, stream=int(stream[-1]))
            made.slice(stream, name, device, took, "kernel", None, 10_000 + number)
            device += took + 1
        at += 100
    return made.build()


def device_self(trace) -> dict[str, tuple[int, int]]:
    """By operator: calls, and time of what it launched."""
    profile = TraceProfile(trace)
    table = profile.launching
    assert table.device_self_ns.sum() == profile.times.work_ns.sum()
    return {
        profile.operator_names[name]: (int(calls), int(took))
        for name, calls, took in zip(
            table.name, table.num_calls, table.device_self_ns, strict=True
        )
        if took
    }


LAYERS = [
    Layer("Attention_0", [("aten::addmm", "gemm"), ("vllm::attention", "paged")]),
    Layer("Attention_1", [("aten::addmm", "gemm"), ("vllm::attention", "paged")]),
]
SERIAL = [("gemm", "stream 7", 11), ("paged", "stream 7", 13)] * 2


def test_what_a_graph_replays_is_of_the_operators_and_modules_that_it_captured():
    trace = with_captured(
        replay(SERIAL, num_replays=3), captured_graphs(capture(LAYERS))
    )
    assert device_self(trace) == {
        "aten::mm": (1, 7),
        "aten::addmm": (6, 6 * 11),
        "vllm::attention": (6, 6 * 13),
    }
    modules = TraceProfile(trace).modules
    assert modules.name == ("Attention_0", "Attention_1")
    assert modules.device_self_ns.tolist() == [3 * 24] * 2
    assert modules.num_calls.tolist() == [3, 3]
    assert modules.host_ns.tolist() == [0, 0]
    assert modules.outside_device_ns == 7
    assert replayed_time(trace) == (6 * 24, 0)


def test_calls_lie_where_their_kernels_ran_and_lead_to_them():
    trace = with_captured(replay(SERIAL), captured_graphs(capture(LAYERS)))
    (name,) = [
        row
        for row, text in enumerate(trace.strings)
        if text == "nn.Module: Attention_1"
    ]
    (module,) = np.flatnonzero(trace.slices.name == name).tolist()
    assert trace.slices.ranges(np.array([module])).tolist() == [[226, 251]]
    track = trace.tracks[int(trace.slices.track[module])]
    assert (track.process, track.kind, track.device) == (
        "captured in graphs",
        "device",
        0,
    )
    operator = trace.children_of(module)[0]
    assert trace.name_of(int(operator)) == "aten::addmm"
    (link,) = [link for link in trace.links_of(int(operator)) if link.outgoing]
    assert (link.kind, trace.name_of(link.row)) == ("captured", "gemm")
    back = {link.kind: link for link in trace.links_of(link.row)}
    assert (back["captured"].row, back["captured"].outgoing) == (int(operator), False)
    assert trace.name_of(back["launch"].row) == "hipGraphLaunch"


def test_a_trace_that_records_the_capture_and_the_replay_needs_no_other():
    captured, replayed = capture(LAYERS), replay(SERIAL)
    assert with_captured(replayed, captured_graphs(replayed)) is replayed
    assert captured_graphs(replayed) == []
    assert with_captured(captured, captured_graphs(captured)) is captured


def test_what_is_captured_in_no_module_is_of_the_one_around_the_launch():
    trace = with_captured(
        replay(SERIAL, module="Model_0"), captured_graphs(capture(LAYERS))
    )
    modules = TraceProfile(trace).modules
    assert modules.name == ("Model_0", "Attention_0", "Attention_1")
    assert modules.parent.tolist() == [NOTHING, 0, 0]
    assert modules.device_ns.tolist() == [48, 24, 24]
    assert modules.num_calls.tolist() == [1, 1, 1]


@pytest.mark.parametrize("says_kernels", [True, False])
def test_another_graph_stays_in_the_row_of_its_launch(says_kernels):
    graphs = captured_graphs(capture(LAYERS, says_kernels=says_kernels))
    kernels = [*SERIAL, ("gemm", "stream 7", 5)]
    trace = with_captured(replay(kernels), graphs)
    assert device_self(trace) == {"aten::mm": (1, 7), "hipGraphLaunch": (1, 53)}
    assert replayed_time(trace) == (53, 53)


def test_without_kernels_names_order_on_one_stream_decides():
    graphs = captured_graphs(capture(LAYERS, says_kernels=False))
    own = {"aten::mm": (1, 7), "aten::addmm": (2, 22), "vllm::attention": (2, 26)}
    assert device_self(with_captured(replay(SERIAL), graphs)) == own
    apart = [(name, f"stream {8 + (name == 'gemm')}", took) for name, _, took in SERIAL]
    assert "hipGraphLaunch" in device_self(with_captured(replay(apart), graphs))


def test_with_kernels_names_streams_may_run_side_by_side():
    layers = [
        Layer("A_0", [("aten::mm", "gemm"), ("aten::add", "add")]),
        Layer("B_0", [("aten::mm", "gemm"), ("aten::mul", "mul")]),
    ]
    kernels = [
        ("gemm", "stream 7", 11),
        ("gemm", "stream 8", 13),
        ("mul", "stream 8", 3),
        ("add", "stream 7", 2),
    ]
    trace = with_captured(replay(kernels), captured_graphs(capture(layers)))
    modules = TraceProfile(trace).modules
    assert dict(zip(modules.name, modules.device_self_ns.tolist(), strict=True)) == {
        "A_0": 13,
        "B_0": 16,
    }


OPERATORS = st.lists(
    st.tuples(
        st.sampled_from(["aten::mm", "aten::add", "vllm::moe"]), st.integers(0, 3)
    ),
    min_size=1,
    max_size=8,
)


@given(
    st.lists(OPERATORS, min_size=1, max_size=4),
    st.lists(st.integers(1, 90), min_size=32, max_size=32),
    st.integers(1, 3),
    st.booleans(),
)
def test_each_kernel_is_of_the_operator_at_its_place(
    layers, durations, num_replays, says_kernels
):
    made = [
        Layer(f"Layer_{number}", [(name, f"k{kernel}") for name, kernel in operators])
        for number, operators in enumerate(layers)
    ]
    launches = [
        (operator, kernel, layer.module)
        for layer in made
        for operator, kernel in layer.operators
    ]
    kernels = [
        (kernel, "stream 7", took)
        for (_, kernel, _), took in zip(launches, durations, strict=False)
    ]
    trace = with_captured(
        replay(kernels, num_replays=num_replays),
        captured_graphs(capture(made, says_kernels=says_kernels)),
    )
    expected: dict[str, int] = {"aten::mm": 7}
    of_module: dict[str, int] = {}
    for (operator, _, module), (_, _, took) in zip(launches, kernels, strict=True):
        expected[operator] = expected.get(operator, 0) + num_replays * took
        of_module[module] = of_module.get(module, 0) + num_replays * took
    assert {name: took for name, (_, took) in device_self(trace).items()} == expected
    modules = TraceProfile(trace).modules
    assert dict(zip(modules.name, modules.device_ns.tolist(), strict=True)) == of_module
    for track in trace.tracks:
        for level in range(track.num_levels):
            first, stop = track.level_rows[level : level + 2]
            ends = trace.slices.ends(slice(first, stop))
            assert (trace.slices.start_ns[first + 1 : stop] >= ends[:-1]).all()
