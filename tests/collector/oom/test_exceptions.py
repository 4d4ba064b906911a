"""Errors that no observer tells of: what the exception itself says."""

# ruff: noqa: TRY301  # what fails, and where, is what is tested

from __future__ import annotations

import os
import sys

import pytest

import memboard as mb
from memboard.collector.format import oom
from memboard.collector.format.memory import CATEGORIES
from tests.collector.oom.stage import histories, reports
from tests.collector.recordings import read, record

torch = pytest.importorskip("torch")


def test_an_exception_alone_gives_what_its_text_says(tmp_path):
    text = (
        "CUDA out of memory. Tried to allocate 4.94 GiB. GPU 1 has a total capacity of"
        " 79.14 GiB of which 91.69 MiB is free. Of the allocated memory 78.29 GiB is"
        " allocated by PyTorch, and 135.40 MiB is reserved by PyTorch but unallocated."
    )
    with pytest.raises(torch.OutOfMemoryError), record(tmp_path, device="off") as rec:
        raise torch.OutOfMemoryError(text)
    (report,) = reports(rec.path)
    meta = report.meta
    assert (report.label, meta["origin"]) == ("exception", "exception")
    assert meta["is_out_of_memory"]
    assert (meta["device_type"], meta["device"]) == ("cuda", 1)
    assert meta["requested_bytes"] == round(4.94 * 2**30)
    assert meta["memory"]["allocated_bytes"] == round(78.29 * 2**30)
    assert meta["exception"] == {
        "type": "OutOfMemoryError",
        "module": "torch",
        "message": text,
    }
    assert set(meta["parsed"]) >= {"requested_bytes", "device_free_bytes"}
    assert histories(rec.path) == []
    (note,) = read(rec.path).notes_of("oom")
    assert (note["message"], note["report"]) == (text, 1)
    assert note["values"]["rss_bytes"] > 2**20


def test_a_real_error_of_the_hosts_memory(tmp_path):
    with (
        pytest.raises(RuntimeError, match="allocate memory"),
        record(tmp_path, device="off") as rec,
        rec.span("forward"),
    ):
        torch.empty(10**15)
    (report,) = reports(rec.path)  # seen at the span, and not again at the end
    assert report.function == "forward"
    assert report.meta["device_type"] == "cpu"
    assert report.meta["device"] is None
    assert report.meta["requested_bytes"] == 4 * 10**15
    assert report.meta["host"]["rss_bytes"] > 0
    assert report.tables["stack"]["name"][0].endswith(
        "test_a_real_error_of_the_hosts_memory"
    )


def test_one_that_is_caught_outside_a_span_is_reported(tmp_path):
    with record(tmp_path, device="off") as rec:
        for _ in range(2):
            try:
                with rec.span("try"):
                    raise MemoryError
            except MemoryError:  # noqa: PERF203
                pass

        @mb.profiled
        def retried():
            raise MemoryError("again")

        with pytest.raises(MemoryError):
            retried()
        rec.step()
    found = [r.meta["exception"]["message"] for r in reports(rec.path)]
    assert found[0] == ""
    assert found[-1] == "again"
    assert read(rec.path).close.how == "closed"


def test_another_exception_is_reported_as_what_it_is(staged, tmp_path):
    stage = staged()
    with pytest.raises(ValueError, match="boom"), record(tmp_path / "a") as rec:
        raise ValueError("boom" + "m" * 10_000)
    (report,) = reports(rec.path)
    assert not report.meta["is_out_of_memory"]
    assert report.meta["exception"]["type"] == "ValueError"
    assert len(report.meta["exception"]["message"]) == oom.MAX_MESSAGE
    (history,) = histories(rec.path)
    assert (history.label, history.meta["report"]) == ("exception", 1)
    assert read(rec.path).notes_of("oom") == []
    assert stage.num_snapshots == 1


def test_an_exception_is_not_kept_alive(tmp_path):
    import weakref

    class Big:
        pass

    def fail():
        big = Big()
        held.append(weakref.ref(big))
        raise MemoryError("gone")

    held: list = []
    with record(tmp_path, device="off") as rec:
        try:
            with rec.span("x"):
                fail()
        except MemoryError:
            pass
        assert held[0]() is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_reports_nothing_and_has_its_own_hooks(staged, tmp_path):
    stage = staged()
    before = sys.excepthook
    with record(tmp_path) as rec:
        assert sys.excepthook is not before
        child = os.fork()
        if child == 0:
            stage.fail()
            os._exit(0 if sys.excepthook is before else 1)
        assert os.waitpid(child, 0)[1] == 0
        stage.fail()
    assert len(reports(rec.path)) == 1


def test_categories_are_those_of_the_format(tmp_path):
    model = torch.nn.Linear(8, 8)
    with pytest.raises(MemoryError), record(tmp_path, model=model, device="off") as rec:
        raise MemoryError
    (report,) = reports(rec.path)
    table = report.tables["categories"]
    names = [CATEGORIES[index] for index in table["category"].tolist()]
    assert dict(zip(names, table["num_bytes"].tolist(), strict=True)) == {
        "param": 4 * (64 + 8)
    }
