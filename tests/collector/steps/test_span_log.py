"""Spans one by one: what is kept, in which steps, and what is lost and counted."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest

import memboard as mb
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.steps.spans import calls
from memboard.collector.steps.spans import captures as span_captures
from memboard.collector.steps.spans.log import STATES
from tests.collector import recordings
from tests.collector.recordings import Recording, read_only_file

ALWAYS = {"warmup": 0, "active": 0}
"""A schedule that collects every step."""


def record(run_dir, **keywords):
    """A recording of steps and spans."""
    return recordings.record(run_dir, **{"spans": True, **keywords})


def spans_of(found: Recording) -> list[dict]:
    """Rows of all captures, with names for their numbers."""
    rows = []
    for capture in found.captures:
        if capture.kind != "spans":
            continue
        tables = capture.tables
        columns = tables["spans"]
        for at in range(len(columns["name"])):
            row = {name: int(values[at]) for name, values in columns.items()}
            name, args = row["name"], row["args"]
            row["name"] = tables["names"]["name"][name]
            row["category"] = tables["names"]["category"][name]
            row["thread"] = tables["threads"]["name"][row["thread"]]
            row["args"] = (
                json.loads(tables["args"]["json"][args]) if args >= 0 else None
            )
            row["cycle"] = capture.meta["cycle"]
            rows.append(row)
    return sorted(rows, key=lambda row: row["start_ns"])


def named(found: Recording, name: str) -> list[dict]:
    return [row for row in spans_of(found) if row["name"] == name]


def test_a_span_is_kept_with_all_that_is_known_of_it(tmp_path):
    before = time.time_ns()
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        rec.step()
        with rec.span("outer", category="mine", args={"size": 3, "what": "x"}):
            time.sleep(0.02)
            with rec.span("inner"):
                pass
        rec.step()
    found = read_only_file(tmp_path / "run")
    (outer,), (inner,) = named(found, "outer"), named(found, "inner")
    assert outer["category"] == "mine"
    assert inner["category"] == "user"
    assert outer["args"] == {"size": 3, "what": "x"}
    assert inner["args"] is None
    assert (outer["depth"], inner["depth"]) == (0, 1)
    assert (outer["step"], inner["step"]) == (1, 1)
    assert STATES[outer["state"]] == "ACTIVE"
    assert outer["thread"] == inner["thread"] == "MainThread"
    assert before < outer["start_ns"] < inner["start_ns"] < time.time_ns()
    assert 20_000_000 <= outer["duration_ns"] < time.time_ns() - before
    end = outer["start_ns"] + outer["duration_ns"]
    assert inner["start_ns"] + inner["duration_ns"] <= end


def test_only_steps_of_the_states_keep_spans_and_all_steps_sum_them_up(tmp_path):
    schedule = {"skip_first": 1, "wait": 1, "warmup": 1, "active": 2, "repeat": 1}
    with record(tmp_path / "run", schedule=schedule) as rec:
        for _ in range(8):
            with rec.span("usual"):
                pass
            with rec.span("saved", states="active_and_save"):
                pass
            with rec.span("always", states=STATES):
                pass
            rec.step()
    found = read_only_file(tmp_path / "run")
    assert [row["step"] for row in named(found, "usual")] == [2, 3, 4]
    assert [STATES[row["state"]] for row in named(found, "usual")] == list(STATES[1:])
    assert [row["step"] for row in named(found, "saved")] == [4]
    assert [row["step"] for row in named(found, "always")] == list(range(8))
    cycles = [row["cycle"] for row in named(found, "always")]
    assert cycles == [0, 0, 1, 1, 1, 1, 1, 1]
    totals = {note["name"]: note["num_spans"] for note in found.notes_of("span")}
    assert totals == {"usual": 8, "saved": 8, "always": 8}


def test_the_settings_say_which_states(tmp_path):
    spans = {"states": ["skip"]}
    with record(tmp_path / "run", spans=spans) as rec:
        for _ in range(4):
            with rec.span("x"):
                pass
            rec.step()
    assert [row["step"] for row in named(read_only_file(tmp_path / "run"), "x")] == [
        2,
        3,
    ]


def test_switched_off_spans_are_summed_up_alone(tmp_path):
    with record(tmp_path / "run", spans=False, schedule=ALWAYS) as rec:
        with rec.span("x", states="skip"):
            rec.instant("i")
            rec.log({"c": 1})
        rec.step()
    found = read_only_file(tmp_path / "run")
    assert not [capture for capture in found.captures if capture.kind == "spans"]
    (note,) = found.notes_of("span")
    assert note["num_spans"] == 1
    names = [column.name for column in found.schemas[0].columns]
    assert "forward_seconds" not in names


def test_a_step_is_a_span_of_a_track_of_its_own(tmp_path):
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        for number in range(3):
            time.sleep(0.005)
            rec.step(100 + number)
        with rec.phase("val"):
            rec.step()
    found = read_only_file(tmp_path / "run")
    steps = named(found, "step")
    assert [row["step"] for row in steps] == [
        101,
        102,
    ]  # the first began who knows when
    assert {row["thread"] for row in steps} == {"MainThread steps"}
    assert {row["depth"] for row in steps} == {0}
    seconds = found.column("step_time_seconds")[1:]
    assert np.allclose([row["duration_ns"] * 1e-9 for row in steps], seconds, rtol=1e-6)
    assert len(named(found, "val step")) == 1


# Start and stop.


def test_start_twice_and_stop_without_start_are_errors_that_say_so(tmp_path):
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        one = rec.span("one")
        with pytest.raises(mb.SpanError, match="'one' was stopped without a st"):
            one.stop()
        assert one.start() is one
        with pytest.raises(
            RuntimeError, match="'one' was started again without a stop"
        ):
            one.start()
        one.stop()
        with pytest.raises(mb.MemBoardError):
            one.stop()
        one.start()
        one.stop()
    assert len(named(read_only_file(tmp_path / "run"), "one")) == 2


def test_start_and_stop_without_a_recorder_are_matched_all_the_same():
    span = mb.span("free")
    with pytest.raises(mb.SpanError):
        span.stop()
    span.start()
    span.stop()
    off = mb.record("unused", enabled=False).span("off")
    off.stop()  # a recorder that is switched off minds nothing
    assert off.start() is off


def test_one_pair_per_span_whatever_the_schedule_and_no_end_without_a_beginning(
    tmp_path,
):
    # 8 duration spans, 1 instant; the span that never ends is not there at all.
    with record(tmp_path / "run", schedule=ALWAYS) as rec:

        @rec.span("decorated")
        def answer():
            return 42

        for _ in range(8):
            assert answer() == 42
            rec.step()
        rec.instant("done", reason="test")
        rec.span("never stopped").start()
    found = read_only_file(tmp_path / "run")
    assert len(named(found, "decorated")) == 8
    assert not named(found, "never stopped")
    instants = [c.tables["instants"] for c in found.captures if c.kind == "spans"]
    assert sum(len(table["name"]) for table in instants) == 1


def test_spans_that_cross_and_end_on_another_thread(tmp_path):
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        first, second = rec.span("first").start(), rec.span("second").start()
        first.stop()
        thread = threading.Thread(target=second.stop, name="helper")
        thread.start()
        thread.join()
        with rec.span("after"):
            pass
    found = read_only_file(tmp_path / "run")
    assert [row["name"] for row in spans_of(found)] == ["first", "second", "after"]
    assert [row["depth"] for row in spans_of(found)] == [0, 1, 0]
    assert named(found, "second")[0]["thread"] == "helper"


# Instants and counters.


def test_instants_and_counters_are_kept_where_spans_are(tmp_path):
    with record(tmp_path / "run") as rec:  # by itself: steps 0 and 1
        for step in range(4):
            rec.instant("here", step=step, odd=object())
            rec.log({"level": step * 1.5})
            rec.log({"rare": step}, states="skip")
            rec.step()
        mb.instant("of the active one", states=STATES)
        mb.log({"of the active one": np.float32(2)}, states=STATES)
    found = read_only_file(tmp_path / "run")
    instants, counters = [], []
    for capture in found.captures:
        if capture.kind == "spans":
            names = capture.tables["names"]["name"]
            table = capture.tables["instants"]
            args = capture.tables["args"]["json"]
            for name, step, arg in zip(
                table["name"], table["step"], table["args"], strict=True
            ):
                instants.append((names[name], step, args[arg] if arg >= 0 else None))
            table = capture.tables["counters"]
            for name, value in zip(table["name"], table["value"], strict=True):
                counters.append((names[name], value))
    assert sorted(instants) == [
        ("here", 0, '{"step":0,"odd":"<object>"}'),
        ("here", 1, '{"step":1,"odd":"<object>"}'),
        ("of the active one", 4, None),
    ]
    assert sorted(counters) == [
        ("level", 0.0),
        ("level", 1.5),
        ("of the active one", 2.0),
        ("rare", 2.0),
        ("rare", 3.0),
    ]


def test_what_is_no_number_and_no_state_is_refused_with_a_word(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(calls, "warn_once", WarnOnce())
    with record(tmp_path / "run", schedule=ALWAYS) as rec:
        rec.log({"odd": "text"})
        with rec.span("x", states="sometimes"):
            pass
    assert len(named(read_only_file(tmp_path / "run"), "x")) == 1
    said = " ".join(caplog.messages)
    assert (
        "'sometimes' is not a state of the schedule. Use skip, warmup, active" in said
    )
    assert "log takes numbers of 64 bits, got a str for odd" in said


# Bounds.


def test_what_comes_too_fast_is_dropped_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(span_captures, "PER_SECOND", 1)
    monkeypatch.setattr(span_captures, "_BURST_SECONDS", 8192)
    spans = {"automatic": False}
    with record(tmp_path / "run", schedule=ALWAYS, spans=spans) as rec:
        rec.flush(60)
        for _ in range(20_000):
            with rec.span("fast"):
                pass
    found = read_only_file(tmp_path / "run")
    kept = len(named(found, "fast"))
    assert 8192 <= kept < 8192 + 60
    assert rec.num_dropped == 20_000 - kept
    assert sum(note["num_spans"] for note in found.notes_of("span")) == 20_000
    dropped = [n for n in found.notes_of("dropped") if n["table"] == "spans"][-1]
    assert dropped["num_rows"] == 20_000 - kept


def test_memory_is_bounded_while_nothing_is_written(tmp_path):
    from memboard.collector.steps.spans.log import MAX_WAITING, SPAN_WIDTH, SpanLog

    class NoDevice:
        ledger = None

    rings = []
    log = SpanLog(states=15, device=NoDevice(), wake=lambda: rings.append(1))
    for number in range(MAX_WAITING + 10):
        log.spans += ("x", "user", 1, number, 1000, 0, log.at, 3, None, None)
        if len(log.spans) >= log.wake_at:
            log.crowded()
    assert len(log.spans) == 10 * SPAN_WIDTH
    assert log.num_dropped == MAX_WAITING
    assert rings == [1]
    log.take_spans()
    (note,) = log.take_totals()
    assert note["num_spans"] == MAX_WAITING + 10


def test_the_disk_that_spans_take_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(span_captures, "MAX_BYTES", 30_000)
    spans = {"automatic": False}
    with record(
        tmp_path / "run", schedule=ALWAYS, spans=spans, flush_seconds=60
    ) as rec:
        for _ in range(20):
            for _ in range(500):
                with rec.span("x"):
                    pass
            rec.flush(60)
    assert 1000 <= len(named(read_only_file(tmp_path / "run"), "x")) <= 4000
    assert rec.num_dropped > 5000


def test_every_thread_has_its_own_depth_and_name(tmp_path):
    with record(tmp_path / "run", schedule=ALWAYS) as rec:

        def work():
            for _ in range(50):
                with rec.span("a"), rec.span("b"):
                    pass

        threads = [threading.Thread(target=work, name=f"w{n}") for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = read_only_file(tmp_path / "run")
    rows = spans_of(found)
    assert len(rows) == 400
    # Idents are used again, names are those of whoever had one first.
    assert {row["thread"] for row in rows} <= {"w0", "w1", "w2", "w3"}
    assert {(row["name"], row["depth"]) for row in rows} == {("a", 0), ("b", 1)}
