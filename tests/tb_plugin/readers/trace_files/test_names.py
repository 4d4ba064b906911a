"""Worker, rank and cycle out of the names that profilers give to their files."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.formats.traces.files.names import is_trace, parse_names

PEER = re.compile(r"^(.*?)(\.\d+)?\.pt\.trace\.json(?:\.gz)?$", re.DOTALL)


@pytest.mark.parametrize(
    ("name", "folders", "worker", "order", "rank"),
    [
        ("host_1.1700000000000.pt.trace.json", (), "host_1", (1, 17 * 10**17), 1),
        ("vm_7.1700000000000000001.pt.trace.json.gz", (), "vm_7", (1, 1700000000000000001), None),
        ("a.pt.trace.json", (), "a", None, None),
        ("rank3.12.pt.trace.json", (), "rank3", (0, 12), 3),
        ("rank3.ba12.pt.trace.json", (), "rank3", (0, 12), 3),
        ("host.domain.com_123.9.pt.trace.json", (), "host.domain.com_123", (0, 9), None),
        ("ep2-ba5-rank3.json", (), "rank3", (2, 5), 3),
        ("ep0-ba1-rank11.json.gz", ("rank_11",), "rank11", (0, 1), 11),
        ("merged_trace.json", ("rank_4",), "merged_trace", None, 4),
        ("rank3_trace.json.gz", ("iteration_40",), "rank3_trace", (0, 40), 3),
        ("rank-0.json.gz", (), "rank-0", None, 0),
        ("trace_local_rank_1.json", (), "trace_local_rank_1", None, None),
        ("1757000000.5-TP-3.trace.json.gz", (), "rank3", (1, 1757 * 10**15), 3),
        ("1757000000.5-TP-1-DP-0-EP-1.trace.json.gz", (), "rank1", (1, 1757 * 10**15), 1),
        ("bench-1757000000-TP-0-DP-0-PP-2.trace.json", (), "TP-0-DP-0-PP-2", (1, 1757 * 10**15), None),
        ("7-TP-1-DP-3.trace.json.gz", (), "TP-1-DP-3", (0, 7), None),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.17.pt.trace.json.gz", (), "dp0_pp0_tp1_dcp0_ep1_rank1", (0, 17), 1),
        ("llm-1f2e-rank-2.17.pt.trace.json.gz", (), "llm-1f2e-rank-2", (0, 17), 2),
        ("llm-1f2e.async_llm.17.pt.trace.json.gz", (), "llm-1f2e.async_llm", (0, 17), None),
        ("rank-3.json.gz", ("torch_profile",), "rank-3", None, 3),
        ("x_graph_capture_rank_0.177.pt.trace.json.gz", (), "x_graph_capture_rank_0", (0, 177), 0),
        ("fit-0-[Strategy]DDPStrategy.training_step.17.pt.trace.json", (), "0", (0, 17), None),
        ("fit-run-0.17.pt.trace.json", (), "run-0", (0, 17), None),
        ("testbed_7.17.pt.trace.json", (), "testbed_7", (0, 17), None),
    ],
)  # fmt: skip
def test_names_that_are_known(name, folders, worker, order, rank):
    assert is_trace(name)
    said = parse_names(name, folders)
    assert (said.worker, said.order, said.rank) == (worker, order, rank)
    assert not said.is_timeline


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("fit-0-[Strategy]X.training_step.5.pt.trace.json",
         "validation-0-[Strategy]X.validation_step.9.pt.trace.json"),
        ("fit-profile.pt.trace.json", "test-profile.pt.trace.json"),
        ("17-TP-1-EXTEND.trace.json.gz", "17-TP-1-DECODE.trace.json.gz"),
    ],
)  # fmt: skip
def test_stages_of_one_process_are_its_cycles(first, second):
    earlier, later = parse_names(first), parse_names(second)
    assert (earlier.worker, earlier.rank) == (later.worker, later.rank)
    assert earlier.order < later.order


@pytest.mark.parametrize(
    "name",
    ["memory_timeline.raw.json.gz", "memory-timeline.html", "mem_timeline.json", "x.raw.json.gz"],
)  # fmt: skip
def test_memory_timelines_are_told_apart(name):
    assert is_trace(name)
    assert parse_names(name).is_timeline


@pytest.mark.parametrize(
    "name",
    ["x.pt.trace.json.gz.tmp", "config.json", "traceback.json", "rank0.events",
     "snapshot_rank0.json", "retraced.json", "trace.txt", "trace", ".json", "a" * 300 + ".trace.json"],
)  # fmt: skip
def test_other_names_are_nobodys(name):
    assert not is_trace(name)


@given(st.text(max_size=40), st.integers(0, 10**20), st.booleans())
def test_every_name_of_torchs_rule_is_known_and_its_worker_the_same(
    worker, time, timed
):
    name = worker + (f".{time}" if timed else "") + ".pt.trace.json"
    assert is_trace(name)
    said = parse_names(name)
    found = PEER.fullmatch(name)
    assert found is not None
    if found[2] is not None and worker and worker.isprintable():
        assert said.worker == found[1][:120]
        assert said.order is not None


@given(st.text(max_size=300), st.lists(st.text(max_size=20), max_size=3))
def test_any_name_says_something_or_nothing(name, folders):
    said = parse_names(name, folders)
    assert said.worker
    assert said.worker.isprintable()
    is_trace(name)
