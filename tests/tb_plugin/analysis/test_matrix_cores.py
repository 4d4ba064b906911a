"""Matrix cores of a trace: used, not used or not known, by name, data types and device."""

from __future__ import annotations

import json

import numpy as np
import pytest

from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.facts.traces.core_columns import kernels_on_cores
from memboard.tb_plugin.facts.traces.time_tables import operator_rows
from memboard.tb_plugin.pages.operators.operators import OperatorsQuery
from tests.tb_plugin.analysis.test_profile_conformance import importer, read_trace

H100 = {"id": 0, "name": "NVIDIA H100", "computeMajor": 9, "computeMinor": 0}
MI300X = {"id": 0, "name": "AMD Instinct MI300X", "computeMajor": 9, "warpSize": 64}


def profile_of(path, kernels, device=H100):
    """Of operators `(name, input types, kernel, us)`, each with one kernel."""
    events = []
    for number, (operator, types, kernel, us) in enumerate(kernels):
        start = 1000 * number
        base = {"ph": "X", "pid": 1, "tid": 1, "ts": start}
        inputs = {"External id": number + 1, "Input type": types}
        launch = {"correlation": number + 1, "External id": number + 1}
        work = {**launch, "device": 0, "stream": 7}
        events += [
            {**base, "cat": "cpu_op", "name": operator, "dur": 900, "args": inputs},
            {
                **base,
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "ts": start + 10,
                "dur": 5,
                "args": launch,
            },
            {
                **base,
                "cat": "kernel",
                "name": kernel,
                "pid": 0,
                "tid": 7,
                "ts": start + 20,
                "dur": us,
                "args": work,
            },
        ]
    path.write_text(json.dumps({"deviceProperties": [device], "traceEvents": events}))
    return TraceProfile(read_trace(path, importer())())


@pytest.mark.parametrize(
    ("types", "device", "verdict"),
    [
        (["c10::BFloat16", "c10::BFloat16", ""], H100, 1),
        (["c10::Half", "c10::Float8_e4m3fn"], H100, 1),
        (["float", "float"], H100, -1),
        (["c10::BFloat16", "float"], H100, -1),
        (["long int", "Scalar"], H100, -1),
        ([], H100, -1),
        (["float", "float"], MI300X, 1),
    ],
)
def test_products_of_triton_use_the_cores_where_types_or_device_say_so(
    tmp_path, types, device, verdict
):
    kernel = "triton_tem_fused_mm_0"
    profile = profile_of(
        tmp_path / "t.pt.trace.json", [(kernel, types, kernel, 100)], device
    )
    assert profile.kernels.uses_tensor_cores.tolist() == [verdict]


MIXED = (
    ("aten::mm", [], "ampere_s16816gemm_fp16_128x64_ldg8_stages_64x4_tn", 400),
    ("aten::add", [], "elementwise_kernel", 500),
    ("mine::fused", [], "fused_thing", 100),
)


@pytest.mark.parametrize(
    ("unknown_us", "share", "known"), [(100, 400 / 900, 0.9), (300, None, 0.75)]
)
def test_what_is_not_known_is_a_dash_with_what_is_known(
    tmp_path, unknown_us, share, known
):
    *named, unknown = MIXED
    kernels = [*named, (*unknown[:3], unknown_us)]
    profile = profile_of(tmp_path / "t.pt.trace.json", kernels)
    (use,) = profile.devices
    assert use.tensor_core_share == (None if share is None else pytest.approx(share))
    assert use.tensor_core_known_share == pytest.approx(known)

    rows = operator_rows(profile, OperatorsQuery(run=""))
    columns = {column.key: column for column in rows.columns}
    cells = dict(
        zip(
            columns["name"].texts,
            zip(
                columns["tensor_core_self_share"].numbers.tolist(),
                columns["tensor_core_self_share"].notes,
                strict=True,
            ),
            strict=True,
        )
    )
    assert cells["aten::mm"] == (1, "")
    assert cells["aten::add"] == (0, "")
    assert str(cells["mine::fused"]) == "(nan, 'not known')"


def test_what_uses_the_cores_could(tmp_path):
    kernel = MIXED[0][2]
    kernels = [
        ("aten::mm", [], kernel, 100),
        ("aten::add", [], "elementwise_kernel", 100),
        ("vllm::rocm_unquantized_gemm", [], kernel, 100),
        ("vllm::rotary_embedding", [], "vllm::rotary_embedding_kernel", 100),
    ]
    profile = profile_of(tmp_path / "t.pt.trace.json", kernels)
    rows = operator_rows(profile, OperatorsQuery(run=""))
    columns = {column.key: column for column in rows.columns}
    eligible = dict(
        zip(
            columns["name"].texts,
            columns["is_tensor_core_eligible"].numbers.tolist(),
            strict=True,
        )
    )
    assert eligible["aten::mm"] == eligible["vllm::rocm_unquantized_gemm"] == 1
    assert eligible["aten::add"] == 0
    assert np.isnan(eligible["vllm::rotary_embedding"])


def test_the_kernels_summary_never_calls_unknown_unused(tmp_path):
    path = tmp_path / "t.pt.trace.json"
    assert kernels_on_cores(profile_of(path, MIXED).kernels) == (
        "44.4 % of the time with tensor cores (90 % known)"
    )
    assert kernels_on_cores(profile_of(path, MIXED[2:]).kernels) == (
        "of 100 % of the time it is not known whether tensor cores are used"
    )


def test_amd_has_matrix_cores(tmp_path):
    path = tmp_path / "t.pt.trace.json"
    for device, title in ((H100, "TC self"), (MI300X, "MC self")):
        rows = operator_rows(profile_of(path, MIXED, device), OperatorsQuery(run=""))
        (column,) = (c for c in rows.columns if c.key == "tensor_core_self_share")
        assert column.title == title
        words = f"{column.help} {column.absent}"
        assert ("tensor" in words, "matrix" in words) == (
            device is H100,
            device is MI300X,
        )
