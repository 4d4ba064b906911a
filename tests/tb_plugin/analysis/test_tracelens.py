"""TraceLens' reports of the same files: FLOP, bytes, rates and categories.

What differs, and why, is in `tb_plugin/docs/efficiency.md`.
"""

from __future__ import annotations

import ast
import csv
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memboard.tb_plugin.analysis.efficiency.work_categories import CATEGORIES
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.formats.traces import read_trace
from memboard.tb_plugin.worker.importer import Importer

TRACES = Path(os.environ.get("MEMBOARD_REAL_DATA", "/nowhere")).parent
FOLDERS = sorted((TRACES / "traces_2026_11").glob("tracelens_*/tracelens"))
pytestmark = pytest.mark.skipif(
    not FOLDERS, reason="no TraceLens reports beside MEMBOARD_REAL_DATA"
)
MIB = 1 << 20
IN_GRAPH = "vllm"
"""A graph replays its calls: their shapes are in another file."""


@cache
def profile_of(folder: Path) -> TraceProfile:
    (path,) = folder.parent.glob("*.json.gz")
    return TraceProfile(read_trace(path, Importer())())


def report(folder: Path, name: str) -> list[dict[str, str]]:
    csv.field_size_limit(sys.maxsize)
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def reported_work(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for name in ("GEMM", "SDPA_fwd")
        for row in report(folder, name)
        if not (IN_GRAPH in str(folder) and row["name"] == "aten::addmm")
        and not row["name"].startswith("vllm::")
    ]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_flop_bytes_and_rates_are_theirs(folder):
    profile = profile_of(folder)
    calls, trace = profile.times.work, profile.trace
    rows = reported_work(folder)
    assert rows
    for row in rows:
        dims = ast.literal_eval(row["Input Dims_first"])
        gflop, moved_mib = (
            float(row[f"{name}_first"]) for name in ("GFLOPS", "Data Moved (MB)")
        )
        sizes = "B="
        if "param: K" in row:
            sizes = ", ".join(f"{size}={row[f'param: {size}']}" for size in "MNK")
        same = [
            place
            for place, work in enumerate(calls.distinct)
            if work.flop == round(gflop * 1e9)
            and work.moved_bytes / MIB == moved_mib
            and sizes in work.sizes
        ]
        chosen = np.isin(calls.work, same)
        assert chosen.any(), (row["name"], dims)
        assert np.count_nonzero(chosen) == int(row["name_count"])
        taken_us = calls.device_ns[chosen].sum() / 1e3
        assert taken_us == pytest.approx(float(row["Kernel Time (µs)_sum"]), abs=0.02)
        # Theirs is the mean of the calls' rates.
        rates = calls.flop[chosen] / calls.device_ns[chosen] / 1e3
        assert rates.mean() == pytest.approx(float(row["TFLOPS/s_mean"]), rel=1e-3)
        bandwidths = calls.moved_bytes[chosen] / calls.device_ns[chosen] / 1e3
        assert bandwidths.mean() == pytest.approx(float(row["TB/s_mean"]), rel=1e-3)
        names = {trace.strings[name] for name in trace.slices.name[calls.row[chosen]]}
        inner = {
            "aten::_scaled_dot_product_flash_attention": "_flash_attention_forward"
        }
        assert len(names) == 1
        assert names.pop() in (row["name"], f"aten::{inner.get(row['name'])}")


THEIRS = {
    "GEMM": "matmul",
    "NORM_fwd": "norm",
    "elementwise": "elementwise",
    "reduce": "reduction",
    "triton": "fused",
}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_categories_take_as_long(folder):
    if IN_GRAPH in str(folder):
        pytest.skip("its kernels are in categories by their own names")
    table = profile_of(folder).categories
    ours = {
        CATEGORIES[name]: total_ns / 1e6
        for name, total_ns in zip(
            table.name.tolist(), table.total_ns.tolist(), strict=True
        )
    }
    rows = report(folder, "ops_summary_by_category")
    theirs = {
        row["op category"]: float(row["total_direct_kernel_time_ms"]) for row in rows
    }
    for category, total_ms in theirs.items():
        if category in THEIRS:
            assert ours[THEIRS[category]] == pytest.approx(total_ms, abs=1e-5)
    assert sum(ours.values()) == pytest.approx(sum(theirs.values()), abs=1e-4)
    # Attention, indexing and copies are apart here, and one row there.
    apart = sum(ours.get(name, 0) for name in ("attention", "indexing", "copy"))
    assert apart == pytest.approx(theirs["other"], abs=1e-5)
