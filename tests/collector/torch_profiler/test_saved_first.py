"""A trace whose file is there is recorded, mirrored and counted before anything else."""

from __future__ import annotations

import json
import threading

import pytest

import memboard as mb
from memboard.collector.torch_profiler import exporting
from tests import programs
from tests.collector.recordings import rank_files, read, wait_until
from tests.collector.torch_profiler.training import (
    CYCLES,
    artifacts,
    record,
    steps,
    traces,
)
from tests.tb_plugin.client import Page


@pytest.fixture
def reading(monkeypatch):
    """Traces are read for as long as this is not set; then as always."""
    go = threading.Event()
    digest_of = exporting.digest_of

    def slow(trace, file, settings, *, rank, pause):
        while not go.is_set():
            pause(0.01)
        return digest_of(trace, file, settings, rank=rank, pause=pause)

    monkeypatch.setattr(exporting, "digest_of", slow)
    yield go
    go.set()


def test_a_trace_is_known_and_copied_while_it_is_still_being_read(tmp_path, reading):
    store = tmp_path / "store"
    store.mkdir()
    with mb.record(
        tmp_path / "exp",
        scalars=False,
        schedule=CYCLES,
        torch_profiler={"enabled": True},
        remote={"url": f"file://{store}", "traces": "{name}"},
    ) as recorder:
        steps(recorder, 4)
        wait_until(lambda: recorder.saved_traces)
        wait_until(lambda: list(store.rglob("*.pt.trace.json")))
        ((path,),) = [saved.paths for saved in recorder.saved_traces]

        def told():
            return [
                one
                for file in rank_files(tmp_path / "exp")
                for one in read(file, last=False).captures
                if one.kind == "trace" and one.context != "ended"
            ]

        wait_until(told)
        (capture,) = told()
        assert capture.meta["path"].endswith(path.name)
        assert capture.meta["num_bytes"] == path.stat().st_size
        assert capture.meta["summary"] == ""
        reading.set()
        wait_until(lambda: len(told()) == 2)
        assert "by self CPU" in told()[1].meta["summary"]


def test_retention_counts_traces_that_are_still_being_read(tmp_path, reading):
    with record(tmp_path, num_traces_to_keep=1) as recorder:
        steps(recorder, 4)
        wait_until(lambda: recorder.saved_traces)
        steps(recorder, 4)
        wait_until(lambda: [one.step for one in recorder.saved_traces] == [7])
        assert list(artifacts(tmp_path)) == ["rank0.8.pt.trace.json"]
        reading.set()
    first, second = traces(tmp_path)
    assert (first.meta["last_step"], second.meta["last_step"]) == (3, 7)
    assert all("by self CPU" in one.meta["summary"] for one in (first, second))


def test_the_end_saves_what_waits_before_it_goes_on_reading(tmp_path, reading):
    def let_go():
        wait_until(lambda: len(recorder.saved_traces) == 2)
        reading.set()

    thread = threading.Thread(target=let_go)
    with record(tmp_path) as recorder:
        steps(recorder, 9)
        thread.start()
    thread.join()
    assert [saved.step for saved in recorder.saved_traces] == [3, 7]
    found = traces(tmp_path)
    assert [capture.meta["last_step"] for capture in found] == [3, 7]
    assert all("by self CPU" in one.meta["summary"] for one in found)


SCRIPT = """
import sys, time
from memboard.collector.torch_profiler import exporting
exporting.digest_of = lambda *_, **__: time.sleep(600)
import memboard as mb
from tests.collector.torch_profiler.training import CYCLES, Training
recorder = mb.record(
    sys.argv[1], scalars=False, schedule={**CYCLES, "repeat": 1}, merge_on_close=False,
    torch_profiler={"enabled": True},
    remote={"url": sys.argv[2], "traces": "{name}"},
)
training = Training()
while True:
    training.step()
    recorder.step()
    time.sleep(0.01)
"""


def test_what_a_killed_process_saved_is_listed_and_copied_by_the_next_start(tmp_path):
    run_dir, store = tmp_path / "logs" / "exp", tmp_path / "store"
    store.write_text("")  # nothing can be put there
    url = f"file://{store}"
    program = programs.Program(SCRIPT, run_dir, url)

    def is_noted():
        noted = [
            entry["kind"]
            for path in run_dir.rglob("*.waiting.json")
            for entry in json.loads(path.read_text())
        ]
        files = rank_files(run_dir)
        told = [c for f in files for c in read(f, last=False).captures]
        return "traces" in noted and [c for c in told if c.kind == "trace"]

    try:
        wait_until(is_noted)
    finally:
        program.kill()
        program.communicate()
    page = Page(tmp_path / "logs")
    (found,) = page.of_run("/trace_reports", "exp")["reports"]
    assert found["facts"][-1].startswith("rank0.4.pt.trace.json")
    store.unlink()
    store.mkdir()
    with mb.record(run_dir, scalars=False, remote={"url": url, "traces": "{name}"}):
        wait_until(lambda: list(store.rglob("rank0.4.pt.trace.json")))
