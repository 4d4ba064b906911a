"""Out-of-memory errors of a simulated device, from torch's observer to the file."""

# ruff: noqa: PT012  # what fails, and where, is what is tested

from __future__ import annotations

import sys
import time
from collections import Counter

import pytest

from memboard.collector.core.warn_once import logger
from memboard.collector.format import oom
from memboard.collector.format.snapshots import rebuilt
from memboard.collector.history.tensors import TensorMap
from memboard.collector.oom import device as oom_device
from memboard.collector.oom import facts
from memboard.collector.oom import report as reporting
from memboard.collector.oom.torch_side import TorchSide
from tests.collector.oom.stage import histories, reports
from tests.collector.recordings import read, record, wait_until

torch = pytest.importorskip("torch")


def test_an_error_that_ends_the_program_leaves_report_history_and_note(
    staged, tmp_path
):
    stage = staged()
    with pytest.raises(torch.OutOfMemoryError) as raised, record(tmp_path) as rec:
        rec.step()
        with rec.span("forward"):
            stage.fail()
            raise torch.OutOfMemoryError(stage.message())
    assert raised.value.args == (stage.message(),)
    (report,) = reports(rec.path)
    assert (report.label, report.function, report.step) == ("oom", "forward", 1)
    meta, label = report.meta, stage.label
    assert set(meta) == set(oom.META)
    assert meta["report"] == meta["num_ooms"] == 1
    assert meta["is_out_of_memory"]
    assert (meta["device_type"], meta["device"]) == (stage.device_type, 0)
    assert meta["requested_bytes"] == label.requested_bytes
    assert meta["device_free_bytes"] == label.device_free_bytes
    assert meta["device_total_bytes"] == label.device_total_bytes
    assert meta["device_limit_bytes"] is None
    assert meta["memory"]["reserved_bytes"] == label.reserved_bytes
    assert meta["memory"]["num_ooms"] == 1
    assert set(meta["memory"]) == set(oom.MEMORY)
    outside = label.device_total_bytes - label.device_free_bytes - label.reserved_bytes
    assert meta["other_bytes"] == outside
    assert meta["last_step"]["step"] == 0
    assert meta["last_step"]["reserved_bytes"] == label.reserved_bytes
    assert meta["spans"] == ["forward"]
    assert meta["allocator"]["expandable_segments"] is True
    assert meta["history"]["recording"] == "ours"
    assert meta["history"]["events"] is True
    assert meta["parsed"] == []
    names = list(report.tables["stack"]["name"])
    assert "fail" in names[0]  # the innermost frame that is not ours
    (history,) = histories(rec.path)
    assert (history.label, history.context) == ("oom", "oom")
    assert history.meta["report"] == 1
    assert rebuilt(history.tables) == stage.taken
    found = read(rec.path)
    (note,) = found.notes_of("oom")
    assert note["report"] == 1
    assert "asked for" in note["message"]
    assert found.notes_of("oom_message") == [{"message": stage.message(), "report": 1}]
    assert found.close.how == "exception"


def test_the_top_holders_are_the_simulated_ones(staged, tmp_path):
    stage = staged("growth")
    with record(tmp_path) as rec:
        stage.fail()
    (report,) = reports(rec.path)
    holders, frames = report.tables["holders"], report.tables["holder_frames"]
    blocks = [
        block
        for segment in stage.taken["segments"]
        for block in segment["blocks"]
        if block["state"] != "inactive"
    ]
    by_stack: Counter = Counter()
    for block in blocks:
        stack = tuple((f["name"], f["filename"], f["line"]) for f in block["frames"])
        by_stack[stack] += block["size"]
    assert report.meta["holders"]["live_bytes"] == sum(b["size"] for b in blocks)
    assert report.meta["holders"]["num_blocks"] == len(blocks)
    sizes = holders["num_bytes"].tolist()
    assert sizes == sorted(by_stack.values(), reverse=True)[: oom.MAX_HOLDERS]
    shown: list = [() for _ in sizes]
    for row, *frame in zip(*frames.values(), strict=True):
        shown[row] += (tuple(frame),)
    assert list(map(len, shown)) == holders["num_frames"].tolist()
    cut = {(s[: oom.MAX_HOLDER_FRAMES], size) for s, size in by_stack.items()}
    assert set(zip(shown, sizes, strict=True)) <= cut


def test_caught_errors_are_reported_thrice_an_hour_and_then_counted(staged, tmp_path):
    stage = staged()
    with record(tmp_path) as rec:
        for _ in range(10):
            stage.fail()  # and the program catches it and tries again
    found = reports(rec.path)
    assert [r.meta["report"] for r in found] == [1, 2, 3]
    assert [h.meta["report"] for h in histories(rec.path)] == [1, 2, 3]
    notes = read(rec.path).notes_of("oom")
    assert [note["report"] for note in notes] == [1, 2, 3, *[None] * 7]
    assert stage.num_snapshots == 3


def test_one_that_ends_the_program_is_reported_beyond_the_ration(staged, tmp_path):
    stage = staged()
    with pytest.raises(torch.OutOfMemoryError), record(tmp_path) as rec:
        for _ in range(5):
            stage.fail()
        rec.step()
        stage.fail()
        raise torch.OutOfMemoryError(stage.message())
    last = reports(rec.path)[-1]
    assert last.meta["report"] == 4
    assert last.meta["origin"] == "oom"  # the facts of the moment itself
    assert last.meta["num_ooms"] == 6
    assert last.meta["num_not_reported"] == 2
    assert last.meta["exception"]["message"] == stage.message()
    assert last.step == 1


def test_the_ration_is_renewed_by_the_hour(staged, tmp_path, monkeypatch):
    stage = staged()
    monkeypatch.setattr(reporting, "_HOUR_SECONDS", 0.0)
    with record(tmp_path) as rec:
        for _ in range(5):
            stage.fail()
            time.sleep(0.002)
    assert len(reports(rec.path)) == 5


def test_nothing_that_fails_in_the_observer_reaches_training(
    staged, tmp_path, caplog, monkeypatch
):
    stage = staged()
    logger.propagate = True
    with record(tmp_path) as rec:
        with monkeypatch.context() as patch:
            patch.setattr(facts, "calling_frames", lambda: 1 / 0)
            stage.fail()
            stage.fail()
        stage.failing = RuntimeError("cannot be taken")
        stage.fail()
        rec.step()
    assert caplog.text.count("reporting of out-of-memory errors failed (observer)") == 1
    assert "cannot be taken" in caplog.text
    assert len(reports(rec.path)) == 1  # the third: its snapshot alone was lost
    assert histories(rec.path) == []
    assert read(rec.path).steps() == [0]
    assert read(rec.path).source("oom.snapshot")["status"] == "failed"


def test_the_newest_recorder_is_told_and_a_closed_one_is_not(staged, tmp_path):
    stage = staged()
    first, second = record(tmp_path / "a"), record(tmp_path / "b")
    assert len(stage.observers) == 1  # torch cannot be made to forget one
    stage.fail()
    second.close()
    stage.fail()
    first.close()
    first.close()
    stage.fail()
    assert [len(reports(rec.path)) for rec in (first, second)] == [1, 1]
    third = record(tmp_path / "c")
    stage.fail()
    third.close()
    assert len(stage.observers) == 1
    assert len(reports(third.path)) == 1


def test_the_device_is_not_started_and_watched_from_its_start(staged, tmp_path):
    stage = staged()
    stage.in_use = False
    with record(tmp_path) as rec:
        rec.step()
        assert stage.observers == []
        assert stage.calls == []
        (came,) = stage.waiting
        came()  # torch calls it before it says that the device is in use
        assert len(stage.observers) == 1
        assert stage.calls == [("all", "alloc", "python", 100_000)]
        stage.in_use = True
        stage.fail()
    came()  # and does no harm after the end
    assert len(reports(rec.path)) == 1
    assert stage.recording is None


def test_a_torch_that_does_not_call_back_is_asked_at_every_flush(
    staged, tmp_path, monkeypatch
):
    stage = staged()
    stage.in_use = False
    side = TorchSide(
        device_type=stage.device_type,
        attach=stage.observers.append,
        in_use=lambda: stage.in_use,
    )
    monkeypatch.setattr(oom_device, "find_torch_side", lambda _: side)
    with record(tmp_path, flush_seconds=0.05):
        assert stage.observers == []
        stage.in_use = True
        wait_until(lambda: stage.recording)  # begun a moment after the observer
        assert len(stage.observers) == 1


def test_a_part_within_a_span_of_its_own_name_is_named_once(staged, tmp_path):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            stage.fail()
            return gradient

    stage = staged()
    x = torch.ones(2, requires_grad=True)
    recorder = record(tmp_path, spans={"automatic": True})
    with recorder as rec, rec.span("all"), rec.span("backward"):
        Fails.apply(x).sum().backward()
    (report,) = reports(rec.path)
    assert report.meta["spans"] == ["all", "backward"]


def test_tensors_are_named_in_the_history_and_summed_in_the_report(
    staged, tmp_path, monkeypatch
):
    stage = staged()
    model = torch.nn.Linear(64, 32)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 64)).sum().backward()
    optimizer.step()
    # The device is simulated, its tensors lie on the host.
    monkeypatch.setattr(reporting, "TensorMap", lambda _: TensorMap("cpu"))
    with record(tmp_path, model=model, optimizer=optimizer) as rec:
        stage.fail()
    (history,) = histories(rec.path)
    table = history.tables["tensors"]
    by_address = dict(zip(table["address"].tolist(), table["name"], strict=True))
    assert by_address[model.weight.data_ptr()] == "weight"
    assert by_address[model.weight.grad.data_ptr()] == "weight.grad"
    moments = optimizer.state[model.weight]["exp_avg"]
    assert by_address[moments.data_ptr()] == "exp_avg of weight"
    assert rebuilt(history.tables) == stage.taken  # which does not mind the table


def test_it_can_be_switched_off(staged, tmp_path):
    stage = staged()
    hook = sys.excepthook
    with pytest.raises(torch.OutOfMemoryError), record(tmp_path, oom=False) as rec:
        assert sys.excepthook is hook
        stage.fail()
        raise torch.OutOfMemoryError("CUDA out of memory.")
    assert stage.observers == []
    assert stage.calls == []
    found = read(rec.path)
    assert found.captures == []
    (note,) = found.notes_of("oom")  # as it has always been
    assert note["message"] == "CUDA out of memory."


def test_steps_are_tagged_while_history_is_ours(staged, tmp_path):
    stage = staged()
    with record(tmp_path) as rec:
        rec.step()
        assert '"step":1' in stage.tag
        rec.step()
        assert '"step":2' in stage.tag
        stage.tag = "mine"
        rec.step()
        assert stage.tag == "mine"
        stage.tag = ""
        rec.step()
    assert stage.tag == ""
