"""FLOP, categories and recomputation of whole traces."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memboard.tb_plugin.analysis.efficiency.work_categories import (
    CATEGORIES,
    kernel_category,
    operator_category,
)
from memboard.tb_plugin.analysis.findings.trace.efficiency import slow_matmuls
from memboard.tb_plugin.facts.traces.time_tables import kernel_rows, operator_rows
from tests.tb_plugin.analysis.planted_operators import PlantedFile, multiplying
from tests.tb_plugin.analysis.test_peer_unit_kinds import profile_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile

MATMUL = {
    "Input Dims": [[256, 512], [512, 1024]],
    "Input type": ["c10::BFloat16", "c10::BFloat16"],
}
FLOP = 2 * 256 * 512 * 1024
MOVED = 2 * (256 * 512 + 512 * 1024 + 256 * 1024)


@contextmanager
def called(planted: PlantedFile, name: str, **args: Any) -> Iterator[None]:
    """An operator that takes longer than what is in it."""
    with planted.operator(name, **args):
        planted.spend(1)
        yield
        planted.spend(1)


def query(**words: Any) -> Any:
    return SimpleNamespace(**{"sort": None, "text": None, "top": 500, **words})


def row_of(table: Any, name: str) -> dict[str, Any]:
    """The values of a row by column."""
    columns = {column.key: column for column in table.columns}
    place = columns["name"].texts.index(name)
    return {
        key: column.texts[place] if column.texts else float(column.numbers[place])
        for key, column in columns.items()
    }


def linear(device: str = "NVIDIA A100-SXM4-80GB") -> TraceProfile:
    """One matrix multiplication of two kernels inside of others, and an activation."""
    planted = PlantedFile()
    planted.head["deviceProperties"][0]["name"] = device
    inputs = {**MATMUL, "Input Dims": [[256, 512], [1024, 512]]}
    with (
        called(planted, "aten::linear", **inputs),
        called(planted, "aten::matmul", **MATMUL),
        called(planted, "aten::mm", **MATMUL),
    ):
        planted.launch("ampere_bf16_s16816gemm", 3)
        planted.launch("splitKreduce_kernel", 1)
    with called(planted, "aten::relu"):
        planted.launch("vectorized_elementwise_kernel", 4)
    return profile_of(planted)


def test_the_innermost_operator_with_a_formula_has_the_flop():
    table = operator_rows(linear(), query(), columns="efficiency")
    multiplied = row_of(table, "aten::mm")
    assert multiplied["flop"] == FLOP
    assert multiplied["flop_per_s"] == pytest.approx(FLOP / 4e-6)
    assert multiplied["moved_bytes"] == MOVED
    assert multiplied["moved_bytes_per_s"] == pytest.approx(MOVED / 4e-6)
    assert multiplied["peak_share"] == pytest.approx(FLOP / 4e-6 / 312e12)
    assert multiplied["bandwidth_share"] == pytest.approx(MOVED / 4e-6 / 2.039e12)
    for name in ("aten::linear", "aten::matmul", "aten::relu"):
        assert np.isnan(row_of(table, name)["flop"])


def test_kernels_of_one_call_share_its_flop_by_their_times():
    table = kernel_rows(linear(), query(), columns="efficiency")
    large = row_of(table, "ampere_bf16_s16816gemm")
    small = row_of(table, "splitKreduce_kernel")
    assert (large["flop"], small["flop"]) == (0.75 * FLOP, 0.25 * FLOP)
    assert large["flop_per_s"] == pytest.approx(small["flop_per_s"])
    assert large["category"] == small["category"] == "matmul"
    assert np.isnan(row_of(table, "vectorized_elementwise_kernel")["flop"])


def test_categories_sum_to_the_devices_time():
    profile = linear()
    table = operator_rows(profile, query(), by="category")
    assert row_of(table, "matmul")["total_ms"] == pytest.approx(4e-3)
    assert row_of(table, "matmul")["flop"] == FLOP
    assert row_of(table, "elementwise")["total_ms"] == pytest.approx(4e-3)
    total_ns = int(profile.categories.total_ns.sum())
    assert total_ns == int(profile.launching.device_self_ns.sum())


def test_a_devices_peak_is_not_known_without_its_name_or_data_type():
    for device in ("AMD Radeon Graphics", "Tesla T4"):  # The T4 knows no bfloat16
        multiplied = row_of(
            operator_rows(linear(device), query(), columns="efficiency"), "aten::mm"
        )
        assert multiplied["flop"] == FLOP
        assert np.isnan(multiplied["peak_share"])


def test_tables_of_times_and_of_efficiency_have_other_columns():
    profile = linear()
    times = {column.key for column in operator_rows(profile, query()).columns}
    work = {
        column.key
        for column in operator_rows(profile, query(), columns="efficiency").columns
    }
    assert "host_self_ms" in times - work
    assert {"category", "flop", "peak_share"} <= work - times
    assert {"name", "num_calls", "device_self_ms"} <= times & work


def test_operators_are_found_by_their_category():
    table = operator_rows(linear(), query(text="MATMUL"))
    assert set(table.columns[0].texts) == {"aten::linear", "aten::matmul", "aten::mm"}


def test_matrices_of_fp32_are_compared_with_tf32_where_tensor_cores_run():
    def share(kernel: str) -> float:
        planted = PlantedFile()
        planted.head["deviceProperties"][0]["name"] = "NVIDIA A100-SXM4-80GB"
        inputs = {**MATMUL, "Input type": ["float", "float"]}
        with called(planted, "aten::mm", **inputs):
            planted.launch(kernel, 4)
        table = operator_rows(profile_of(planted), query(), columns="efficiency")
        return float(row_of(table, "aten::mm")["peak_share"])

    assert share("ampere_sgemm_128x64_nn") == pytest.approx(FLOP / 4e-6 / 19.5e12)
    with_cores = share("ampere_s1688gemm_tf32_128x128")
    assert with_cores == pytest.approx(FLOP / 4e-6 / 156e12)


def recomputed_ns(planted: PlantedFile) -> Counter[str]:
    """By operator, what checkpointing launched again."""
    profile = profile_of(planted)
    table, names = profile.launching, profile.operator_names
    return Counter(
        {
            names[name]: int(again_ns)
            for name, again_ns in zip(
                table.name.tolist(), table.recomputed_self_ns.tolist(), strict=True
            )
            if again_ns
        }
    )


def engine(planted: PlantedFile, node: str, number: int, *, inner: Any = None) -> None:
    """A node of backward as the engine runs it; `inner` launches something in it."""
    args = {"Sequence number": number, "Fwd thread id": 1}
    with (
        called(planted, f"autograd::engine::evaluate_function: {node}", **args),
        called(planted, node, **args),
    ):
        if inner is not None:
            inner()
        with called(planted, "aten::mm"):
            planted.launch("gemm", 20)


def forward(planted: PlantedFile, first: int) -> None:
    """Two operators that record themselves for autograd, and one that does not."""
    for name, number in (("aten::addmm", first), ("aten::relu", first + 1)):
        with called(planted, name, **{"Sequence number": number, "Fwd thread id": 0}):
            planted.launch(name, 5)
        if name == "aten::addmm":
            with called(planted, "aten::arange"):
                planted.launch("arange", 1)


AGAIN = {"aten::addmm": 5_000, "aten::arange": 1_000, "aten::relu": 5_000}


def test_forward_that_runs_again_where_saved_tensors_are_unpacked():
    planted = PlantedFile()
    forward(planted, 10)
    engine(planted, "ReluBackward0", 11, inner=lambda: forward(planted, 20))
    engine(planted, "AddmmBackward0", 10)
    assert recomputed_ns(planted) == AGAIN


def test_forward_that_the_checkpoints_own_node_runs_again():
    planted = PlantedFile()

    def again() -> None:
        forward(planted, 20)
        engine(planted, "ReluBackward0", 21)
        engine(planted, "AddmmBackward0", 20)

    args = {"Sequence number": 10, "Fwd thread id": 1}
    with called(planted, "CheckpointFunctionBackward", **args):
        again()
    assert recomputed_ns(planted) == AGAIN


def test_backward_that_is_differentiated_is_no_recomputation():
    planted = PlantedFile()
    forward(planted, 10)
    engine(planted, "ReluBackward0", 11, inner=lambda: forward(planted, 20))
    engine(planted, "ReluBackward0", 21)
    engine(planted, "AddmmBackward0", 20)
    assert not recomputed_ns(planted)


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("aten::addmm", "matmul"),
        ("aten::_scaled_mm", "matmul"),
        ("vllm::rocm_unquantized_gemm", "matmul"),
        ("aten::_flash_attention_forward", "attention"),
        ("vllm::unified_attention_with_output", "attention"),
        ("aten::convolution_backward", "convolution"),
        ("aten::cudnn_convolution", "convolution"),
        ("aten::native_layer_norm_backward", "norm"),
        ("_C::fused_add_rms_norm", "norm"),
        ("aten::add_", "elementwise"),
        ("aten::threshold_backward", "elementwise"),
        ("aten::_softmax", "reduction"),
        ("aten::_log_softmax_backward_data", "reduction"),
        ("aten::norm", "reduction"),
        ("aten::embedding_dense_backward", "indexing"),
        ("aten::max_pool2d_with_indices", "pooling"),
        ("aten::_foreach_add_", "optimizer"),
        ("aten::_fused_adamw_", "optimizer"),
        ("triton_poi_fused_add_0", "fused"),
        ("triton_tem_fused_mm_3", "matmul"),
        ("aten::copy_", "copy"),
        ("aten::cat", "copy"),
        ("aten::view", "other"),
        ("vllm::moe_forward", "other"),
    ],
)
def test_categories_of_operators(name, category):
    assert CATEGORIES[operator_category(name)] == category


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("Cijk_Alik_Bljk_BBS_BH_MT256x192x64_MI16x16x1", "matmul"),
        ("nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT", "matmul"),
        ("bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2", "matmul"),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<128>>", "attention"),
        ("fmhaSm100aKernel_QkvE4m3OBfloat16", "attention"),
        ("sm90_xmma_dgrad_implicit_gemm_bf16", "convolution"),
        ("void at::native::vectorized_elementwise_kernel<4>", "elementwise"),
        ("void at::native::reduce_kernel<512, 1>", "reduction"),
        ("void at::native::multi_tensor_apply_kernel<>", "optimizer"),
        ("triton_red_fused_mean_2", "fused"),
        ("my_kernel", "other"),
    ],
)
def test_categories_of_kernels_whose_operator_tells_none(name, category):
    assert CATEGORIES[kernel_category(name)] == category


def slow(rows: int, takes_us: float, **more: Any) -> list[Any]:
    return [*slow_matmuls(multiplying(rows, takes_us, **more))]


def test_matmuls_far_below_the_peak_are_named_by_their_shape():
    # 137 GFLOP take 0.44 ms at the peak of an A100.
    (finding,) = slow(4096, 2000)
    assert "99.9 % of the device's time" in finding.sentence
    assert "22.0 % of the peak of A100 SXM 80GB" in finding.sentence
    assert "M=4096, N=4096, K=4096" in finding.sentence
    assert "max-autotune" in finding.advice[0].text
    (few,) = slow(3, 100)
    assert "3 rows" in few.advice[0].text
    # 33.6 MB take 16 us at the peak bandwidth: it is the weights that it waits for.
    (bound,) = slow(3, 20)
    assert "wait for memory" in bound.advice[0].text


def test_matmuls_near_the_peak_or_of_little_time_or_unknown_say_nothing():
    assert not slow(4096, 600)
    assert not slow(4096, 2000, others_us=20_000)
    assert not slow(4096, 2000, device="AMD Radeon Graphics")
    planted = PlantedFile()
    with called(planted, "aten::mm"):
        planted.launch("gemm", 500)
    assert not [*slow_matmuls(profile_of(planted))]
    assert not [*slow_matmuls(profile_of(PlantedFile()))]
