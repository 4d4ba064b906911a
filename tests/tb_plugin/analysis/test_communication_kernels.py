"""Kernels that communicate, by name: those of NCCL, and of all that takes its place."""

from __future__ import annotations

import pytest

from memboard.tb_plugin.analysis.findings.trace.rules import trace_findings
from memboard.tb_plugin.analysis.kernel_names.kinds import kernel_rules
from memboard.tb_plugin.analysis.ranks.collectives import kind_of
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.trace.figures import trace_figures
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace.timeline.families import family_of
from memboard.tb_plugin.analysis.trace.trace import TraceFacts
from memboard.tb_plugin.analysis.trace.waiting.critical_path import critical_path
from memboard.tb_plugin.analysis.trace.waiting.work_starts import Cause
from memboard.tb_plugin.facts.traces.time_tables import (
    MAY_COMMUNICATE,
    kernel_rows,
    operator_rows,
)
from memboard.tb_plugin.pages.operators.kernels import KernelsQuery
from memboard.tb_plugin.pages.operators.operators import OperatorsQuery
from tests.traces_builder import MadeTrace

COMMUNICATE = (
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)", "all_reduce"),
    ("void vllm::cross_device_reduce_2stage<half, 8>(vllm::RankData*)", "all_reduce"),
    ("void sglang::cross_device_reduce_1stage<nv_bfloat16, 4>(...)", "all_reduce"),
    ("aiter::reduce_scatter_cross_device_store(...)", "reduce_scatter"),
    ("void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>(..)", "all_reduce"),
    ("void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8>(..)", "all_reduce"),
    ("trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<>", "all_reduce"),
    ("void moe_comm::moeA2ADispatchKernel<8>(MoeA2ADispatchParams)", "all_to_all"),
    ("void two_shot_all_reduce_kernel<c10::BFloat16, 16>(...)", "all_reduce"),
    ("multimem_one_shot_all_reduce_kernel<float, 16>", "all_reduce"),
    ("void (anonymous namespace)::multimem_all_gather_kernel<16>()", "all_gather"),
    ("quickreduce::allreduce_prototype_twoshot<CodecQ4<8>>", "all_reduce"),
    ("deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>", "all_to_all"),
    ("EpDispatchIntraNodeKernel_bf16", "all_to_all"),
    ("mscclpp::allgather2(...)", "all_gather"),
    ("nvshmemi_transfer_rma_kernel", "other"),
    ("kuserbuffers_pushrecv", "recv"),
    ("void pplx::a2a_combine_recv_kernel<...>", "all_to_all"),
    ("void (anonymous namespace)::barrier_kernel(unsigned int**)", "barrier"),
    ("hcom_allReduce__363_0_1", "all_reduce"),
    ("c10d::symmetric_memory::put_kernel", "other"),
    ("bkcl_all_reduce", "all_reduce"),
    ("ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_Sum_bf16(...)", "all_reduce"),
    (
        "void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel",
        "all_reduce",
    ),
    ("void mscclpp::allreduceAllPairs<(mscclpp::Op)0, __half>(...)", "all_reduce"),
    ("void tensorrt_llm::kernels::moeAllToAllKernel(...)", "all_to_all"),
    ("void deep_ep::internode_ll::dispatch<false, false, 7168>(...)", "all_to_all"),
    ("void c10d::nvshmem_extension::allToAllV(void*, void*, long*)", "all_to_all"),
    ("rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)", "other"),
    ("oneapi::ccl::allgather_kernel", "all_gather"),
)
COMPUTE = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
    "void blockAllReduceSum<float>(float*)",
    "warp_all_reduce_max",
    "triton_poi_fused_all_gather_into_tensor_wait_tensor_3",
    "triton_red_fused__to_copy_all_reduce_mean_0",
    "void at::native::_scatter_gather_elementwise_kernel<128, 4>",
    "deep_ep::layout::get_dispatch_layout<256, 4, 8>",
    "fused_moe_kernel",
)


def role_part_and_operator(name):
    made = MadeTrace()
    made.slice("main", "ProfilerStep#1", 0, 100, "user_annotation")
    made.slice("main", "vendor::fused", 5, 20, "cpu_op")
    made.kernel(10, 20, 50, name=name)
    profile = TraceProfile(made.build())
    row = int(profile.trace.device_work.row[0])
    took = profile.parts.parts_ns[0]
    (operator,) = operator_rows(profile, OperatorsQuery(run="")).colours or ("",)
    return Role(int(profile.roles[row])), took, operator


@pytest.mark.parametrize(("name", "kind"), COMMUNICATE)
def test_it_communicates_in_times_colours_and_collectives(name, kind):
    role, took, operator = role_part_and_operator(name)
    assert role == Role.COMMUNICATION
    assert operator == "communication", "of what launches it"
    assert (took[Role.COMMUNICATION], took[Role.KERNEL]) == (50, 0)
    assert family_of("kernel", name) == "communication"
    assert kind_of(name) == kind


@pytest.mark.parametrize("name", COMPUTE)
def test_what_reduces_or_moves_within_a_device_computes(name):
    role, took, operator = role_part_and_operator(name)
    assert (role, operator) == (Role.KERNEL, "")
    assert (took[Role.COMMUNICATION], took[Role.KERNEL]) == (0, 50)
    assert family_of("kernel", name) == "kernel"


@pytest.mark.parametrize(
    "operator",
    [
        "gloo:all_reduce",
        "mpi:broadcast",
        "hccl:all_gather",
        "c10d::allreduce_",
        "_c10d_functional::reduce_scatter_tensor",
        "record_param_comms",
        "FSDP::all_gather (0)",
        "_C_custom_ar::all_reduce",
        "symm_mem::one_shot_all_reduce",
        "deep_ep::dispatch",
    ],
)
def test_operators_that_start_it_have_its_colour_without_work_of_a_device(operator):
    assert family_of("cpu_op", operator) == "communication"
    made = MadeTrace()
    made.slice("main", operator, 5, 20, "cpu_op")
    rows = operator_rows(TraceProfile(made.build()), OperatorsQuery(run=""))
    assert rows.colours == ("communication",)


@pytest.mark.parametrize(
    "operator", ["aten::gather", "aten::scatter_reduce", "aten::mm", "aten::sum"]
)
def test_operators_that_reduce_on_one_device_have_not(operator):
    assert family_of("cpu_op", operator) == "operator"
    made = MadeTrace()
    made.slice("main", operator, 5, 20, "cpu_op")
    rows = operator_rows(TraceProfile(made.build()), OperatorsQuery(run=""))
    assert rows.colours == ()


ASKED = "void mine::ring_reduce_kernel<float>(float**, int)"


def profile_of(*kernel_names, world_size=8):
    """A step in which each ran for 50 ns, one after the other, and the host waited."""
    made, end = MadeTrace(), 20 + 50 * len(kernel_names)
    made.slice("main", "ProfilerStep#1", 0, end, "user_annotation")
    for number, kernel_name in enumerate(kernel_names):
        made.kernel(2 * number, 20 + 50 * number, 50, name=kernel_name)
    made.slice("main", "cudaDeviceSynchronize", 18, end - 18, "cuda_runtime")
    facts = TraceFacts(rank=0, world_size=world_size)
    return TraceProfile(made.build(facts=facts))


def notes_of(profile):
    rows = kernel_rows(profile, KernelsQuery(run=""))
    (column,) = (column for column in rows.columns if column.key == "name")
    return dict(zip(column.texts, column.notes, strict=False))


def asked_findings(profile):
    return [one for one in trace_findings(profile) if one.key == "may_communicate"]


@pytest.fixture
def user_says(monkeypatch):
    """Sets a variable, as the user does before TensorBoard starts."""

    def setting(variable, names):
        monkeypatch.setenv(variable, names)
        kernel_rules.cache_clear()

    yield setting
    monkeypatch.undo()
    kernel_rules.cache_clear()


def test_what_seems_to_cross_ranks_is_asked_about_with_its_time():
    profile = profile_of(ASKED, "elementwise_kernel")
    assert profile.parts.parts_ns[0][Role.KERNEL] == 100
    assert notes_of(profile) == {ASKED: MAY_COMMUNICATE, "elementwise_kernel": ""}
    (finding,) = asked_findings(profile)
    assert finding.severity == "info"
    assert "50.0 %" in finding.sentence
    assert [evidence.label for evidence in finding.evidence[1:]] == [ASKED]


def test_nobody_is_asked_where_there_is_one_rank_or_the_metadata_tell():
    assert not asked_findings(profile_of(ASKED, world_size=1))
    assert not any(notes_of(profile_of(ASKED, world_size=1)).values())
    assert not asked_findings(profile_of("ncclDevKernel_AllReduce"))


def test_the_user_says_what_communicates_and_what_does_not(user_says):
    user_says("MEMBOARD_PLUGIN_COMMUNICATION_KERNELS", "other_kernel, Ring_Reduce")
    profile = profile_of(ASKED, "elementwise_kernel")
    assert profile.parts.parts_ns[0][Role.COMMUNICATION] == 50
    assert not asked_findings(profile)
    assert profile.collectives.kind == ("reduce",)

    user_says("MEMBOARD_PLUGIN_COMMUNICATION_KERNELS", "")
    user_says("MEMBOARD_PLUGIN_COMPUTATION_KERNELS", "mine::")
    profile = profile_of(ASKED, "elementwise_kernel")
    assert profile.parts.parts_ns[0][Role.KERNEL] == 100
    assert not asked_findings(profile)


def test_a_decode_step_without_nccl_communicates_in_every_place():
    """As vLLM, TensorRT-LLM, PyTorch and DeepEP reduce: seven kernels beside a product."""
    kernel_names = (
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(...)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(...)",
        "flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<>",
        "void one_shot_all_reduce_kernel<c10::BFloat16>(...)",
        "deep_ep::internode_ll::dispatch<false, 3, 10, 7168>(...)",
        "mscclpp::allreduce6(...)",
        "nvshmem_all_to_all_kernel",
    )
    profile = profile_of(*kernel_names, "gemm_kernel")
    parts = profile.parts
    assert (parts.communication_ns, parts.exposed_ns) == (350, 350)
    assert parts.computation_ns == 50
    assert len(profile.collectives.row) == 7
    assert trace_figures(profile)["gpu"]["nccl_kernels"] == 7
    assert "communicating" in {finding.key for finding in trace_findings(profile)}
    colours = kernel_rows(profile, KernelsQuery(run="")).colours
    assert colours.count("communication") == 7
    pieces = [
        piece
        for piece in critical_path(profile, 0)
        if piece.cause == Cause.COMMUNICATION
    ]
    assert sum(piece.end_ns - piece.start_ns for piece in pieces) == 350
