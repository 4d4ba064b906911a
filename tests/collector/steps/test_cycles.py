"""The schedule's place at each training step, and its listeners."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.config.schedule import Action, Schedule
from memboard.collector.config.sections import ScheduleConfig
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.steps.cycles import Cycles
from memboard.collector.steps.progress import Progress


class Told:
    """Remembers what it is told."""

    def __init__(self):
        self.log = []
        self.cycles = None
        self.raises = None

    def _note(self, what, detail):
        self.log.append((what, detail, self.cycles.action.value, self.cycles.cycle))
        if self.raises == what:
            raise RuntimeError("planted")

    def begin(self, step):
        self._note("begin", step)

    def end(self, step):
        self._note("end", step)

    def cut(self, why):
        self._note("cut", why)


class Training:
    """What a recorder tells, in its order."""

    def __init__(self, needed=True, **schedule):
        self.progress = Progress()
        self.told = Told()
        settings = ScheduleConfig(**schedule)
        self.cycles = Cycles(settings, self.progress, WarnOnce(), needed=needed)
        self.told.cycles = self.cycles
        if needed:
            self.cycles.listen(self.told)
        self._begin()

    def _begin(self):
        self.cycles.choose()
        self.cycles.begin_step()

    def step(self, step=None, **reported):
        self.progress.report(
            tokens=reported.get("tokens"), samples=reported.get("samples")
        )
        self.cycles.end_step(step)
        self.progress.advance(step)
        self._begin()

    def steps(self, number):
        """The actions of the steps under way, one letter each, through `number` steps."""
        text = ""
        for _ in range(number):
            text += self.cycles.action.value
            self.step()
        return text

    def enter(self, phase):
        self.progress.enter(phase, 0)
        self.cycles.entered()
        self._begin()

    def of(self, *what):
        return [entry for entry in self.told.log if entry[0] in what]


CYCLIC = {"skip_first": 1, "wait": 1, "warmup": 1, "active": 2}


def test_each_step_has_its_action_and_each_cycle_its_number():
    training = Training(**CYCLIC, repeat=0)
    assert training.steps(10) == "..wAS.wAS."
    ends = training.of("end")
    assert [(step, action, cycle) for _, step, action, cycle in ends[:6]] == [
        (0, ".", 0),
        (1, ".", 0),
        (2, "w", 1),
        (3, "A", 1),
        (4, "S", 1),
        (5, ".", 1),
    ]
    assert ends[6][2:] == ("w", 2)
    assert training.of("cut") == []


def test_a_step_begins_before_it_ends_and_each_is_told_once():
    training = Training(**CYCLIC)
    training.steps(6)
    pairs = [(what, step) for what, step, *_ in training.told.log]
    expected = [(what, step) for step in range(6) for what in ("begin", "end")]
    assert pairs == [*expected, ("begin", 6)]


def test_numbers_are_trainings_own_where_it_gives_them():
    training = Training(active=2, warmup=0)
    training.step(100)
    training.step()
    assert [step for _, step, *_ in training.of("end")] == [100, 101]
    assert [step for _, step, *_ in training.of("begin")] == [0, 101, 102]


def test_the_last_step_of_an_epoch_that_said_its_length_saves():
    training = Training(skip_first=1, wait=2, warmup=3, active=4, repeat=0)
    training.cycles.epoch(8)
    assert training.steps(8) == "...wwwAS"
    assert training.of("cut") == []


def test_an_epoch_of_unknown_length_cuts_the_cycle_and_starts_anew():
    training = Training(wait=2, warmup=1, active=3, repeat=0, per_epoch=True)
    training.cycles.epoch(None)
    assert training.steps(9) == "..wAAS..w"
    assert training.cycles.cycle == 2
    training.cycles.epoch(None)
    assert training.of("cut") == [("cut", "epoch", "A", 2)]
    assert training.steps(5) == "..wAA"
    assert training.of("end")[-1] == ("end", 13, "A", 3)


def test_an_epoch_that_begins_before_its_first_step_changes_nothing():
    training = Training(warmup=0, active=2)
    training.cycles.epoch(5)
    assert [entry[:2] for entry in training.told.log] == [("begin", 0)]
    assert training.steps(2) == "AS"


def test_another_phase_cuts_the_cycle_once_and_its_rest_is_another_one():
    training = Training(warmup=1, active=4)
    training.steps(2)
    training.enter("val")
    assert training.cycles.action is Action.ACTIVE
    training.step()
    training.enter("test")
    training.enter("train")
    assert training.of("cut") == [("cut", "phase", "A", 1)]
    assert training.steps(4) == "AAS."
    assert [cycle for *_, cycle in training.of("end")] == [1, 1, 2, 2, 2, 2]


def test_a_phase_right_at_the_begin_of_a_cycle_leaves_it_its_number():
    training = Training(wait=1, warmup=1, active=1)
    training.steps(1)
    training.enter("val")
    training.enter("train")
    assert training.steps(2) == "wS"
    assert training.cycles.cycle == 1


def test_the_same_phase_again_is_nothing():
    training = Training(warmup=0, active=4)
    training.step()
    training.enter("train")
    assert training.of("cut") == []
    assert training.steps(3) == "AAS"


@pytest.mark.parametrize(
    ("error", "why"), [(None, "close"), (ValueError(), "exception")]
)
def test_the_end_is_told_and_nothing_after_it(error, why):
    training = Training(warmup=0, active=4)
    training.step()
    training.cycles.close(error)
    assert training.told.log[-1] == ("cut", why, "A", 1)
    training.step()
    training.cycles.epoch(3)
    training.enter("val")
    assert training.told.log[-1][0] == "cut"
    assert training.cycles.action is Action.SKIP


def test_a_function_that_goes_back_from_active_cuts_the_cycle():
    answers = iter([Action.WARMUP, Action.ACTIVE, Action.SKIP, Action.ACTIVE])
    training = Training(choose=lambda _position: next(answers, False))
    training.steps(3)
    assert [entry[:2] for entry in training.of("cut")] == [("cut", "schedule")]
    assert training.cycles.cycle == 2


def test_a_function_is_asked_once_for_each_step():
    asked = []
    training = Training(choose=asked.append)
    training.steps(4)
    assert asked == [0, 1, 2, 3, 4]


def test_a_function_that_fails_is_told_once_and_asked_no_more(caplog):
    def choose(position):
        raise ValueError("planted")

    with caplog.at_level(logging.WARNING, logger="memboard"):
        training = Training(choose=choose)
        assert training.steps(3) == "..."
    assert caplog.text.count("schedule.choose failed") == 1


def test_a_listener_that_fails_is_dropped_and_the_others_go_on(caplog):
    training = Training(warmup=0, active=9)
    other = Told()
    other.cycles = training.cycles
    training.cycles.listen(other)
    training.told.raises = "end"
    with caplog.at_level(logging.WARNING, logger="memboard"):
        training.steps(3)
    assert [entry[0] for entry in training.told.log] == ["begin", "end"]
    assert [entry[0] for entry in other.log].count("end") == 3
    assert caplog.text.count("Told failed") == 1


@pytest.mark.parametrize("unit", ["sample", "token"])
def test_samples_are_positions_of_their_own_and_of_each_epoch(unit):
    """Four in a step: the third and the fourth step of an epoch have those asked for."""
    training = Training(unit=unit, skip_first=8, warmup=0, active=8, per_epoch=True)
    actions = ""
    for index in range(8):
        if index == 4:
            training.cycles.epoch(None)
        actions += training.cycles.action.value
        training.step(**{f"{unit}s": 4})
    assert actions == "..AS..AS"
    assert training.of("cut") == []


def letters(schedule, length):
    return "".join(schedule.action(at).value for at in range(length))


@given(
    st.integers(0, 9), st.integers(0, 9), st.integers(1, 9), st.integers(1, 6)
)  # samples, and how many a step has
def test_the_steps_that_are_collected_are_those_that_have_the_samples(
    skip_first, wait, active, size
):
    cycle = {"skip_first": skip_first, "wait": wait, "warmup": 0, "active": active}
    training = Training(unit="sample", repeat=0, **cycle)
    singles = letters(Schedule(repeat=0, **cycle), 20 * size)
    steps = [singles[at : at + size] for at in range(0, len(singles), size)]
    wanted = [bool({"A", "S"} & set(step)) for step in steps]
    # How many samples the first step has is known when it is over; what was in it alone
    # is the second's.
    in_first = "A" in steps[0] or "S" in steps[0]
    wanted[0] = singles[0] in "AS"
    if in_first and not wanted[0] and steps[0][-1] != "A":
        wanted[1] = True
    found = []
    for _ in steps:
        found.append(training.cycles.action.collects)
        training.step(samples=size)
    assert found == wanted


def test_a_step_of_another_size_ends_its_cycle_where_its_samples_do():
    training = Training(unit="token", skip_first=10, warmup=0, active=20)
    for tokens in (10, 5, 15, 10):
        training.step(tokens=tokens)
    ends = [(step, action) for _, step, action, _ in training.of("end")]
    assert ends == [(0, "."), (1, "A"), (2, "S"), (3, ".")]
    assert training.of("cut") == []


def test_an_epoch_that_is_counted_is_one_cycle():
    training = Training(unit="epoch", warmup=1, active=1)
    actions = []
    for epoch in range(3):
        training.progress.epoch = epoch
        training.cycles.epoch(3 if epoch == 1 else None)
        actions.append(training.steps(3))
    assert actions == ["www", "AAS", "..."]
    assert {entry[3] for entry in training.of("end")[3:6]} == {2}


def test_nothing_is_evaluated_where_nobody_needs_it():
    asked = []
    training = Training(needed=False, choose=asked.append)
    training.steps(3)
    training.enter("val")
    training.enter("train")
    assert asked == []
    assert training.cycles.action is Action.SKIP


def test_a_forked_child_is_told_nothing():
    training = Training(warmup=0, active=9)
    training.cycles.after_fork()
    before = list(training.told.log)
    training.step()
    training.cycles.close(None)
    assert training.told.log == before


def test_a_steady_schedule_is_not_evaluated_at_each_step(monkeypatch):
    asked = []
    action = Schedule.action
    monkeypatch.setattr(
        Schedule,
        "action",
        lambda self, at, *rest, **more: (
            asked.append(at) or action(self, at, *rest, **more)
        ),
    )
    training = Training(warmup=1, active=2)
    assert training.steps(200) == "wAS" + 197 * "."
    assert len(asked) < 20


def test_a_number_that_goes_back_is_looked_up_again():
    training = Training(unit="step", warmup=2, active=2)
    assert training.steps(8) == "wwAS...."
    training.step(1)
    assert training.steps(4) == "AS.."


def test_of_cycles_alone_their_edges_are_told():
    training = Training(**CYCLIC, repeat=0)
    edges = Told()
    edges.cycles = training.cycles
    training.cycles.listen_to_edges(edges)
    training.steps(9)
    assert [entry[:2] for entry in edges.log] == [
        ("begin", 2),
        ("end", 4),
        ("begin", 6),
        ("end", 8),
    ]
    training.cycles.close(None)
    assert edges.log[-1][:2] == ("cut", "close")


def test_an_epoch_does_not_make_a_resumed_schedule_begin_again():
    training = Training(skip_first=0, wait=0, warmup=0, active=2, repeat=1, resume=3)
    actions = []
    for _epoch in range(3):
        training.cycles.epoch(None)
        for _ in range(2):
            actions.append(training.cycles.action.value)
            training.step()
    assert "".join(actions) == "...AS."
