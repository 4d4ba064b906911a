"""Ends of iterations, told from the order in which optimizers step."""

from __future__ import annotations

import contextlib
import sys

import pytest

from memboard.collector.running.iterations import Iterations


class Optimizer:
    """What steps, with all that steps inside of it."""

    def __init__(self, *inside: Optimizer, fails: bool = False) -> None:
        self.inside = inside
        self.fails = fails
        self.says = None

    def step(self, iterations: Iterations) -> None:
        iterations.before_step(self, sys._getframe())
        if self.says is not None:
            self.says()
        for one in self.inside:
            one.step(iterations)
        if self.fails:
            raise ValueError("as asked")
        iterations.after_step(self)


def ends_of(order: str, **optimizers: Optimizer) -> str:
    """The order of steps with a bar where an iteration was said to end."""
    told: list[str] = []
    iterations = Iterations(lambda: told.append("|"))
    for name in order:
        one = optimizers.setdefault(name, Optimizer())
        one.says = lambda name=name: told.append(name)
        with contextlib.suppress(ValueError):
            one.step(iterations)
    return "".join(told)


@pytest.mark.parametrize(
    "ends",
    [
        "a|a|a|a|",  # one optimizer: each of its steps
        "d|gdg|dg|dg|",  # two that take turns are one iteration
        "a|bcabc|abc|",
        "d|d|d|d|gd|d|d|d|gd|",  # the faster one counts
        "d|ggd|g|g|dg|g|",  # told late, where the order goes back and forth
        "a|a|a|bb|b|b|",  # other optimizers from some moment on
        "a|a|ba|bab|ab|ab|",  # one more: learnt within two iterations
    ],
)
def test_the_end_of_each_iteration_is_foreseen(ends):
    assert ends_of(ends.replace("|", "")) == ends


def test_an_optimizer_inside_another_is_part_of_its_step():
    inner = Optimizer()
    assert ends_of("ooo", o=Optimizer(inner)) == "o|o|o|"


def test_a_step_that_raised_hides_no_later_one():
    assert ends_of("bggbg", b=Optimizer(fails=True)) == "bg|g|bg|"


def test_hundreds_of_optimizers_of_one_backward_are_one_iteration():
    many = [Optimizer() for _ in range(300)]
    told = []
    iterations = Iterations(lambda: told.append(1))
    for _ in range(10):
        for one in many:
            one.step(iterations)
    assert len(told) == 10
