"""`merge_on_close`: a process of its own merges what the ranks left."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import memboard as mb
from memboard.collector.afterwards import detached
from tests.collector.recordings import wait_until
from tests.programs import Program

ROOT = Path(__file__).parents[2]

RANK = """
import sys
import memboard as mb
rec = mb.record(sys.argv[1], merge_on_close=True, scalars=False)
for step in range(3):
    with rec.span("work"):
        pass
    rec.step()
rec.close()
"""


def ended(path):
    wait_until(path.exists)
    return json.loads(gzip.decompress(path.read_bytes()))


def test_rank_0_has_all_ranks_merged_and_waits_for_nobody(tmp_path):
    run = tmp_path / "run"
    environ = {"PATH": "", "WORLD_SIZE": "2", "PYTHONPATH": str(ROOT)}
    ranks = [
        Program(RANK, run, env={**environ, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(2)
    ]
    assert [rank.communicate()[0] for rank in ranks] == ["", ""]
    assert [rank.returncode for rank in ranks] == [0, 0]
    trace = ended(run / "merged_trace.json.gz")
    assert [one["rank"] for one in trace["metadata"]["ranks"]] == [0, 1]
    assert trace["metadata"]["problems"] == []
    steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == "step"]
    assert steps


def test_unasked_nothing_is_started(tmp_path, monkeypatch):
    started: list[object] = []
    monkeypatch.setattr(detached, "start", lambda *given: started.append(given))
    with mb.record(tmp_path / "run") as recorder:
        recorder.step()
    assert started == []


def test_without_an_interpreter_that_is_told(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    with mb.record(tmp_path / "run", merge_on_close=True) as recorder:
        recorder.step()
    assert "memboard merge" in caplog.text
