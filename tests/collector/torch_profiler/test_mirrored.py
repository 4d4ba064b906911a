"""Traces that go to a mirror: copied, named by their own moment, and then deleted here."""

from __future__ import annotations

import json

import pytest

import memboard as mb
from tests.collector.recordings import read
from tests.collector.torch_profiler.training import CYCLES, steps


def train(run_dir, store, number=9, traces_to="{path}", **settings):
    with mb.record(
        run_dir,
        scalars=False,
        schedule=CYCLES,
        torch_profiler={"enabled": True, **settings},
        remote={"url": f"file://{store}/{{run_name}}", "traces": traces_to},
    ) as recorder:
        steps(recorder, number)
    return recorder


def copies(store):
    return sorted(p for p in store.rglob("*.pt.trace.json") if p.is_file())


@pytest.mark.parametrize(("keep", "here"), [(-1, 2), (1, 1), (0, 0)])
def test_every_trace_is_copied_whatever_stays_here(tmp_path, keep, here):
    store = tmp_path / "store"
    store.mkdir()
    run_dir = tmp_path / "exp"
    recorder = train(run_dir, store, num_traces_to_keep=keep)
    found = copies(store)
    assert [p.name for p in found] == ["rank0.4.pt.trace.json", "rank0.8.pt.trace.json"]
    for path in found:
        assert json.loads(path.read_text())["traceEvents"]
    left = list(run_dir.rglob("*.pt.trace.json"))
    assert len(recorder.saved_traces) == here
    assert len(left) == here
    assert len(copies(store)) == 2


def test_a_template_of_the_mirror_knows_each_traces_own_moment(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    train(tmp_path / "exp", store, traces_to="t/{batch:03d}-{sample}.pt.trace.json")
    names = [p.relative_to(store).as_posix() for p in copies(store)]
    assert names == ["exp/t/004-32.pt.trace.json", "exp/t/008-64.pt.trace.json"]


def test_the_capture_says_where_it_is(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    run_dir = tmp_path / "exp"
    train(run_dir, store, number=4)
    files = sorted(run_dir.rglob("rank*.events"))
    found = [c for path in files for c in read(path).captures if c.kind == "trace"]
    ended, capture, _ = found
    assert [one.context for one in found] == ["ended", "", "digest"]
    assert ended.meta["remote"] is None
    assert capture.meta["remote"].startswith(f"file://{store}/exp/")
    assert capture.meta["remote"].endswith("rank0.4.pt.trace.json")
    assert capture.meta["kept"]
