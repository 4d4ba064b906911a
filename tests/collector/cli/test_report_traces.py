"""Traces of torch's profiler in a report: those of a real recording, and hostile ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tb_plugin.cli import main
from tb_plugin.cli.report.traces import traces_text
from tests.builders import RunBuilder
from tests.collector.torch_profiler.training import train


def said(capsys, *arguments: object) -> str:
    assert main(["report", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_recordings_traces_are_listed(tmp_path, capsys):
    recorder = train(tmp_path / "exp", 9, num_traces_to_keep=1)
    (run,) = json.loads(said(capsys, "--json", tmp_path))["runs"]
    first, second = run["traces"]
    assert (first["first_step"], first["last_step"]) == (2, 3)
    assert (first["exists"], second["exists"]) == (False, True)
    assert [Path(second["path"])] == list(recorder.saved_traces[0].paths)
    assert second["num_bytes"] == Path(second["path"]).stat().st_size
    assert second["num_steps"] == 2
    assert second["flops"] > 0
    assert "by self CPU" in second["summary"]
    assert second["complete"]
    text = said(capsys, tmp_path)
    assert "torch profiler: 2 traces, 1 of them here" in text
    assert "rank 0, steps 2 to 3: not here" in text


@pytest.mark.parametrize("path", ["../../x", "/etc/passwd", "a\0b", 7, None, ""])
def test_a_capture_may_say_anything(tmp_path, capsys, path):
    meta = {"path": path, "first_step": "x", "flops": True, "summary": 3, "problem": []}
    (rank,) = RunBuilder(tmp_path / "exp").simple(1, 5, close=False)
    rank.capture(kind="trace", function="step", step=3, meta=meta)
    rank.close()
    (run,) = json.loads(said(capsys, "--json", tmp_path))["runs"]
    (trace,) = run["traces"]
    assert trace["path"] is None
    assert trace["exists"] is False
    assert trace["first_step"] is trace["flops"] is trace["summary"] is None
    assert "not here" in said(capsys, tmp_path)


def test_a_run_without_traces_says_nothing_of_them():
    assert list(traces_text([])) == []
