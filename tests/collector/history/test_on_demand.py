"""`rec.snapshot` through a live recorder, from torch's functions to the file."""

from __future__ import annotations

import copy

import pytest

import memboard as mb
from memboard.collector.core.warn_once import logger
from memboard.collector.format.snapshots import rebuilt
from memboard.collector.history import allocator as seam
from memboard.collector.history import kind
from memboard.collector.recorder import inert_recorder
from tests.collector.history.fakes import FakeTorch
from tests.collector.recordings import read


@pytest.fixture
def torch(monkeypatch, tmp_path):
    torch = FakeTorch()
    found = torch.allocator(device_type=tmp_path.name)
    monkeypatch.setattr(kind, "find_allocator", lambda _: found)
    return torch


def test_a_snapshot_reaches_the_file_under_its_name(tmp_path, torch):
    with mb.record(tmp_path) as rec:
        rec.step()
        torch.alloc(4096)
        expected = copy.deepcopy(torch.snapshot())
        with rec.phase("val"):
            assert rec.snapshot("before eval")
    (capture,) = [c for c in read(rec.path).captures if c.kind == "history"]
    assert (capture.kind, capture.label, capture.phase) == (
        "history",
        "before eval",
        "val",
    )
    assert capture.step == 1
    assert rebuilt(capture.tables) == expected
    assert torch.calls == []


def test_with_history_on_the_windows_own_kind_takes_it(tmp_path, torch):
    settings = {"enabled": True, "max_entries": 50}
    with mb.record(tmp_path, history=settings) as rec:
        rec.step()  # one step of warmup, which is when recording begins
        torch.alloc(4096)
        assert rec.snapshot("here")
        rec.step()
    assert torch.calls == [("all", "all", "python", 50), (None, "all", "all", 2**63)]
    captures = [c for c in read(rec.path).captures if c.kind == "history"]
    found = [(c.function, c.iteration, c.context, c.label) for c in captures]
    assert found == [
        ("step", 2, "start", ""),
        ("", 0, "", "here"),
        ("step", 2, "end", ""),
    ]
    events = rebuilt(captures[1].tables)["device_traces"][0]
    assert [event["size"] for event in events] == [4096]
    assert "function" in events[0]["user_metadata"]


def test_without_an_accelerator_it_says_why_once(tmp_path, caplog, monkeypatch):
    def missing(choice):
        raise seam.Unavailable("no device here", "Get one.")

    monkeypatch.setattr(kind, "find_allocator", missing)
    logger.propagate = True
    with mb.record(tmp_path) as rec:
        assert not rec.snapshot("a")
        assert not rec.snapshot("b")
    notes = [n for n in read(rec.path).notes_of("source") if n["name"] == "history"]
    assert [note["reason"] for note in notes if note["status"] == "absent"][:1] == [
        "no device here"
    ]
    assert caplog.text.count("no snapshot was taken: no device here. Get one.") == 1


def test_a_torch_that_raises_costs_only_the_snapshot(
    tmp_path, torch, caplog, monkeypatch
):
    logger.propagate = True
    with mb.record(tmp_path) as rec:
        broken = torch.allocator(snapshot=lambda: 1 / 0, device_type="broken test")
        monkeypatch.setattr(kind, "find_allocator", lambda _: broken)
        assert not rec.snapshot("a")
        rec.step()
    assert "snapshot did not work" in caplog.text
    assert read(rec.path).steps() == [0]


def test_a_recorder_that_is_off_or_closed_takes_none(tmp_path, torch):
    assert inert_recorder().snapshot("x") is False
    with mb.record(tmp_path) as rec:
        pass
    assert rec.snapshot("x") is False
    assert torch.num_snapshots == 0
