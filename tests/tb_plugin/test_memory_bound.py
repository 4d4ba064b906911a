"""Many large files opened in turn: memory stays below the bound, what is shown stays."""

from __future__ import annotations

import gc
import json
import pickle
from pathlib import Path

import pytest

from memboard.tb_plugin import cache
from memboard.tb_plugin.cache import CacheMemory
from memboard.tb_plugin.jobs.histories import Histories
from memboard.tb_plugin.jobs.trace_sources import TraceSources
from tests.kineto_files import trained
from tests.made_snapshots import long_history
from tests.tb_plugin.analysis.slow_blocks import SlowBlocks
from tests.tb_plugin.client import Page, answered
from tests.tb_plugin.pages.history_runs import Asked

NUM_FILES = 20
BOUND = 24 << 20
"""Less than the snapshots take, and less than the traces take with what is made of them."""
RESIDENT_BYTES = 64 << 20
"""What the process may grow beside the bound: requests, and what the allocator retains."""
STATUS = Path("/proc/self/status")


def resident() -> int:
    """Bytes of the process that no file has."""
    gc.collect()
    (line,) = [one for one in STATUS.read_text().splitlines() if "RssAnon" in one]
    return int(line.split()[1]) * 1024


@pytest.fixture
def opened(monkeypatch):
    """Files by name, as often as each was opened; the bound is small meanwhile."""
    names: list[str] = []
    for jobs in (Histories, TraceSources):
        open_it = jobs._opened

        def noted(self, *args, open_it=open_it):
            names.append(args[-1].found.path_text)
            return open_it(self, *args)

        monkeypatch.setattr(jobs, "_opened", noted)
    monkeypatch.setattr(cache, "PROCESS", CacheMemory(BOUND))
    return names


@pytest.mark.skipif(not STATUS.exists(), reason="resident memory is read from /proc")
def test_twenty_large_snapshots_opened_in_turn_stay_below_the_bound(tmp_path, opened):
    dump = long_history(60_000)
    (trace,), (segment,) = dump["device_traces"], dump["segments"]
    segment["is_expandable"] = True  # so small blocks may lie beside large ones
    first_ms = trace[0]["time_us"] / 1000
    peak = max(SlowBlocks(dump).levels(active=True))
    (tmp_path / "exp").mkdir()
    for number in range(NUM_FILES):
        path = tmp_path / "exp" / f"s{number:02}.pickle"
        path.write_bytes(pickle.dumps(dump, 4))
        for event in trace:
            event["time_us"] += 1_000_000
    del dump, trace, segment
    shown = Asked(tmp_path)
    found = [one["reference"] for one in shown.histories()["histories"]]
    ids = [one["id"] for one in sorted(found, key=lambda one: one["path"])]
    shown.history = ids[0]

    def check(number: int) -> None:
        shown.history = ids[number]
        (device,) = shown.opened()["facts"]["devices"]
        assert device["first_ms"] == pytest.approx(first_ms + 1000 * number)
        assert device["peaks"][0]["bytes"] == peak
        for colour in ("category", "module", "stack", "age"):
            assert shown.raw("allocations", colour=colour).status_code == 200
        assert cache.PROCESS.num_bytes <= BOUND

    check(0)
    before = resident()
    for number in range(1, NUM_FILES):
        check(number)
        check(0)
    assert resident() - before < BOUND + RESIDENT_BYTES
    assert len(opened) == NUM_FILES, "the one that is looked at stays open"
    check(1)
    assert len(opened) == NUM_FILES + 1, "one that made room is opened again"


@pytest.mark.skipif(not STATUS.exists(), reason="resident memory is read from /proc")
def test_twenty_large_traces_opened_in_turn_stay_below_the_bound(tmp_path, opened):
    num_steps = 2000
    made = trained(num_steps=num_steps)
    for number in range(NUM_FILES):
        end_us = 10_000 + 1_000 * (num_steps - 10 * number)
        events = [one for one in made.events if one.get("ts", 0) < end_us]
        path = tmp_path / "exp" / f"host_0.{100 + number}.pt.trace.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**made.head, "traceEvents": events}))
    page = Page(tmp_path)
    run = page.run_id("exp")
    traces = page.get("/profile", run=run)["choice"]["traces"]
    ids = [one["id"] for one in sorted(traces, key=lambda one: one["name"])]

    def check(number: int) -> None:
        query = {"run": run, "source": ids[number]}
        answer = answered(
            lambda: page.get("/profile", **query),
            lambda found: found["choice"]["state"] != "opening",
        )
        assert len(answer["step"]) == num_steps - 10 * number
        for route in ("operators", "kernels", "module_times", "operator_memory"):
            assert page.raw(f"/{route}", **query).status_code == 200
        assert cache.PROCESS.num_bytes <= BOUND

    check(0)
    before = resident()
    for number in range(1, NUM_FILES):
        check(number)
        check(0)
    assert resident() - before < BOUND + RESIDENT_BYTES
    assert len([one for one in opened if "host_0.100." in one]) == 1
    again = len(opened)
    check(1)
    assert len(opened) == again + 1, "one that made room is opened again"
