"""Abilities of torch's allocator, found by its signatures."""

from __future__ import annotations

import pytest

from memboard.collector.core.source import Unavailable
from memboard.collector.history.allocator import Allocator, find_allocator
from tests.collector.history.fakes import FakeTorch


def test_a_full_torch_lacks_nothing():
    allocator = FakeTorch().allocator()
    assert allocator.absences == ()
    assert allocator.can_tag
    assert allocator.can_leave_out_traces


@pytest.mark.parametrize(
    ("changed", "what", "remedy"),
    [
        ({"set_metadata": None}, "metadata", "2.10"),
        ({"get_metadata": None}, "metadata", "2.10"),  # could not be put back
        ({"memory_snapshot": lambda mempool_id=None: []}, "segments", "2.12"),
        ({"is_recording": None}, "recording", "newer"),
        (
            {"record": lambda enabled, stacks="", max_entries=1: None},
            "pinned",
            "2.14",
        ),
        ({"annotate": None}, "annotations", "2.14"),
    ],
)
def test_what_is_missing_is_said_with_what_to_do(changed, what, remedy):
    (absence,) = FakeTorch().allocator(**changed).absences
    assert absence.what == what
    assert "torch 2.14.1" in absence.reason
    assert remedy in absence.remedy


def test_a_torch_that_records_all_stacks_says_so():
    allocator = FakeTorch().allocator(record=lambda enabled, max_entries=1: None)
    assert [one.what for one in allocator.absences] == ["stacks", "pinned"]


def test_only_what_the_signature_has_is_passed():
    calls = []
    allocator = FakeTorch().allocator(
        record=lambda enabled, max_entries=1: calls.append((enabled, max_entries))
    )
    allocator.start(max_entries=5, stacks="python")
    allocator.stop()
    assert calls == [("all", 5), (None, 1)]


def test_a_history_without_bound_is_refused():
    with pytest.raises(Unavailable, match="cannot bound") as refused:
        Allocator(record=lambda enabled: None, snapshot=dict)
    assert refused.value.remedy


def test_functions_that_do_not_show_their_parameters_are_called_as_documented():
    calls = []
    allocator = Allocator(record=lambda *a, **k: calls.append((a, k)), snapshot=dict)
    allocator.start(max_entries=5, stacks="all")
    ((args, kwargs),) = calls
    assert args == ("all",)
    assert kwargs == {"context": "all", "stacks": "all", "max_entries": 5}


def test_a_snapshot_that_is_a_bare_list_becomes_segments():
    assert FakeTorch().allocator(snapshot=list).snapshot() == {"segments": []}


def test_segments_come_without_their_events_where_torch_can():
    torch = FakeTorch()
    torch.record()
    torch.alloc()
    assert set(torch.allocator().segments()) == {"segments"}
    assert torch.num_snapshots == 0
    assert torch.allocator(memory_snapshot=None).segments()["device_traces"][0]


def test_this_torch_without_an_accelerator_is_unavailable():
    torch = pytest.importorskip("torch")
    if torch.accelerator.is_available():
        pytest.skip("there is an accelerator")
    with pytest.raises(Unavailable) as absent:
        find_allocator("auto")
    assert absent.value.reason
    with pytest.raises(Unavailable, match="switched off"):
        find_allocator("off")


def test_an_accelerator_whose_torch_keeps_no_history_is_unavailable(monkeypatch):
    torch = pytest.importorskip("torch")
    from memboard.collector.history import allocator
    from memboard.collector.sources.device.accelerator import Device

    class Backend:
        type = "mps"

    monkeypatch.setattr(allocator, "find_device", lambda *_, **__: Device(Backend(), 0))
    with pytest.raises(Unavailable, match="history for mps") as absent:
        find_allocator("auto")
    assert torch.__version__ in absent.value.reason


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_this_torch_has_what_our_advice_says_of_its_version(monkeypatch, kind):
    torch = pytest.importorskip("torch")
    from memboard.collector.history import allocator
    from memboard.collector.sources.device.accelerator import Device

    backend = type("Backend", (), {"type": kind, "in_use": lambda self: False})()
    monkeypatch.setattr(allocator, "find_device", lambda *_, **__: Device(backend, 0))
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if kind == "xpu" and version < (2, 11):
        with pytest.raises(Unavailable, match="history for xpu"):
            find_allocator("auto")
        return
    found = find_allocator("auto")
    assert not found.in_use()
    assert found.can_tag == (kind == "cuda" and version >= (2, 10))
    assert found.can_leave_out_traces == (kind == "cuda" and version >= (2, 12))
