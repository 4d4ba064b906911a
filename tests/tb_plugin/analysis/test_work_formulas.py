"""FLOP and bytes by shapes: cases counted by hand, and torch's own counter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.efficiency.arguments import (
    OperatorWork,
    read_arguments,
)
from memboard.tb_plugin.analysis.efficiency.device_peaks import (
    PEAKS,
    peaks_of,
    peaks_of_name,
)
from memboard.tb_plugin.analysis.efficiency.formulas import operator_work
from tests.test_docs import rows_of

BF16, FP32, FP8 = "c10::BFloat16", "float", "c10::Float8_e4m3fn"


def work(
    name: str, shapes: list[Any], dtype: str = BF16, **values: Any
) -> OperatorWork | None:
    """`values`: of arguments, as `at7="True"`."""
    num = max([len(shapes), *(int(place[2:]) + 1 for place in values)])
    shapes = shapes + [[]] * (num - len(shapes))
    types = [dtype if shape else "Scalar" for shape in shapes]
    texts = [values.get(f"at{place}", "") for place in range(num)]
    arguments = read_arguments(*map(json.dumps, (shapes, types, texts)))
    return None if arguments is None else operator_work(name, arguments)


@pytest.mark.parametrize(
    ("name", "shapes", "flop", "elements"),
    [
        ("aten::mm", [[3, 5], [5, 7]], 2 * 105, 15 + 35 + 21),
        ("aten::addmm", [[7], [3, 5], [5, 7]], 2 * 105 + 21, 7 + 15 + 35 + 21),
        ("aten::bmm", [[4, 3, 5], [4, 5, 7]], 8 * 105, 4 * (15 + 35 + 21)),
        (
            "aten::baddbmm",
            [[4, 3, 7], [4, 3, 5], [4, 5, 7]],
            8 * 105 + 84,
            4 * (21 + 15 + 35 + 21),
        ),
        ("aten::linear", [[2, 3, 5], [7, 5], [7]], 4 * 105 + 42, 30 + 35 + 42 + 7),
        ("aten::linear", [[2, 3, 5], [7, 5], []], 4 * 105, 30 + 35 + 42),
        ("aten::matmul", [[2, 3, 5], [5, 7]], 4 * 105, 30 + 35 + 42),
        ("aten::mv", [[3, 5], [5]], 30, 15 + 5 + 3),
        # Groups of rows, each with a matrix of its own; and groups of the inner size.
        ("aten::_grouped_mm", [[12, 5], [4, 5, 7], [4]], 2 * 420, 60 + 140 + 84),
        ("aten::_grouped_mm", [[3, 12], [12, 7], [4]], 2 * 252, 36 + 84 + 4 * 21),
        # vLLM and others: weights either way round, an output before them.
        ("vllm::rocm_unquantized_gemm", [[3, 5], [7, 5], [7]], 231, 15 + 35 + 28),
        ("sgl_kernel::gemm", [[3, 5], [5, 7]], 210, 15 + 35 + 21),
        ("_C::scaled_gemm", [[3, 7], [3, 5], [7, 5]], 210, 15 + 35 + 21),
        ("_rocm_C::wvSplitK", [[7, 5], [3, 5]], 210, 15 + 35 + 21),
    ],
)
def test_multiplications(name, shapes, flop, elements):
    counted = work(name, shapes)
    assert counted is not None
    assert (counted.flop, counted.moved_bytes) == (flop, 2 * elements)
    assert (counted.kind, counted.element) == ("matmul", "bf16")


def test_numbers_of_eight_bits_become_sixteen_and_two_of_four_share_a_byte():
    counted = work("aten::_scaled_mm", [[32, 64], [64, 16]], FP8)
    assert counted is not None
    assert counted.moved_bytes == 32 * 64 + 64 * 16 + 2 * 32 * 16
    packed = work("aten::_scaled_mm", [[32, 32], [32, 16]], "c10::Float4_e2m1fn_x2")
    assert packed is not None
    assert packed.flop == counted.flop


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("aten::mm", [[3, 5], [6, 7]]),  # Sizes do not fit
        ("aten::mm", [[3, 5]]),
        ("aten::mm", [[0, 5], [5, 7]]),  # Nothing to do
        ("aten::mm", [[3, -5], [-5, 7]]),
        ("aten::mm", [[1 << 40, 1 << 40], [1 << 40, 1 << 40]]),
        ("aten::add", [[3, 5], [3, 5]]),
        ("vllm::packed_gemm", [[3, 5], [7, 9]]),
        ("aten::_flash_attention_forward", [[1, 8, 4, 16]] * 3),  # Causal or not?
        ("aten::convolution", [[1, 3, 8, 8], [4, 3, 3, 3]]),  # Of which stride?
    ],
)
def test_without_enough_in_its_arguments_nothing_is_known(name, shapes):
    assert work(name, shapes) is None


def test_other_data_types_are_not_known():
    for dtype in ("c10::complex<float>", "long int", ""):
        assert work("aten::mm", [[3, 5], [5, 7]], dtype) is None


def test_attention_masked_by_position_is_half_and_key_heads_are_shared():
    shapes = [[2, 8, 64, 16], [2, 2, 64, 16], [2, 2, 64, 16]]
    name = "aten::_scaled_dot_product_flash_attention"
    whole, half = work(name, shapes, at4="False"), work(name, shapes, at4="True")
    assert whole is not None
    assert half is not None
    assert whole.flop == 4 * 2 * 8 * 64 * 64 * 16 == 2 * half.flop
    assert whole.moved_bytes == half.moved_bytes == 2 * 2 * 64 * 16 * (8 + 2 + 2 + 8)
    assert half.sizes.endswith("causal")
    # Other layouts and places of the same.
    transposed = [[2, 64, 8, 16], [2, 64, 2, 16], [2, 64, 2, 16]]
    for name, place in (
        ("aten::_flash_attention_forward", "at8"),
        ("aten::_efficient_attention_forward", "at9"),
        ("FlashAttnFunc", "at5"),
    ):
        text = "1" if "efficient" in name else "True"
        assert work(name, transposed, **{place: text}) == half


def test_attention_over_packed_sequences_or_a_window_is_not_known():
    shapes: list[Any] = [[1, 64, 8, 16]] * 3
    name = "aten::_flash_attention_forward"
    assert work(name, [*shapes, [5], [5]], at8="False") is None
    name = "flash_attn::_flash_attn_forward"
    assert work(name, shapes, at5="True", at6="128", at7="0") is None
    assert work(name, shapes, at5="True", at6="-1", at7="-1") is not None
    # Which half is masked, of a square that is none?
    decode = [[1, 8, 1, 16], [1, 8, 64, 16], [1, 8, 64, 16]]
    name = "aten::_scaled_dot_product_flash_attention"
    assert work(name, decode, at4="True") is None
    assert work(name, decode, at4="False") is not None


@pytest.mark.parametrize("causal", ["True", "False"])
def test_backward_of_attention_is_two_and_a_half_times_forward(causal):
    shape = [2, 8, 64, 16]
    forward = work("aten::_scaled_dot_product_flash_attention", [shape] * 3, at4=causal)
    assert forward is not None
    for name, place in (
        ("aten::_scaled_dot_product_flash_attention_backward", "at11"),
        ("aten::_scaled_dot_product_efficient_attention_backward", "at11"),
        ("aten::_scaled_dot_product_cudnn_attention_backward", "at14"),
    ):
        backward = work(name, [shape] * 5, **{place: causal})
        assert backward is not None
        assert 2 * backward.flop == 5 * forward.flop
        assert backward.moved_bytes == 2 * forward.moved_bytes


def _convolution(
    source: list[int], weight: list[int], *, transposed: bool = False, **more: Any
) -> OperatorWork | None:
    axes = len(weight) - 2
    numbers = {"stride": 1, "padding": 0, "dilation": 1, "added": 0, **more}
    lists = {name: str([numbers[name]] * axes) for name in numbers if name != "groups"}
    return work(
        "aten::convolution",
        [source, weight],
        at3=lists["stride"],
        at4=lists["padding"],
        at5=lists["dilation"],
        at6=str(transposed),
        at7=lists["added"],
        at8=str(numbers.get("groups", 1)),
    )


def test_libraries_convolutions_are_the_same_as_torchs():
    source, weight = [2, 3, 32, 32], [8, 3, 3, 3]
    plain = _convolution(source, weight, stride=2, padding=1)
    assert plain is not None
    assert plain.flop == 2 * 2 * 16 * 16 * 8 * 3 * 9
    assert plain.moved_bytes == 2 * (2 * 3 * 32 * 32 + 8 * 27 + 2 * 8 * 16 * 16)
    places = {"at2": "[1, 1]", "at3": "[2, 2]", "at4": "[1, 1]", "at5": "1"}
    assert work("aten::cudnn_convolution", [source, weight], **places) == plain
    backward = work(
        "aten::convolution_backward",
        [[2, 8, 16, 16], source, weight],
        at7="False",
        at10="[True, True, False]",
    )
    assert backward is not None
    assert backward.flop == 2 * plain.flop
    only_weight = work(
        "aten::convolution_backward",
        [[2, 8, 16, 16], source, weight],
        at7="False",
        at10="[False, True, False]",
    )
    assert only_weight is not None
    assert only_weight.flop == plain.flop


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_convolutions_are_what_torch_makes_and_counts(data):
    torch = pytest.importorskip("torch")
    counter = pytest.importorskip("torch.utils.flop_counter")
    small = st.integers(1, 3)
    groups, transposed = data.draw(small), data.draw(st.booleans())
    inputs, outputs = groups * data.draw(small), groups * data.draw(small)
    kernel = [data.draw(small), data.draw(small)]
    numbers = {"stride": data.draw(small), "padding": data.draw(st.integers(0, 2))}
    numbers["dilation"] = data.draw(st.integers(1, 2))
    source = [data.draw(small), inputs, *(data.draw(st.integers(6, 9)) for _ in "hw")]
    first, second = (inputs, outputs) if transposed else (outputs, inputs)
    weight = [first, second // groups, *kernel]
    call = torch.nn.functional.conv_transpose2d if transposed else None
    call = call or torch.nn.functional.conv2d
    with torch.device("meta"):
        try:
            out = call(
                torch.empty(source), torch.empty(weight), groups=groups, **numbers
            )
        except RuntimeError:
            return  # No output is left
    counted = _convolution(
        source, weight, transposed=transposed, groups=groups, **numbers
    )
    assert counted is not None
    expected = counter.conv_flop_count(source, weight, list(out.shape), transposed)
    assert counted.flop == expected
    weights = weight[0] * weight[1] * weight[2] * weight[3]
    sizes = source[0] * source[1] * source[2] * source[3]
    assert counted.moved_bytes == 2 * (sizes + weights + out.numel())


shapes = st.lists(
    st.one_of(st.lists(st.integers(-2, 1 << 50), max_size=9), st.none(), st.text()),
    max_size=5,
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(
        [
            "aten::mm",
            "aten::linear",
            "aten::_grouped_mm",
            "aten::convolution",
            "aten::convolution_backward",
            "aten::_flash_attention_forward",
            "vllm::gemm",
        ]
    ),
    shapes,
    st.lists(st.one_of(st.sampled_from([BF16, FP32]), st.integers()), max_size=5),
    st.lists(st.text("[]0, -1TrueFals", max_size=9), max_size=12),
)
def test_no_arguments_make_it_fail(name, dims, types, values):
    arguments = read_arguments(json.dumps(dims), json.dumps(types), json.dumps(values))
    if arguments is not None:
        counted = operator_work(name, arguments)
        assert counted is None or 0 < counted.flop <= 1 << 60


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA GH200 480GB", "GH200 96GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("Tesla T4", "T4"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("AMD Instinct MI300X VF", "MI300X"),
        ("AMD Instinct MI250X / MI250", "MI250X, one die"),
        ("NVIDIA A10G", "A10G"),
    ],
)
def test_devices_have_the_peaks_of_their_names(name, title):
    peaks = peaks_of_name(name)
    assert peaks is not None
    assert peaks.title == title


def test_devices_that_are_not_listed_or_not_whole_have_none():
    for name in (
        "",
        "AMD Radeon Graphics",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "GRID T4-8Q",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA A100-PG509-200",
    ):
        assert peaks_of_name(name) is None
    one = {"name": "Tesla T4"}
    assert peaks_of([one, one]) == peaks_of_name("Tesla T4")
    assert peaks_of([one, {"name": "NVIDIA L4"}]) is None
    assert peaks_of([]) is None
    assert peaks_of([{"name": 4}]) is None


def test_the_documentation_lists_all_peaks():
    elements = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
    assert rows_of("efficiency", "peaks") == [
        [
            peaks.title,
            f"{peaks.terabytes_per_s:g}",
            *(
                f"{peaks.teraflops[element]:g}"
                if element in peaks.teraflops
                else "\u2013"
                for element in elements
            ),
            peaks.source,
        ]
        for _, peaks in PEAKS
    ]


def test_smaller_numbers_are_never_slower():
    """In the makers' tables: half the bits, at least as many operations."""
    for _, peaks in PEAKS:
        rates = [
            peaks.teraflops[element]
            for element in ("fp32", "tf32", "bf16", "fp8", "fp4")
            if element in peaks.teraflops
        ]
        assert rates == sorted(rates), peaks.title
        assert peaks.source
