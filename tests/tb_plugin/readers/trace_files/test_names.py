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
    ],
)  # fmt: skip
def test_names_that_are_known(name, folders, worker, order, rank):
    assert is_trace(name)
    said = parse_names(name, folders)
    assert (said.worker, said.order, said.rank) == (worker, order, rank)
    assert not said.is_timeline


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
