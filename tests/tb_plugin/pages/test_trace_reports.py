"""Reports that recordings hold of their traces: summary, operators, memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.builders import GIB, START_NS, RunBuilder
from tests.tb_plugin.client import Page, refresh
from tests.tb_plugin.pages.profiled import columns_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders import RankBuilder

TEXT = "rank 0, by self CPU\noperator  self CPU\naten::mm  9.151 ms"
MS = 1_000_000


def meta_of(**more: Any) -> dict[str, Any]:
    return {
        "path": "torch_traces/rank0.7.pt.trace.json",
        "num_bytes": 1234,
        "cycle": 1,
        "first_step": 5,
        "last_step": 6,
        "num_steps": 2,
        "start_ns": START_NS,
        "end_ns": START_NS + 4 * MS,
        "activities": ["cpu"],
        "options": {"record_shapes": True, "profile_memory": True, "with_stack": False},
        "flops": 2e9,
        "kept": True,
        "remote": None,
        "problem": "",
        "summary": TEXT,
        **more,
    }


def operators() -> dict[str, Any]:
    zeros = np.zeros(2, np.int64)
    names = (
        "cpu_memory_bytes",
        "self_cpu_memory_bytes",
        "device_memory_bytes",
        "self_device_memory_bytes",
        "flops",
    )
    return {
        "name": ("aten::add", "aten::mm<script>"),
        "calls": np.array([3, 2]),
        "cpu_ns": np.array([10, 90]),
        "self_cpu_ns": np.array([10, 80]),
        "device_ns": zeros,
        "self_device_ns": zeros,
        **dict.fromkeys(names, zeros),
    }


def memory() -> dict[str, Any]:
    """Of the processor level, of a device with a peak of 2 GiB after 1 ms."""
    return {
        "time_ns": START_NS + np.array([0, MS, 0, MS, 2 * MS]),
        "device": ("cpu", "cpu", "cuda:0", "cuda:0", "cuda:0"),
        "param_bytes": np.array([10, 10, GIB, GIB, GIB]),
        "temp_bytes": np.array([0, 1, 0, GIB, 0]),
        "grad_bytes": np.zeros(5, np.int64),
    }


def report(rank: RankBuilder, tables: dict[str, Any], **more: Any) -> None:
    rank.capture("trace", function="", iteration=1, tables=tables, meta=meta_of(**more))


@pytest.fixture
def page(tmp_path: Path) -> Page:
    run = RunBuilder(tmp_path / "exp")
    for rank in (0, 1):
        made = run.rank(rank, world_size=2)
        made.steps(range(3), allocated_peak_bytes=[GIB] * 3)
        tables = {"operators": operators()}
        if rank == 0:
            tables["memory_timeline"] = memory()
        report(made, tables, cycle=rank + 1)
        made.close()
    return Page(tmp_path)


def one_of(page: Page, **query: Any) -> dict[str, Any]:
    (listed,) = page.of_run("/trace_reports", "exp", rank=0)["reports"]
    return page.of_run("/trace_report", "exp", report=listed["id"], **query)


def test_all_are_listed_by_rank(page):
    reports = page.of_run("/trace_reports", "exp")["reports"]
    assert [(one["rank"], one["title"]) for one in reports] == [
        (0, "rank 0, cycle 1, steps 5–6"),  # noqa: RUF001
        (1, "rank 1, cycle 2, steps 5–6"),  # noqa: RUF001
    ]
    assert reports[0]["facts"] == [
        "4.00 ms",
        "recorded cpu",
        "with record_shapes, profile_memory",
        "2.00 GFLOP counted",
        "rank0.7.pt.trace.json, 1.21 KiB",
    ]
    chosen = page.of_run("/trace_reports", "exp", ranks="1")["reports"]
    assert [one["rank"] for one in chosen] == [1]


def test_one_has_its_text_and_its_operators_most_time_first(page):
    found = one_of(page)
    assert found["summary"] == TEXT
    columns = columns_of(found["operators"])
    # Columns of zeros are left out.
    assert list(columns) == ["name", "calls", "self_cpu_ms", "cpu_ms"]
    assert columns["name"] == ["aten::add", "aten::mm<script>"]
    assert columns["self_cpu_ms"].tolist() == [10e-6, 80e-6]
    assert found["missing"] == ""


def test_memory_is_of_the_accelerator_first_with_its_peak(page):
    memory = one_of(page, px=40)["memory"]
    assert (memory["device"], memory["devices"]) == ("cuda:0", ["cpu", "cuda:0"])
    assert [one["name"] for one in memory["categories"]] == ["param", "temp"]
    assert memory["total_bytes"].max() == 2 * GIB
    column = int(np.argmax(memory["total_bytes"]))
    assert memory["peak_x"][column] == 1000
    assert (memory["x_low"], memory["x_high"]) == (0, 4000)
    part = one_of(page, px=10, x0=2000, x1=3000, device="cpu")["memory"]
    assert part["device"] == "cpu"
    assert part["total_bytes"].tolist() == [11] * 10


def test_what_is_missing_is_named_by_its_option(page):
    (listed,) = page.of_run("/trace_reports", "exp", rank=1)["reports"]
    found = page.of_run("/trace_report", "exp", report=listed["id"])
    assert found["memory"] is None
    assert "without torch_profiler.with_stack. Set it to true" in found["missing"]


@pytest.mark.parametrize(
    ("report", "status"),
    [("0-x-99", 404), ("../../etc", 400), ("", 400), ("0-x", 400)],
)
def test_what_is_not_there_is_refused(page, report, status):
    answer = page.raw("/trace_report", run=page.run_id("exp"), report=report)
    assert answer.status_code == status
    assert json.loads(answer.data)["remedy"]


HOSTILE = {
    "path": ["a"],
    "num_bytes": -5,
    "cycle": "two",
    "first_step": 2**80,
    "start_ns": True,
    "end_ns": 1e300,
    "activities": "cpu",
    "options": [1],
    "flops": float("1e300"),
    "summary": {"a": 1},
    "problem": 7,
    "remote": 3,
}


def test_a_hostile_report_loses_what_is_wrong_and_nothing_else(tmp_path):
    made = RunBuilder(tmp_path / "exp").rank(0)
    made.steps(range(3), allocated_peak_bytes=[GIB] * 3)
    texts = {**operators(), "calls": ("many", "few")}
    timeless = memory()
    del timeless["time_ns"]
    report(made, {"operators": texts, "memory_timeline": timeless}, **HOSTILE)
    report(made, {"operators": operators()})
    made.close()
    page = Page(tmp_path)
    bad, good = page.of_run("/trace_reports", "exp")["reports"]
    assert bad["title"] == "rank 0"
    assert "its trace was not saved" in bad["facts"]
    assert not any("FLOP" in one for one in bad["facts"])
    found = page.of_run("/trace_report", "exp", report=bad["id"])
    assert (found["summary"], found["operators"]["num_rows"], found["memory"]) == (
        "",
        0,
        None,
    )
    assert page.of_run("/trace_report", "exp", report=good["id"])["summary"] == TEXT


def test_what_was_read_out_of_a_trace_takes_the_place_of_its_first_record(tmp_path):
    made = RunBuilder(tmp_path / "exp").rank(0)
    made.steps(range(3), allocated_peak_bytes=[GIB] * 3)
    report(made, {}, summary="")
    page = Page(tmp_path)
    (first,) = page.of_run("/trace_reports", "exp")["reports"]
    assert page.of_run("/trace_report", "exp", report=first["id"])["summary"] == ""
    made.capture(
        "trace",
        function="",
        context="digest",
        tables={"operators": operators()},
        meta=meta_of(),
    )
    made.close()
    refresh(page)
    (then,) = page.of_run("/trace_reports", "exp")["reports"]
    assert then["id"] == first["id"]
    assert page.of_run("/trace_report", "exp", report=first["id"])["summary"] == TEXT
