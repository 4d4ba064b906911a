"""What a recording says of its trace is what the page says of the file, to the digit."""

from __future__ import annotations

import pytest

from memboard.collector.torch_profiler.digest.reading import TraceTask
from memboard.tb_plugin.analysis.operators.operator_sums import OUTSIDE
from memboard.tb_plugin.cli.afterwards import digest as digest_module
from memboard.tb_plugin.cli.afterwards.digest import digest
from tests.collector.torch_profiler.training import train
from tests.kineto_files import trained
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask, columns_of

TIMES = {
    "num_calls": "calls",
    "host_self_ms": "self_cpu_ms",
    "host_total_ms": "cpu_ms",
    "device_self_ms": "self_device_ms",
    "device_total_ms": "device_ms",
}
MEMORY = {
    "self_increase_bytes": "self_cpu_memory_bytes",
    "increase_bytes": "cpu_memory_bytes",
}


def by_name(columns, wanted):
    """Of each operator, the wanted columns; zero where the table has none."""
    names = columns["name"]
    none = [0.0] * len(names)
    values = [list(columns.get(one, none)) for one in wanted]
    return dict(zip(names, zip(*values, strict=True), strict=True))


def test_operators_are_those_of_the_page(tmp_path):
    train(tmp_path / "exp", 4, profile_memory=True)
    page = Page(tmp_path)
    (listed,) = page.of_run("/trace_reports", "exp")["reports"]
    report = page.of_run("/trace_report", "exp", report=listed["id"])
    ours = columns_of(report["operators"])
    times = by_name(ask(page, "operators"), TIMES)
    assert len(times) > 20
    found = by_name(ours, TIMES.values())
    assert {name: found[name] for name in times} == times
    memory = columns_of(ask(page, "operator_memory", charge="freeing")["operators"])
    expected = by_name(memory, MEMORY)
    assert len(expected) > 5
    found = by_name(ours, MEMORY.values())
    assert {name: found[name] for name in expected} == expected
    without = {name for name, values in found.items() if any(values)} - set(expected)
    assert without <= {OUTSIDE}


def test_time_on_devices_is_that_of_the_page(tmp_path):
    path = trained().write(tmp_path / "exp" / "rank0.pt.trace.json")
    with path.open("rb") as file:
        answer, tables = digest(file, TraceTask(flops={}))
    assert answer.problems == []
    page = ask(Page(tmp_path), "operators")
    columns = ("host_self_ms", "host_total_ms", "device_self_ms", "device_total_ms")
    times = by_name(page, columns)
    assert any(device_ms for *_, device_ms in times.values())
    names = ("self_cpu_ns", "cpu_ns", "self_device_ns", "device_ns")
    found = by_name(tables["operators"], names)
    assert {
        name: tuple(float(value) / 1e6 for value in found[name]) for name in times
    } == times


def test_a_part_that_fails_leaves_the_others(tmp_path, monkeypatch):
    def failing(*_args, **_kwargs):
        raise ValueError("planted")

    path = trained().write(tmp_path / "rank0.pt.trace.json")
    monkeypatch.setattr(digest_module, "operator_sums", failing)
    with path.open("rb") as file:
        answer, tables = digest(file, TraceTask(flops={}, stacks="self_cpu"))
    assert answer.problems == [
        "no operators: ValueError: planted",
        "no stacks: this torch has no Python calls as events",
    ]
    assert answer.num_events
    assert tables == {}


@pytest.mark.parametrize("content", [b"", b"no trace"])
def test_what_is_no_trace_is_said(tmp_path, content):
    path = tmp_path / "rank0.pt.trace.json"
    path.write_bytes(content)
    with path.open("rb") as file:
        answer, tables = digest(file, TraceTask(flops={}))
    assert tables == {}
    assert answer.problems[0].startswith("no events: RefusedError: ")
