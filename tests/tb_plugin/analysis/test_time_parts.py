"""Steps, roles, breakdowns and device use of traces made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.traces_builder import MadeTrace, rest_ns


def steps_of(made: MadeTrace):
    return TraceProfile(made.build()).steps


def test_steps_are_their_annotations_in_order():
    made = MadeTrace()
    made.slice("main", "ProfilerStep#11", 200, 90, "user_annotation")
    made.slice("main", "ProfilerStep#9", 0, 90, "user_annotation")
    made.slice("main", "ProfilerStep#10", 100, 95, "user_annotation")
    steps = steps_of(made)
    assert steps.number.tolist() == [9, 10, 11]
    assert steps.start_ns.tolist() == [0, 100, 200]
    assert steps.end_ns.tolist() == [90, 195, 290]
    assert steps.of(np.array([-1, 0, 89, 90, 100, 289, 290])).tolist() == [
        -1,
        0,
        0,
        -1,
        1,
        2,
        -1,
    ]


def test_the_copy_on_a_stream_is_no_step():
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 90, "user_annotation")
    made.track("stream 7", kind="device", device=0, stream=7)
    made.slice("stream 7", "ProfilerStep#1", 20, 90, "gpu_user_annotation")
    assert steps_of(made).number.tolist() == [1]


def test_without_steps_all_that_the_host_did_is_one():
    made = MadeTrace()
    made.slice("main", "aten::add", 10, 20)
    made.slice("other", "aten::mul", 50, 20)
    steps = steps_of(made)
    assert not steps.are_marked
    assert (steps.number.tolist(), steps.span_ns) == ([0], (10, 70))


def test_a_step_lasts_as_long_as_what_was_launched_in_it():
    made = MadeTrace()
    for number in range(3):
        made.slice("main", f"ProfilerStep#{number}", number * 100, 90, "operator")
        made.kernel(number * 100 + 10, number * 100 + 50, 70)
    steps = steps_of(made)
    assert steps.start_ns.tolist() == [0, 120, 220]
    assert steps.end_ns.tolist() == [120, 220, 320]
    assert steps.host_end_ns.tolist() == [90, 190, 290]
    assert steps.num_works.tolist() == [1, 1, 1]


def test_work_of_before_the_first_step_moves_its_start():
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 100, 90, "user_annotation")
    made.kernel(50, 60, 70)  # of a step that was not profiled
    made.kernel(120, 130, 30)
    assert steps_of(made).start_ns.tolist() == [130]


@pytest.mark.parametrize(("last", "kept"), [(0, 2), (3, 2), (4, 3), (5, 3)])
def test_steps_at_the_end_that_are_not_whole_are_left_out(last, kept):
    made = MadeTrace()
    for number, count in enumerate((5, 5, last, 0)):
        made.slice("main", f"ProfilerStep#{number}", number * 100, 90, "operator")
        for at in range(count):
            made.kernel(number * 100 + at, number * 100 + 10 + at * 5, 5)
    assert len(steps_of(made)) == kept


def test_roles_are_of_what_ran():
    made = MadeTrace()
    said = {
        ("ProfilerStep#1", "user_annotation"): Role.OTHER,
        ("aten::add", "cpu_op"): Role.CPU_EXEC,
        ("FSDP::all_gather (0)", "user_annotation"): Role.CPU_EXEC,
        ("my nccl wrapper", "user_annotation"): Role.CPU_EXEC,
        (
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "user_annotation",
        ): (Role.DATALOADER),
        ("enumerate(DataPipe)#Mapper", "user_annotation"): Role.DATALOADER,
        ("gloo:all_reduce", "user_annotation"): Role.COMMUNICATION,
        ("nccl:all_reduce", "user_annotation"): Role.CPU_EXEC,
        ("cudaLaunchKernel", "cuda_runtime"): Role.RUNTIME,
        ("Memcpy HtoD", "gpu_memcpy"): Role.MEMCPY,
        ("Memset", "Memset"): Role.MEMSET,
        ("sgemm", "Kernel"): Role.KERNEL,
        ("ncclDevKernel_AllGather_RING_LL", "kernel"): Role.COMMUNICATION,
        ("train.py(3): main", "python_function"): Role.OTHER,
        ("anything", "a category of tomorrow"): Role.OTHER,
    }
    for at, (name, category) in enumerate(said):
        made.slice("main", name, at * 10, 5, category, correlation=at + 1)
    trace = made.build()
    found = TraceProfile(trace).roles
    by_name = {
        (trace.name_of(row), trace.category_of(row)): Role(int(found[row]))
        for row in range(len(trace.slices))
    }
    assert by_name == said


def test_without_a_device_the_hosts_collective_is_the_communication():
    made = MadeTrace()
    made.slice("main", "nccl:all_reduce", 0, 5, "user_annotation")
    assert TraceProfile(made.build()).roles.tolist() == [Role.COMMUNICATION]


def test_the_parts_of_a_step():
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 100, "user_annotation")
    made.slice("main", "enumerate(DataLoader)#It.__next__", 0, 20, "user_annotation")
    made.slice("main", "aten::mm", 20, 20)
    made.kernel(30, 40, 20)  # 40 to 60
    made.kernel(32, 50, 30, "ncclKernel_AllReduce")  # 50 to 80, of it 10 hidden
    made.slice("main", "aten::add", 85, 5)
    parts = TraceProfile(made.build()).parts
    found = dict(zip(Role, parts.parts_ns[0].tolist(), strict=True))
    assert found == {
        Role.KERNEL: 20,
        Role.MEMCPY: 0,
        Role.MEMSET: 0,
        Role.COMMUNICATION: 20,
        Role.RUNTIME: 2,
        Role.DATALOADER: 20,
        Role.CPU_EXEC: 23,
        Role.OTHER: 15,
    }
    assert parts.computation_ns.tolist() == [20]
    assert parts.communication_ns.tolist() == [30]
    assert parts.overlap_ns.tolist() == [10]
    assert parts.exposed_ns.tolist() == [20]
    assert rest_ns(parts).tolist() == [60]


CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cpu_op", "none")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(CATEGORIES),
            st.sampled_from(("add", "ncclKernel", "gloo:all_reduce")),
            st.integers(0, 200),
            st.integers(0, 60),
        ),
        max_size=25,
    ),
    st.integers(1, 4),
)
def test_the_parts_add_up_to_the_step(slices, num_steps):
    made = MadeTrace()
    for number in range(num_steps):
        made.slice("main", f"ProfilerStep#{number}", number * 50, 50, "user_annotation")
    for at, (category, name, start, took) in enumerate(slices):
        made.slice(category, name, start, took, category, correlation=at + 1)
    profile = TraceProfile(made.build())
    parts, steps = profile.parts, profile.steps
    assert (parts.parts_ns >= 0).all()
    lengths = steps.end_ns - steps.start_ns
    assert parts.parts_ns.sum(axis=1).tolist() == lengths.tolist()
    assert (parts.overlap_ns <= parts.communication_ns).all()
    assert (parts.overlap_ns <= parts.computation_ns).all()
    assert (rest_ns(parts) >= 0).all()


def with_blocks(made: MadeTrace, blocks: list[float], occupancy: list[float]):
    trace = made.build()
    return replace(
        trace,
        device_work=replace(
            trace.device_work,
            blocks_per_sm=np.array(blocks, np.float64),
            occupancy_pct=np.array(occupancy, np.float64),
        ),
    )


@pytest.mark.parametrize(
    ("around", "overlap"),
    [
        ("aten::linear", 100),
        ("DistributedDataParallel.forward", 100),
        ("FSDP::post_backward_reduce (0)", 20),
        ("c10d::allreduce_", 20),
        ("_c10d_functional::wait_tensor", 20),
        ("record_param_comms", 20),
    ],
)
def test_on_the_host_what_waits_for_a_collective_hides_nothing_of_it(around, overlap):
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 1000, "user_annotation")
    made.slice("main", "aten::mm", 10, 90)
    made.slice("main", around, 200, 300, "user_annotation")
    # Inside of it an operator does compute, and one of those waits again.
    made.slice("main", "aten::copy_", 320, 30)
    made.slice("main", "c10d::barrier", 330, 10)
    made.slice("worker", "gloo:all_reduce", 300, 100, "user_annotation")
    made.slice("worker", "aten::div_", 310, 50)
    parts = TraceProfile(made.build()).parts
    waits = 10 if overlap == 100 else 0
    assert parts.communication_ns.tolist() == [100]
    assert parts.overlap_ns.tolist() == [overlap - waits]
    computed = 90 + (300 if overlap == 100 else 20) - waits
    assert parts.computation_ns.tolist() == [computed]
    assert rest_ns(parts).tolist() == [1000 - computed - 100 + overlap - waits]


def test_another_thread_may_compute_while_one_waits():
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 1000, "user_annotation")
    made.slice("main", "FSDP::all_gather (0)", 100, 400, "user_annotation")
    made.slice("autograd", "aten::mm", 200, 100)
    made.slice("worker", "gloo:all_gather", 150, 300, "user_annotation")
    parts = TraceProfile(made.build()).parts
    assert (parts.computation_ns.tolist(), parts.overlap_ns.tolist()) == ([100], [100])
    assert parts.exposed_ns.tolist() == [200]


def use_of(trace):
    return TraceProfile(trace).devices


def test_device_use_is_what_its_formulas_say():
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 100, "user_annotation")
    made.kernel(5, 10, 20, "volta_sgemm")
    made.kernel(15, 50, 30, "volta_s884gemm")
    trace = with_blocks(made, [64 / 80, 3.0], [25.0, 50.0])
    (use,) = use_of(trace)
    assert (use.device, use.num_kernels, use.busy_ns, use.span_ns) == (0, 2, 50, 100)
    assert use.utilization == 0.5
    assert use.sm_efficiency == pytest.approx((0.8 * 20 + 1 * 30) / 100)
    assert use.occupancy == pytest.approx((0.25 * 20 + 0.5 * 30) / 50)
    assert use.tensor_core_share == pytest.approx(0.6)


def test_what_a_trace_does_not_say_is_not_zero():
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 100, "user_annotation")
    made.kernel(0, 0, 100)
    (use,) = use_of(with_blocks(made, [float("nan")], [float("nan")]))
    assert (use.sm_efficiency, use.occupancy) == (None, None)
    assert use_of(MadeTrace().build()) == ()
