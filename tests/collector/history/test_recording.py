"""Torch's one recording: ours while needed, the program's never touched."""

from __future__ import annotations

import functools
import os
import sys

import pytest

from memboard.collector.history.recording import HistoryRecording, shared
from tests.collector.history.fakes import FakeTorch

OURS = {"max_entries": 100, "stacks": "python"}


@pytest.fixture
def torch():
    return FakeTorch()


@pytest.fixture
def ours(torch):
    """A recording that one holder has turned on."""
    recording = HistoryRecording(torch.allocator())
    assert recording.hold("a", **OURS)
    return recording


def test_it_is_on_while_somebody_holds_it(torch):
    recording = HistoryRecording(torch.allocator())
    assert recording.hold("a", **OURS)
    assert recording.hold("b", max_entries=7, stacks="python")  # goes on as it is
    assert torch.calls == [("all", "all", "python", 100)]
    recording.let_go("a")
    assert torch.enabled == "all"
    recording.let_go("b")
    assert torch.calls[1:] == [(None, "all", "all", 2**63)]
    recording.let_go("b")
    assert len(torch.calls) == 2


def test_the_most_demanding_holder_says_what_stacks_there_are(torch):
    recording = HistoryRecording(torch.allocator())
    recording.hold("a", max_entries=100, stacks="python", context="alloc")
    recording.hold("b", max_entries=900, stacks="all")
    recording.hold("c", max_entries=1, stacks="python", context=None)
    assert torch.calls == [
        ("all", "alloc", "python", 100),
        ("all", "all", "all", 100),  # a ring keeps its size while it turns
    ]
    assert recording.is_ours
    recording.let_go("b")
    assert torch.calls[2:] == [("all", "alloc", "python", 100)]
    recording.hold("a", max_entries=100, stacks="python", context=None)
    assert torch.calls[3:] == [("all", None, "python", 100)]
    recording.let_go("a")
    recording.let_go("c")
    assert torch.enabled is None


def test_torchs_functions_are_put_back(torch):
    before = vars(torch.c).copy()
    recording = HistoryRecording(torch.allocator())
    recording.hold("a", **OURS)
    assert vars(torch.c) != before
    recording.let_go("a")
    assert vars(torch.c) == before


def test_the_programs_recording_is_neither_changed_nor_ended(torch):
    torch.record(max_entries=9)
    recording = HistoryRecording(torch.allocator())
    assert recording.hold("a", **OURS)
    assert not recording.is_ours
    recording.let_go("a")
    assert torch.calls == [("all", "all", "all", 9)]


def test_a_program_that_begins_while_ours_runs_takes_it_over(torch, ours):
    torch.record(max_entries=9)  # an observer of out-of-memory errors, say
    assert not ours.is_ours
    ours.let_go("a")
    assert torch.enabled == "all"
    assert torch.settings["max_entries"] == 9


def test_a_programs_own_events_begin_with_its_call(torch, ours):
    torch.alloc()
    torch.record(max_entries=9)
    assert torch.snapshot()["device_traces"] == [[]]
    torch.alloc()
    torch.record(max_entries=9)  # with other settings, say: its own go on
    assert len(torch.snapshot()["device_traces"][0]) == 1


def test_a_call_that_torch_refuses_leaves_ours_on(torch, ours):
    with pytest.raises(TypeError):
        torch.c._cuda_record_memory_history("all", no_such=1)
    assert ours.is_ours
    assert torch.enabled == "all"
    assert torch.settings["max_entries"] == OURS["max_entries"]


def test_after_a_program_has_ended_it_the_next_window_begins_anew(torch, ours):
    torch.record(None)
    assert not ours.is_ours
    assert ours.hold("a", **OURS)
    assert ours.is_ours
    assert torch.enabled == "all"
    ours.let_go("a")
    assert torch.enabled is None


def test_a_wrapper_over_ours_stays_and_does_no_harm(torch, ours):
    before = torch.c._cuda_record_memory_history
    torch.c._cuda_record_memory_history = functools.partial(before)
    ours.let_go("a")
    torch.record(max_entries=5)
    assert torch.settings["max_entries"] == 5


def test_a_device_that_is_not_in_use_is_not_started(torch):
    torch.in_use = False
    recording = HistoryRecording(torch.allocator())
    assert not recording.hold("a", **OURS)
    recording.let_go("a")
    assert torch.calls == []
    torch.in_use = True
    assert recording.hold("a", **OURS)
    recording.let_go("a")


def test_where_torch_does_not_say_whether_it_records_the_events_do(torch):
    torch.record(max_entries=9)
    torch.alloc()
    recording = HistoryRecording(torch.allocator(is_recording=None))
    recording.hold("a", **OURS)
    recording.hold("a", **OURS)
    assert torch.num_snapshots == 1  # asked once, not at every call
    recording.let_go("a")
    assert torch.calls == [("all", "all", "all", 9)]


def test_recorders_of_a_process_share_it(torch):
    one = shared(torch.allocator(device_type="test"))
    assert shared(FakeTorch().allocator(device_type="test")) is one
    assert shared(FakeTorch().allocator(device_type="other")) is not one


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_leaves_it_to_its_parent(torch, ours):
    ours._lock.now.acquire()
    child = os.fork()
    if child == 0:
        ours.let_go("a")  # neither hangs nor turns anything off
        os._exit(0 if torch.enabled == "all" else 1)
    assert os.waitpid(child, 0)[1] == 0
    ours._lock.now.release()
    ours.let_go("a")
