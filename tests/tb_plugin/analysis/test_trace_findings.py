"""Findings of a trace: each where it fires, and where it must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from memboard.tb_plugin.analysis.findings.trace import devices, waiting
from memboard.tb_plugin.analysis.findings.trace.rules import trace_findings
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace.trace import TraceFacts
from tests.traces_builder import MadeTrace, memory_events

V100 = {"id": 0, "computeMajor": 7, "computeMinor": 0, "totalGlobalMem": 1000}
MI300X = {**V100, "computeMajor": 9, "computeMinor": 4, "warpSize": 64}
K80 = {"id": 0, "computeMajor": 3, "computeMinor": 0, "totalGlobalMem": 1000}


def numbers(rule, profile):
    """The evidence of what a rule found, in its order."""
    return pytest.approx([e.value for one in rule(profile) for e in one.evidence])


class Made(MadeTrace):
    """One step of 1,000,000 ns and a device's kernels in it."""

    def __init__(self) -> None:
        super().__init__()
        self.slice("main", "ProfilerStep#1", 0, 1_000_000, "user_annotation")

    def profile(self, *devices: dict, backend: str = "", blocks: float | None = None):
        trace = self.build(facts=TraceFacts(devices=devices, backend=backend))
        if blocks is not None:
            work = trace.device_work
            work = replace(work, blocks_per_sm=np.full(len(work.row), blocks))
            trace = replace(trace, device_work=work)
        return TraceProfile(trace)


@pytest.mark.parametrize(("took", "fires"), [(60_000, True), (40_000, False)])
def test_loading_takes_more_than_a_twentieth(took, fires):
    made = Made()
    made.slice("main", "enumerate(DataLoader)#It.__next__", 0, took, "user_annotation")
    assert numbers(waiting.loading, made.profile()) == ([6] if fires else [])


@pytest.mark.parametrize(
    ("name", "devices", "fires"),
    [
        ("DataParallel.forward", 2, True),
        ("DataParallel.forward", 1, False),
        ("DistributedDataParallel.forward", 2, False),
    ],
)
def test_data_parallel_on_several_devices(name, devices, fires):
    made = Made()
    made.slice("main", name, 10, 500_000, "user_annotation")
    for device in range(devices):
        made.kernel(100, 100, 1000, device=device)
    found = numbers(waiting.single_process, made.profile())
    assert found == ([devices] if fires else [])


@pytest.mark.parametrize(
    ("device", "backend", "fires"),
    [
        (V100, "gloo", True),
        (V100, "nccl", False),
        (K80, "gloo", False),
        (V100, "", True),
    ],
)
def test_a_backend_of_the_host_beside_devices(device, backend, fires):
    made = Made()
    made.slice("main", "DistributedDataParallel.forward", 10, 900, "user_annotation")
    made.slice("worker", "gloo:all_reduce", 2000, 50, "user_annotation")
    made.kernel(100, 100, 1000)
    found = [*waiting.no_nccl(made.profile(device, backend=backend))]
    assert ["through gloo" in one.sentence for one in found] == [True] * fires


def test_without_a_device_gloo_is_right():
    made = Made()
    made.slice("worker", "gloo:all_reduce", 2000, 50, "user_annotation")
    assert not [*waiting.no_nccl(made.profile(backend="gloo"))]


def test_exposed_communication_counts_and_hidden_does_not():
    made = Made()
    made.kernel(0, 0, 300_000)
    made.kernel(200_000, 200_000, 250_000, "ncclDevKernel_AllReduce", device=0)
    assert numbers(waiting.communicating, made.profile()) == [15, 40]
    hidden = Made()
    hidden.kernel(0, 0, 500_000)
    hidden.kernel(100_000, 100_000, 250_000, "ncclDevKernel_AllReduce")
    assert numbers(waiting.communicating, hidden.profile()) == []
    assert numbers(waiting.communicating, Made().profile()) == []


@pytest.mark.parametrize(("took", "fires"), [(400_000, True), (600_000, False)])
def test_a_device_that_idles_more_than_half_the_time(took, fires):
    made = Made()
    made.kernel(0, 0, took)
    assert numbers(devices.idle, made.profile()) == ([40] if fires else [])
    assert numbers(devices.idle, Made().profile()) == []


def test_that_a_device_idles_is_said_once_with_what_it_waits_for():
    made = Made()
    made.kernel(0, 0, 100_000)
    assert [*devices.idle(made.profile())]
    keys = [finding.key for finding in trace_findings(made.profile())]
    assert keys.count("host_bound") == 1
    assert "idle" not in keys


TENSILE_WITHOUT = "Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1"
TENSILE = "Cijk_Alik_Bljk_BBS_BH_MT32x32x256_MI16x16x1_SN"


@pytest.mark.parametrize(
    ("device", "kernel", "operator", "fires"),
    [
        (V100, "volta_sgemm_128x64_nn", "aten::mm", True),
        (V100, "volta_s884gemm", "aten::mm", False),
        (K80, "volta_sgemm_128x64_nn", "aten::mm", False),
        (V100, "add", "aten::add", False),
        (V100, "some_gemm", "aten::mm", False),
        (MI300X, TENSILE, "aten::mm", False),
        (MI300X, TENSILE_WITHOUT, "aten::mm", True),
    ],
)
def test_matrix_products_without_tensor_cores(device, kernel, operator, fires):
    made = Made()
    made.slice("main", operator, 90, 100)
    made.kernel(100, 100, 600, kernel)
    made.kernel(1000, 1000, 400, "elementwise_kernel")
    found = numbers(devices.no_tensor_cores, made.profile(device))
    assert found == ([60, 100] if fires else [])


@pytest.mark.parametrize(("unknown_ns", "fires"), [(150, True), (151, False)])
def test_no_tensor_cores_needs_four_fifths_of_the_products_known(unknown_ns, fires):
    made = Made()
    made.slice("main", "aten::mm", 90, 100)
    made.kernel(100, 100, 600, "volta_sgemm_128x64_nn")
    made.kernel(1000, 1000, unknown_ns, "some_gemm")
    # What is no product does not count.
    made.kernel(2000, 2000, 9000, "elementwise_kernel")
    assert bool([*devices.no_tensor_cores(made.profile(V100))]) is fires


def test_amds_cores_have_their_own_name_and_no_capability():
    made = Made()
    made.slice("main", "aten::mm", 90, 100)
    made.kernel(100, 100, 600, TENSILE_WITHOUT)
    (finding,) = devices.no_tensor_cores(made.profile(MI300X))
    assert finding.title == "No matrix cores"
    assert "tensor" not in finding.sentence
    assert "TF32" not in finding.advice[0].text


@pytest.mark.parametrize(("peak", "fires"), [(901, True), (900, False)])
def test_a_device_that_is_nearly_full(peak, fires):
    made = Made()
    made.kernel(0, 0, 10)
    profile = made.profile(V100)
    memory = memory_events([(1, 5, 0, 0, -1, 99_999, 0), (2, 5, 0, 1, 0, peak, 0)])
    profile = TraceProfile(replace(profile.trace, memory=memory))
    found = numbers(devices.near_capacity, profile)
    assert found == ([peak, 1000] if fires else [])


def test_many_small_kernels_on_an_idle_device():
    made = Made()
    for at in range(40):
        made.kernel(at * 20_000, at * 20_000, 5_000)
    (found,) = devices.small_kernels(made.profile())
    assert found.sentence.startswith("100 % of the kernels are shorter than")
    assert found.sentence.endswith(" A step runs 40 kernels.")
    assert numbers(devices.small_kernels, made.profile()) == [100, 5e-6, 80]
    busy = Made()
    busy.kernel(100_000, 100_000, 800_000)
    for at in range(40):
        busy.kernel(at * 20, at * 20, 10)
    assert numbers(devices.small_kernels, busy.profile()) == []
    few = Made()
    few.kernel(0, 0, 50_000)
    assert numbers(devices.small_kernels, few.profile()) == []


@pytest.mark.parametrize(("blocks", "fires"), [(0.3, True), (0.9, False), (5.0, False)])
def test_kernels_that_leave_most_of_the_device_idle(blocks, fires):
    made = Made()
    made.kernel(0, 0, 900_000)
    found = [*devices.empty_devices(made.profile(blocks=blocks))]
    assert (len(found) == 1) is fires
    talking = Made()
    talking.kernel(0, 0, 900_000, "ncclDevKernel_AllReduce")
    assert numbers(devices.empty_devices, talking.profile(blocks=0.1)) == []


def test_a_device_that_waits_for_the_host():
    made = Made()
    made.slice("main", "aten::mm", 0, 500_000)
    made.kernel(600_000, 600_000, 400_000)
    (found,) = waiting.host_bound(made.profile())
    assert found.cost == pytest.approx(60)
    assert "mostly for operators on the host" in found.sentence
    busy = Made()
    busy.slice("main", "aten::mm", 0, 500_000)
    busy.kernel(0, 0, 900_000)
    assert numbers(waiting.host_bound, busy.profile()) == []
    without = Made()
    without.slice("main", "aten::mm", 0, 500_000)
    assert numbers(waiting.host_bound, without.profile()) == []


@pytest.mark.parametrize(("called", "share"), [(600_000, 60), (10_000, None)])
def test_what_was_launched_in_time_and_began_late_waited_for_no_host(called, share):
    made = Made()
    made.slice("main", "aten::mm", 0, 800_000)
    made.slice(
        "main", "cudaLaunchKernel", called - 5_000, 5_000, "cuda_runtime", None, 7
    )
    made.track("stream 7", kind="device", device=0, stream=7)
    made.slice("stream 7", "gemm", 600_000, 400_000, "kernel", None, 7)
    shares = [finding.cost for finding in waiting.host_bound(made.profile())]
    assert shares == ([] if share is None else [pytest.approx(share)])


def test_a_trace_of_nothing_has_no_findings():
    assert trace_findings(TraceProfile(MadeTrace().build())) == ()
