"""Leaks of programs that mark no steps, and steady programs of all kinds without one."""

from __future__ import annotations

import random

import pytest

from memboard.tb_plugin.analysis.oom.case import Case
from memboard.tb_plugin.analysis.oom.judge import verdict
from tests.tb_plugin.analysis.made_programs import (
    GIB,
    MIB,
    Program,
    Training,
    at,
    in_loop,
    in_module,
)


def cause_of(program: Program):
    """Verdict and facts of a device that was full once before."""
    device_free = program.peak_bytes - program.live_bytes
    program.oom(device_free + 8 * MIB, in_module(22), device_free=device_free)
    (error,) = program.errors()
    return verdict(Case(facts=error.case.facts)), error.case.facts


@pytest.mark.parametrize("kept", [16 * MIB, 96 * MIB, 512 * MIB, 4 * GIB])
@pytest.mark.parametrize("num_steps", [6, 40])
def test_a_leak_is_found_however_large_it_is_beside_a_step(kept, num_steps):
    """The more is kept, the less of it all comes and goes."""
    rng = random.Random(kept + num_steps)
    training = Training(layers=6, weight=4 * MIB)
    for _ in range(num_steps):
        training.step(rng.choice([1, 2, 3]) * MIB)
        training.alloc(kept, in_loop(46))
    training.forward(MIB)
    found, facts = cause_of(training)
    assert facts.growth is not None
    assert facts.growth.by == "stacks"
    assert facts.growth.lines == ("train.py:46 train",)
    assert facts.growth.bytes_per_round == pytest.approx(kept, rel=0.25)
    assert found.cause == "growth"


def test_a_graph_that_is_kept_is_a_leak_of_the_lines_that_made_it():
    """`total += loss`: every activation of every step stays."""
    training = Training(weight=2 * MIB)
    for _ in range(7):
        training.forward(32 * MIB)
        training.alloc(512, LOSS_KEPT)
    found, facts = cause_of(training)
    assert found.cause == "growth"
    assert facts.growth is not None
    assert any("model.py:22" in line for line in facts.growth.lines)


LOSS_KEPT = in_loop(43)


def test_a_leak_behind_the_training_is_found_in_its_own_loop():
    """The evaluation keeps what each of its passes made."""
    training = Training(weight=2 * MIB)
    for _ in range(20):
        training.step(4 * MIB)
    for _ in range(12):
        training.forward(4 * MIB, line=61)
        training.alloc(64 * MIB, in_loop(62))
    found, facts = cause_of(training)
    assert found.cause == "growth"
    assert facts.growth is not None
    assert "train.py:62 train" in facts.growth.lines


def test_a_leak_of_every_fifth_step_is_found():
    training = Training(weight=2 * MIB)
    for number in range(60):
        training.step(4 * MIB)
        if number % 5 == 4:
            training.alloc(128 * MIB, in_loop(47))
    found, facts = cause_of(training)
    assert found.cause == "growth"
    assert facts.growth is not None
    assert facts.growth.lines == ("train.py:47 train",)


def steady(seed: int) -> Program:
    """A training that keeps nothing: lengths vary, and much else."""
    rng = random.Random(seed)
    training = Training(
        layers=rng.choice([2, 6, 24]), weight=rng.choice([1, 16, 128]) * MIB
    )
    ahead: list[int] = []
    caches = 0
    for number in range(rng.choice([4, 5, 6, 8, 12, 50])):
        unit = int(rng.lognormvariate(2, 0.7) * MIB) + 512
        for _ in range(1 if ahead else 3):  # fetched ahead, some batches deep
            ahead += [training.alloc(unit, [at("prefetch", 9), *in_loop(39)])]
        training.free(ahead.pop(0))
        if seed % 5 == 0:  # accumulated over several backwards
            for _ in range(4):
                held = training.forward(unit)
                training.free(*training.backward(held, unit))
        training.step(unit)
        if seed % 3 == 0 and caches < 6 and rng.random() < 0.5:
            # One mask for each length, until all were seen.
            training.alloc(MIB // 16, in_module(25))
            caches += 1
        if seed % 7 == 0 and number % 4 == 3:  # evaluated now and then
            for _ in range(5):
                training.free(*training.forward(unit // 2 + 512, line=61))
    if seed % 2:
        training.forward(8 * MIB)
    return training


@pytest.mark.parametrize("seed", range(60))
def test_a_steady_training_is_no_leak(seed):
    training = steady(seed)
    found, facts = cause_of(training)
    grown = 0 if facts.growth is None else facts.growth.num_bytes
    assert grown <= 0.02 * training.live_bytes
    assert "growth" not in (found.cause, *found.also)


@pytest.mark.parametrize("seed", range(20))
def test_lengths_that_rise_by_chance_are_no_leak(seed):
    """A curriculum: every batch is longer than the one before."""
    training = Training(weight=2 * MIB)
    for number in range(4 + seed % 8):
        training.step((4 + number) * MIB)
    training.forward(16 * MIB)
    found, facts = cause_of(training)
    grown = 0 if facts.growth is None else facts.growth.num_bytes
    assert grown <= 0.02 * training.live_bytes
    assert "growth" not in (found.cause, *found.also)


def test_loading_a_model_is_no_leak():
    """Its lines recur, and keep all that they allocate."""
    program = Program()
    made = [at("__init__", 12, "/home/me/model.py"), at("<module>", 190)]
    for _ in range(40):
        passing = program.alloc(64 * MIB, [at("init_weights", 5), *made])
        program.alloc(256 * MIB, made)
        program.free(passing)
    found, facts = cause_of(program)
    assert facts.growth is None
    assert found.cause == "really_full"
