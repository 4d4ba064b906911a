"""Phases, spans, marks and loaders: what training says of itself between its steps."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time

import pytest

import memboard as mb
from tests.collector.recordings import read_only_file, record


def fail(error, rec=None, after=0.0):
    """A training that takes a step, or some time, and fails."""
    if rec is not None:
        rec.step()
    time.sleep(after)
    raise error


# Phases, spans, marks, loaders.


def test_phases_count_their_own_steps_and_have_their_own_rows(tmp_path):
    with record(tmp_path / "run") as rec:
        rec.step(samples=1)
        began = time.perf_counter()
        rec.step(samples=1)
        with rec.phase("val"):
            rec.step(samples=100)
            time.sleep(0.2)
        rec.step(samples=1)
        took = time.perf_counter() - began
        with rec.phase("val"):
            rec.step()
        rec.phase("test")
        rec.step()
        rec.phase("train")
        rec.step()
    found = read_only_file(tmp_path / "run")
    assert found.steps() == [0, 1, 2, 3]
    assert found.steps("val") == [0, 1]
    assert found.steps("test") == [0]
    assert found.column("samples") == [1, 2, 3, 3]
    assert found.column("samples", phase="val") == [100, 100]
    # A mark stands where training was, whatever the phase counts.
    phases = [(n.data["phase"], n.step) for n in found.notes if n.kind == "phase"]
    assert phases == [
        ("val", 2), ("train", 2), ("val", 3), ("train", 3), ("test", 3), ("train", 3)
    ]  # fmt: skip
    # The step after a validation does not pay for it.
    assert found.column("step_time_seconds")[2] <= took - 0.2


def test_phase_names_made_up_in_a_loop_share_a_table(tmp_path):
    with record(tmp_path / "run") as rec:
        for index in range(100):
            with rec.phase(f"phase{index}"):
                rec.step()
        with rec.phase(""):
            rec.step()
    found = read_only_file(tmp_path / "run")
    assert len(found.schemas) == 33
    assert len(found.steps("other")) == 69
    assert found.steps() == [0]


def test_spans_time_code_and_keep_results_and_errors(tmp_path):
    with record(tmp_path / "run") as rec:

        @rec.span("double")
        def double(x):
            """Doubles."""
            return 2 * x

        @mb.span("count")
        def count(n):
            yield from range(n)

        @mb.span("later")
        async def later():
            return 7

        assert [double(2), double(3)] == [4, 6]
        assert double.__doc__ == "Doubles."
        assert list(count(3)) == [0, 1, 2]
        with pytest.raises(StopIteration):
            later().send(None)
        began = time.perf_counter_ns()
        with pytest.raises(ValueError, match="mine"), rec.span("outer"):
            fail(ValueError("mine"), after=0.02)
        took_us = (time.perf_counter_ns() - began) / 1000
    spans = {
        note["name"]: note for note in read_only_file(tmp_path / "run").notes_of("span")
    }
    assert {name: note["num_spans"] for name, note in spans.items()} == {
        "double": 2,
        "count": 1,
        "later": 1,
        "outer": 1,
    }
    assert 20_000 <= spans["outer"]["max_us"] == spans["outer"]["total_us"] <= took_us


def test_a_nested_span_of_one_object_keeps_both_times(tmp_path):
    with record(tmp_path / "run") as rec:
        again = rec.span("again")
        with again:
            time.sleep(0.02)
            began = time.perf_counter_ns()
            with again:
                pass
            inner_us = (time.perf_counter_ns() - began) / 1000
    (note,) = read_only_file(tmp_path / "run").notes_of("span")
    assert note["num_spans"] == 2
    assert note["max_us"] >= 20_000
    assert note["total_us"] <= note["max_us"] + inner_us + 1


def test_an_async_generator_is_timed_to_its_end_and_keeps_its_ways(tmp_path):
    events = []

    async def plain():
        try:
            got = yield 1
            events.append(got)
            try:
                yield 2
            except KeyError:
                events.append("thrown")
            yield 3
            yield 4
        finally:
            events.append("closed")

    async def use(stream):
        seen = [await stream.asend(None), await stream.asend("sent")]
        seen.append(await stream.athrow(KeyError))
        await stream.aclose()
        return seen, [x async for x in counted(3)]

    async def counting(n):
        for i in range(n):
            await asyncio.sleep(0.02)
            yield i

    with record(tmp_path / "run", flush_seconds=60) as rec:
        counted = rec.span("counted")(counting)
        assert inspect.isasyncgenfunction(counted)
        for make in (plain, rec.span("stream")(plain)):
            events.clear()
            assert asyncio.run(use(make())) == ([1, 2, 3], [0, 1, 2])
            assert events == ["sent", "thrown", "closed"]
    spans = {n["name"]: n for n in read_only_file(tmp_path / "run").notes_of("span")}
    assert spans["stream"]["num_spans"] == 1
    assert spans["counted"]["num_spans"] == 2
    assert spans["counted"]["total_us"] > 2 * 3 * 20_000 * 0.9


def test_one_span_in_many_threads_and_tasks_keeps_each_ones_time(tmp_path):
    gate, most_us = threading.Barrier(2), []

    with record(tmp_path / "run", flush_seconds=60) as rec:
        shared = rec.span("shared")

        def short():
            gate.wait(60)
            begin = time.perf_counter_ns()
            with shared:
                pass
            most_us.append((time.perf_counter_ns() - begin) / 1000)
            gate.wait(60)

        thread = threading.Thread(target=short)
        thread.start()
        with shared:  # the long one opens first and closes last
            time.sleep(0.05)
            gate.wait(60)
            gate.wait(60)
        thread.join()

        async def task(enter, leave):
            await asyncio.sleep(enter)
            begin = time.perf_counter_ns()
            with tasks:
                await asyncio.sleep(leave - enter)
            most_us.append((time.perf_counter_ns() - begin) / 1000)

        async def overlap():  # first in, first out
            await asyncio.gather(task(0, 0.1), task(0.05, 0.3))

        tasks = rec.span("tasks")
        asyncio.run(overlap())
        shared.__exit__(None, None, None)  # never entered: nothing happens
    spans = {n["name"]: n for n in read_only_file(tmp_path / "run").notes_of("span")}
    assert spans["shared"]["num_spans"] == 2
    short_us = spans["shared"]["total_us"] - spans["shared"]["max_us"]
    assert spans["shared"]["max_us"] >= 50_000
    assert short_us <= most_us[0] + 1
    assert 240_000 <= spans["tasks"]["max_us"] <= max(most_us[1:]) + 1
    assert 340_000 <= spans["tasks"]["total_us"] <= sum(most_us[1:]) + 2


def test_spans_and_marks_are_bounded_per_flush_and_what_is_lost_is_counted(tmp_path):
    with record(tmp_path / "run", flush_seconds=60) as rec:
        rec.flush(60)
        for index in range(1000):
            rec.mark(f"mark {index} " + "x" * 5000)
            with rec.span(f"span {index}"):
                pass
    found = read_only_file(tmp_path / "run")
    marks = found.notes_of("mark")
    assert 256 <= len(marks) <= 512  # a round may follow the flush by a moment
    assert max(len(note["label"]) for note in marks) == 1000
    spans = found.notes_of("span")
    assert 65 <= len(spans) <= 130
    assert sum(note["num_spans"] for note in spans) == 1000  # none is lost
    *_, dropped = found.notes_of("dropped")  # the last one says all
    assert (dropped["table"], dropped["num_rows"]) == ("notes", 1000 - len(marks))
    assert rec.num_dropped == 1000 - len(marks)


def test_the_loader_is_passed_through_and_counted(tmp_path):
    class Loader:
        num_workers = 3
        dataset = "the data"

        def __len__(self):
            return 4

        def __iter__(self):
            return iter("abcd")

    class Endless:
        def __iter__(self):
            while True:
                yield 1

    with record(tmp_path / "run") as rec:
        wrapped = rec.loader(Loader())
        assert list(wrapped) == ["a", "b", "c", "d"]
        assert (len(wrapped), wrapped.dataset) == (4, "the data")
        for _, batch in zip(range(2), wrapped, strict=False):
            assert batch in "ab"
        assert rec.num_batches >= 6
        endless = rec.loader(Endless())
        assert next(iter(endless)) == 1
        with pytest.raises(TypeError):
            len(endless)
        with pytest.raises(AttributeError):
            _ = endless.no_such_thing
        endless.pace = 5  # meant for the loader
        assert endless._loader.pace == 5
        before = rec.num_batches
        stream = rec.loader(iter([1, 2, 3]))
        assert next(stream) == 1
        assert list(stream) == [2, 3]
        assert rec.num_batches == before + 3
    notes = read_only_file(tmp_path / "run").notes_of("loader")
    assert [(n["type"], n["length"], n["num_workers"]) for n in notes] == [
        ("Loader", 4, 3),
        ("Endless", None, None),
        ("list_iterator", None, None),
    ]


# With an accelerator, as far as it can be had without one.


class Counters:
    """A device's counters, as the peak ledger sees them."""

    def __init__(self):
        self.now = self.peak = 0

    def allocate(self, num_bytes):
        self.now += num_bytes
        self.peak = max(self.peak, self.now)

    def stats(self):
        pools = ("all", "small_pool", "large_pool")
        pair = {"current": self.now, "peak": self.peak}
        names = ("allocated", "active", "reserved", "inactive_split", "requested")
        return {f"{name}_bytes": {pool: dict(pair) for pool in pools} for name in names}

    def reset_peaks(self):
        self.peak = self.now


def test_a_span_records_the_peak_of_its_own_time(tmp_path):
    from memboard.collector.sources.device.peaks import PeakLedger

    counters = Counters()
    counters.allocate(1000)
    with record(tmp_path / "run") as rec:
        rec._session.engine.device.ledger = PeakLedger(counters)
        with rec.span("outer"):
            counters.allocate(700)
            counters.allocate(-700)
            with rec.span("inner"):
                counters.allocate(50)
            with rec.span("inner"):
                counters.allocate(10)
            counters.allocate(-60)
        with rec.span("after"):
            pass
    spans = {
        note["name"]: note for note in read_only_file(tmp_path / "run").notes_of("span")
    }
    peaks = {name: note["allocated_peak_bytes"] for name, note in spans.items()}
    assert peaks == {"outer": 1700, "inner": 1060, "after": 1000}


def test_a_device_that_training_uses_only_later_is_noted_then(tmp_path, monkeypatch):
    from memboard.collector.format.records import DeviceIdentity
    from memboard.collector.sources.device.accelerator import Device

    known = DeviceIdentity(device_type="cuda", device_index=1)
    monkeypatch.setattr(Device, "identity", lambda self: known)
    with record(tmp_path / "run") as rec:
        assert rec.flush(60)
        known = DeviceIdentity(
            device_type="cuda",
            device_index=1,
            device_name="A GPU",
            device_uuid="u-1",
            device_total_bytes=80 * 2**30,
        )
        assert rec.flush(60)
    found = read_only_file(tmp_path / "run")
    assert (found.header.device_type, found.header.device_name) == ("cuda", None)
    (note,) = found.notes_of("device")
    assert note["device_name"] == "A GPU"
    assert note["device_total_bytes"] == 80 * 2**30
