"""Calls, their numbers, and which of them are collected by whom."""

from __future__ import annotations

import pytest

from memboard.collector.config.schedule import Cycles
from memboard.collector.core import guard
from memboard.collector.core.source import Unavailable
from memboard.collector.functions.windows import MAX_FUNCTIONS
from tests.collector.functions.sinks import Setup

# Numbers.


def test_each_function_and_phase_counts_its_own_calls():
    setup = Setup(Cycles(warmup=1, active=2))
    for _ in range(5):
        setup.call("train")
    setup.call("other")
    assert setup.begun() == ["train.2", "train.3"]
    setup.progress.enter("val", 0)
    for _ in range(2):
        setup.call("train")
    assert setup.begun() == ["train.2", "train.3", "train.2"]
    setup.progress.enter("train", 0)
    setup.call("train")
    setup.call("other")
    assert setup.begun()[3:] == ["other.2"]


def test_kinds_begin_in_reverse_and_end_in_their_order():
    setup = Setup(Cycles(warmup=0, active=1))
    setup.call("f")
    order = [(e[0], e[1]) for e in setup.log]
    assert order == [
        ("second", "begin"),
        ("first", "begin"),
        ("first", "end"),
        ("second", "end"),
        ("first", "release"),
        ("second", "release"),
    ]


def test_a_recursive_call_is_a_call_of_its_own():
    setup = Setup(Cycles(warmup=0, active=0))
    setup.call("f", inside=lambda: setup.call("f", inside=lambda: setup.call("f")))
    assert setup.begun() == ["f.1", "f.2", "f.3"]
    assert [e[2] for e in setup.did("end")] == ["f.3", "f.2", "f.1"]


def test_calls_may_end_in_any_order_and_only_once():
    setup = Setup(Cycles(warmup=0, active=0))
    one, two = setup.windows.begin("a"), setup.windows.begin("b")
    setup.windows.end(one, None)
    setup.windows.end(two, None)
    setup.windows.end(two, None)
    assert [e[2] for e in setup.did("end")] == ["a.1", "b.1"]


def test_made_up_names_share_one():
    setup = Setup(Cycles(warmup=0, active=0))
    for index in range(3 * MAX_FUNCTIONS):
        setup.call(f"f{index}")
    names = {name.rpartition(".")[0] for name in setup.begun()}
    assert len(names) == MAX_FUNCTIONS + 1
    assert f"other.{2 * MAX_FUNCTIONS}" in setup.begun()


# Whose calls.


def test_a_kind_has_its_own_functions():
    setup = Setup(Cycles(warmup=0, active=0), functions=(("a", "step"), ("b",)))
    for function in ("a", "b", "c", "Model.a"):
        setup.call(function)
    setup.step()
    assert setup.begun("first") == ["a.1", "Model.a.1", "step.1"]
    assert setup.begun("second") == ["b.1"]


def test_kinds_open_when_their_first_call_is_near():
    setup = Setup(Cycles(warmup=3, active=1), functions=(("*",), ("other",)))
    assert setup.opened == []
    setup.call("f")
    assert setup.opened == ["first"]  # warming up; the other has no such function
    setup = Setup(Cycles(skip_first=2, wait=0, warmup=1, active=1))
    setup.call("f")
    assert setup.opened == []


def test_a_kind_learns_of_the_model_whenever_it_opens():
    setup = Setup(Cycles(warmup=0, active=0))
    setup.windows.attach("model", ("optimizer",))
    assert setup.log == []
    setup.call("f")
    assert setup.did("attach") == [("first", "attach", "model", ("optimizer",))]
    setup.windows.attach("another", ())
    assert setup.did("attach")[1:] == [("first", "attach", "another", ())]


# Whole steps.


def test_a_step_that_a_phase_interrupts_begins_anew_under_its_number():
    setup = Setup(Cycles(warmup=1, active=1))
    setup.windows.begin_step()
    setup.step()  # the second one begins
    setup.enter("val")
    for _ in range(3):
        setup.step()
    setup.enter("train")
    setup.step()
    steps = [e for e in setup.log if e[0] == "first" and e[1] in ("begin", "end")]
    assert [(e[1], e[2]) for e in steps] == [
        ("begin", "step.2"),
        ("end", "step.2"),  # to nobody: see the gate
        ("begin", "step.2"),  # of validation
        ("end", "step.2"),
        ("begin", "step.2"),
        ("end", "step.2"),
    ]
    assert [e[3] for e in steps[::2]] == ["train", "val", "train"]


def test_what_is_found_in_an_interrupted_step_goes_nowhere():
    setup = Setup(Cycles(warmup=0, active=0))
    kind = setup.kinds[0]
    found = []
    kind.end = lambda call, error: found.append(
        setup.gate.put_capture(f"{call.function}.{call.iteration}")
    )
    setup.windows.begin_step()
    setup.enter("val")
    setup.enter("train")
    setup.step()
    assert len(found) == 3
    assert setup.sink.captures == ["step.1"]


def test_what_follows_the_last_step_is_none():
    setup = Setup(Cycles(warmup=0, active=0))
    setup.windows.begin_step()
    setup.step()
    setup.kinds[0].end = lambda call, error: setup.gate.put_capture("too much")
    setup.windows.close(None)
    assert setup.sink.captures == []
    assert setup.did("close") == [("first", "close")]
    assert setup.windows.begin("f") is None


def test_a_function_called_step_is_not_the_whole_step():
    setup = Setup(Cycles(warmup=0, active=0))
    setup.call("step")
    assert setup.begun() == ["step (own).1"]


# When model and torch are left alone.


def test_between_cycles_nothing_is_held():
    setup = Setup(Cycles(0, 1, 1, 2, 2))
    held = []
    for _ in range(9):
        setup.call("a")
        held.append(setup.kinds[0].held)
    assert held == [False, False, True, False, False, False, True, False, False]


def test_a_function_that_comes_no_more_holds_nothing_beyond_the_epoch():
    setup = Setup(Cycles(warmup=0, active=5))
    setup.call("a")
    assert setup.kinds[0].held
    setup.windows.epoch(None)
    assert not setup.kinds[0].held
    setup.call("a")
    assert setup.begun() == ["a.1", "a.2"]  # and still it counts on
    setup.windows.close(None)
    assert not setup.kinds[0].held


def test_nothing_is_let_go_while_a_call_is_under_way():
    setup = Setup(Cycles(warmup=0, active=1))
    outer = setup.windows.begin("outer")
    setup.call("inner")
    setup.windows.epoch(None)
    assert setup.kinds[0].held
    setup.windows.end(outer, None)
    assert not setup.kinds[0].held


def test_the_last_step_of_an_epoch_ends_its_cycle():
    setup = Setup(Cycles(0, 0, 0, 4, 0), functions=(("step",), ("step",)))
    setup.windows.epoch(3)
    setup.windows.begin_step()
    setup.step()
    setup.step()
    assert setup.kinds[0].held
    setup.step()
    # The third one ended the epoch; the next epoch's first is under way.
    assert len(setup.did("release")) == 1
    assert setup.begun()[-1] == "step.4"


# Units.


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("call", ["f.2"]),
        ("step", ["f.3", "f.4"]),
        ("sample", ["f.3", "f.4"]),
        ("token", ["f.3", "f.4"]),
        ("epoch", ["f.5", "f.6"]),
    ],
)
def test_what_is_counted(unit, expected):
    """Two calls a step; a step has four samples, 64 tokens; an epoch two steps."""
    setup = Setup(Cycles(warmup=1, active=1), unit=unit)
    for step in range(6):
        setup.progress.epoch = step // 2
        for _ in range(2):
            setup.call("f")
        setup.progress.report(tokens=64, samples=4)
        setup.progress.advance(None)
    assert setup.begun()[: len(expected)] == expected


# Faults.


def test_a_kind_that_raises_is_off_and_the_others_go_on(caplog):
    setup = Setup(Cycles(warmup=0, active=0))
    broken = setup.kinds[0]
    broken.raises["begin"] = RuntimeError("broken")
    for _ in range(3):
        assert setup.call("f")
    assert setup.begun("second") == ["f.1", "f.2", "f.3"]
    assert setup.begun("first") == ["f.1"]
    assert not broken.held
    assert setup.sink.notes[-1][:3] == ("first", "failed", "RuntimeError: broken")
    assert "first=False" in setup.sink.notes[-1][3]
    told = [r for r in caplog.records if "collecting first failed" in r.getMessage()]
    assert len(told) == 1


@pytest.mark.parametrize("where", ["open", "begin", "attach"])
def test_a_kind_that_raised_is_tried_again_and_comes_back(where, monkeypatch, caplog):
    monkeypatch.setattr(guard, "FIRST_SECONDS", 0.0)
    setup = Setup(Cycles(warmup=0, active=0))
    broken = setup.kinds[0]
    broken.raises[where] = RuntimeError("broken")
    setup.windows.attach("model", ())
    for _ in range(2):
        assert setup.call("f")
    del broken.raises[where]
    assert setup.call("f")
    assert setup.begun("first")[-1] == "f.3"
    assert setup.did("attach")[-1][2] == "model"
    assert setup.sink.status("first") == "recorded"
    assert caplog.text.count("collecting first failed and is off for now") == 1


@pytest.mark.parametrize("where", ["end", "release", "close", "attach"])
def test_wherever_it_raises(where, caplog):
    setup = Setup(Cycles(warmup=0, active=1))
    setup.kinds[0].raises[where] = RuntimeError("broken")
    setup.windows.attach("model", ())
    assert setup.call("f")
    setup.windows.close(None)
    assert setup.begun("second") == ["f.1"]
    assert setup.did("close", "second")
    assert setup.sink.status("first") == "failed"


def test_a_kind_that_does_not_open_says_why():
    setup = Setup(Cycles(warmup=1, active=0))
    setup.kinds[0].raises["open"] = Unavailable("no device", "Buy one.")
    setup.kinds[1].raises["open"] = ImportError("no module")
    assert not setup.call("f")
    assert setup.call("f")
    assert sorted(setup.opened) == ["first", "second"]  # each asked once
    assert ("first", "absent", "no device", "Buy one.") in setup.sink.notes
    assert setup.sink.status("second") == "failed"


def test_a_kind_may_pass_on_one_call():
    setup = Setup(Cycles(warmup=0, active=0))
    kind = setup.kinds[0]
    kind.raises["begin"] = Unavailable("no model is known", "Attach it.")
    setup.call("f")
    setup.call("f")
    assert setup.sink.status("first") == "absent"
    assert len([n for n in setup.sink.notes if n[1] == "absent"]) == 1
    assert setup.did("end") == []
    kind.raises.clear()
    setup.call("f")
    assert setup.sink.status("first") == "recorded"
    assert [e[2] for e in setup.did("end")] == ["f.3"]


def test_a_hook_may_call_a_profiled_function():
    setup = Setup(Cycles(warmup=0, active=1))
    setup.kinds[0].begin = lambda call: (
        setup.call("g") if call.function == "f" else None
    )
    assert setup.call("f")


def test_a_forked_child_does_nothing_more():
    setup = Setup(Cycles(warmup=0, active=0))
    under_way = setup.windows.begin("f")
    setup.windows.after_fork()
    setup.windows.end(under_way, None)
    assert setup.did("end") == []
    assert setup.windows.begin("f") is None
    setup.windows.close(None)


# Epochs of their own.


@pytest.mark.parametrize("unit", ["call", "step", "sample"])
def test_each_epoch_has_its_own_cycles_and_resumes_once(unit):
    """Composer skips what an earlier start has seen in every epoch, not in the first."""
    setup = Setup(Cycles(1, 1, 1, 2, 1), unit=unit, per_epoch=True, resume=2)
    windows, progress = setup.windows, setup.progress
    for epoch in range(3):
        progress.epoch = epoch
        windows.epoch(None)
        for _ in range(8):
            progress.report(tokens=None, samples=1)
            setup.call("f")
            progress.advance(None)
    # ....wAS. of the resumed one, then ..wAS... of each.
    offset = 1 if unit == "sample" else 0  # samples are counted when they are there
    found = [int(name[2:]) - 1 + offset for name in setup.begun()]
    assert found == [5, 6, 8 + 3, 8 + 4, 16 + 3, 16 + 4]
