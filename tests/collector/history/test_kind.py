"""The kind: captures at both ends and on demand, tags, bounds, pickles."""

from __future__ import annotations

import types

import pytest

from memboard.collector.config.sections import HistoryConfig
from memboard.collector.core.calls import Call
from memboard.collector.format.capture import decode_body, encode_body
from memboard.collector.format.snapshots import rebuilt
from memboard.collector.format.snapshots.tags import tag_data
from memboard.collector.history import captures as keeping
from memboard.collector.history import kind
from memboard.collector.history.captures import keep_last, later_tables
from memboard.collector.history.kind import History
from memboard.collector.history.recording import HistoryRecording
from memboard.tb_plugin.cli.export.contents import pickle_name
from tests.collector.history.fakes import FakeSink, FakeTorch


def made(torch, sink=None, *, allocator=None, **settings):
    sink = sink or FakeSink()
    recording = HistoryRecording(allocator or torch.allocator())
    return History(HistoryConfig(enabled=True, **settings), sink, recording), sink


def call(step=5, function="step", iteration=2, phase="train"):
    return Call(function=function, phase=phase, iteration=iteration, step=step)


def snapshot_of(capture):
    return rebuilt(decode_body(encode_body(capture))[1])


def test_events_are_tagged_with_their_step_phase_and_function():
    torch = FakeTorch()
    history, sink = made(torch)
    outer, inner = call(), call(function="training_step", iteration=1)
    history.begin(outer)
    torch.alloc()
    history.begin(inner)
    torch.alloc()
    history.end(inner, None)
    torch.alloc()
    history.end(outer, None)
    torch.alloc()
    events = torch.traces[0]
    assert [tag_data(e["user_metadata"]) for e in events] == [
        {"step": 5, "phase": "train", "function": "step"},
        {"step": 5, "phase": "train", "function": "training_step"},
        {"step": 5, "phase": "train", "function": "step"},
        None,
    ]
    history.close()
    assert len(sink.captures) == 4


@pytest.mark.parametrize("theirs", ["layer 3", {"layer": 3}])
def test_a_tag_of_the_programs_own_stays(theirs):
    torch = FakeTorch()
    torch.metadata = theirs
    history, _ = made(torch)
    history.begin(call())
    assert torch.metadata == theirs
    history.end(call(), None)
    assert torch.metadata == theirs
    torch.metadata = ""
    one = call()
    history.begin(one)
    torch.metadata = theirs  # set in the middle of the window
    history.end(one, None)
    assert torch.metadata == theirs
    history.close()


def test_that_torch_has_no_tags_is_said():
    torch = FakeTorch()
    older = torch.allocator(set_metadata=None)
    _, sink = made(torch, allocator=older)
    ((name, status, reason, remedy),) = sink.notes
    assert (name, status) == ("history.metadata", "absent")
    assert "step and phase" in reason
    assert "2.10" in remedy


def test_nothing_is_captured_before_the_device_is_in_use():
    torch = FakeTorch()
    torch.in_use = False
    history, sink = made(torch)
    history.begin(call())
    assert not history.take("early", step=0, phase="train")
    torch.in_use = True  # the model moved to the device in this very call
    torch.alloc()
    history.end(call(), None)
    assert [c.context for c in sink.captures] == ["end"]
    history.close()


def test_the_end_of_a_failed_call_is_captured_too():
    torch = FakeTorch()
    history, sink = made(torch)
    one = call()
    history.begin(one)
    history.end(one, RuntimeError("boom"))
    assert sink.captures[1].meta["error"] == "RuntimeError"
    assert torch.metadata == ""
    history.close()


def test_on_demand_with_and_without_history():
    torch = FakeTorch()
    torch.alloc(300)
    history, sink = made(torch)
    assert history.take("before eval", step=7, phase="val")
    (capture,) = sink.captures
    assert (capture.label, capture.context, capture.function) == ("before eval", "", "")
    assert (capture.step, capture.phase, capture.iteration) == (7, "val", 0)
    assert capture.meta["recording"] == "off"
    assert torch.calls == []  # asking for a snapshot turns nothing on
    snapshot = snapshot_of(capture)
    assert snapshot["device_traces"] == [[]]
    assert snapshot["segments"][0]["blocks"][0]["size"] == 300
    torch.record(max_entries=10)
    history.take("again", step=8, phase="val")
    assert sink.captures[1].meta["recording"] == "program"


def test_a_programs_endless_history_is_cut_to_our_bound():
    torch = FakeTorch(num_devices=2)
    torch.record()
    for device in (0, 0, 0, 0, 0, 1):
        torch.alloc(device=device)
    history, sink = made(torch, max_entries=2)
    history.take("x", step=0, phase="train")
    (capture,) = sink.captures
    traces = snapshot_of(capture)["device_traces"]
    assert [len(trace) for trace in traces] == [3, 1]  # room of two devices' bound
    assert traces[0][-1] == torch.traces[0][-1]
    assert capture.meta["num_events_dropped"] == 2


@pytest.mark.parametrize(
    ("lengths", "most", "kept"),
    [
        ([5, 5], 10, [5, 5]),
        ([9, 1], 6, [5, 1]),
        ([1, 9, 1], 5, [1, 3, 1]),
        ([4, 4], 5, [2, 3]),
        ([], 5, []),
        ([7], 0, [0]),
    ],
)
def test_what_is_kept_of_each_device(lengths, most, kept):
    snapshot = {"device_traces": [list(range(n)) for n in lengths]}
    dropped = keep_last(snapshot, most)
    assert [len(trace) for trace in snapshot["device_traces"]] == kept
    assert dropped == sum(lengths) - sum(kept)
    for trace, length in zip(snapshot["device_traces"], lengths, strict=True):
        assert trace == list(range(length))[length - len(trace) :]


def test_odd_snapshots_are_taken_as_they_are():
    for snapshot in ({"device_traces": None}, {}, {"segments": 3}, {"segments": [4]}):
        assert keep_last(snapshot, 1) == 0
        assert later_tables(snapshot).num_rows == 0


def test_after_a_slow_snapshot_calls_begin_without_the_events(monkeypatch):
    monkeypatch.setattr(kind, "SLOW_SECONDS", 0.0)
    torch = FakeTorch()
    history, sink = made(torch)
    history.begin(call())  # nothing is known yet: the whole
    torch.alloc()
    history.end(call(), None)
    history.begin(call())
    history.end(call(), None)
    traces = [snapshot_of(c).get("device_traces") for c in sink.captures]
    assert [None if t is None else len(t[0]) for t in traces] == [0, 1, None, 1]
    assert "took" in sink.captures[2].meta["no_events"]
    history.close()


def test_the_caller_encodes_where_too_much_waits(monkeypatch):
    monkeypatch.setattr(keeping, "MAX_WAITING_ROWS", 5)
    torch = FakeTorch()
    torch.record()
    for _ in range(2):
        torch.alloc()
    history, sink = made(torch)
    for label in "abc":
        history.take(label, step=0, phase="train")
    assert [c.tables.is_made for c in sink.captures] == [False, True, True]
    sink.captures[0].tables.made()
    history.take("d", step=0, phase="train")
    assert not sink.captures[3].tables.is_made


def test_names_hold_nothing_that_leads_elsewhere():
    assert (
        pickle_name(0, "step", 1, context="end")
        == "cuda_alloc_rank_0.step.1.end.pickle"
    )
    for label in ("../../etc/passwd", "a\0b", ".", "", "x" * 999, "Zoë"):
        name = pickle_name(0, "", 1, label=label)
        assert "/" not in name
        assert "\0" not in name
        assert len(name) < 150


def test_a_history_that_is_on_is_recorded_from_the_opening_on(monkeypatch):
    """MemProfiler's has no bound, holds C++ stacks and is never stopped (A13)."""
    torch = FakeTorch()
    monkeypatch.setattr(kind, "find_allocator", lambda _: torch.allocator())
    settings = types.SimpleNamespace(device="auto", history=HistoryConfig(enabled=True))
    history = kind.open_kind(settings, FakeSink())
    assert torch.enabled == "all"
    assert torch.settings == {"stacks": "python", "max_entries": 100_000}
    history.close()
    assert torch.enabled is None
    off = types.SimpleNamespace(device="auto", history=HistoryConfig())
    kind.open_kind(off, FakeSink())
    assert torch.enabled is None


def test_pinned_host_memory_is_recorded_by_itself_and_stays_so():
    torch = FakeTorch()
    history, sink = made(torch)
    first, second = call(), call(function="validate")
    history.begin(first)
    torch.pin(3000)
    history.begin(second)  # another holder of the recording, with other stacks
    torch.pin(1 << 20)
    history.end(second, None)
    history.end(first, None)
    snapshot = snapshot_of(sink.captures[-1])
    actions = [one["action"] for one in snapshot["host_traces"]]
    assert actions == ["segment_alloc", "alloc"] * 2
    assert [one["total_size"] for one in snapshot["host_segments"]] == [4096, 1 << 20]
    assert sink.captures[-1].meta["num_pinned_events"] == 4
    history.close()
    assert torch.enabled is None
    assert not torch.records_pinned


def test_pinned_events_are_bounded_like_those_of_a_device():
    torch = FakeTorch()
    history, sink = made(torch, max_entries=5)
    history.begin(call())
    for size in range(1, 9):
        torch.pin(1 << size)
    history.end(call(), None)
    snapshot = snapshot_of(sink.captures[-1])
    assert [one["size"] for one in snapshot["host_traces"]] == [64, 128, 128, 256, 256]
    assert sink.captures[-1].meta["num_events_dropped"] == 11
    history.close()
