"""Kernels that communicate, by name: those of NCCL, and of all that takes its place."""

from __future__ import annotations

import pytest

from memboard.tb_plugin.analysis.ranks.collectives import kind_of
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace.timeline.families import family_of
from memboard.tb_plugin.facts.traces.time_tables import operator_rows
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
