"""The clock that stamps records never goes back, and knows how far the wall clock went."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.clock.process_clock import PROCESS_CLOCK, ProcessClock, now_ns

SECOND = 10**9


class Hands:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000 * SECOND
        self.monotonic = 55 * SECOND

    def clock(self) -> ProcessClock:
        return ProcessClock(lambda: self.wall, lambda: self.monotonic)

    def pass_by(self, ns: int) -> None:
        self.wall += ns
        self.monotonic += ns


def test_it_starts_at_the_wall_clock_and_goes_on_by_the_monotonic_one():
    hands = Hands()
    clock = hands.clock()
    assert clock.now_ns() == hands.wall
    hands.pass_by(3 * SECOND)
    assert clock.now_ns() == hands.wall
    assert clock.ahead_ns() == 0


def test_a_wall_clock_that_is_set_back_does_not_take_times_along():
    hands = Hands()
    clock = hands.clock()
    before = clock.now_ns()
    hands.wall -= 3600 * SECOND
    hands.pass_by(SECOND)
    assert clock.now_ns() == before + SECOND
    assert clock.ahead_ns() == -3600 * SECOND


def test_an_anchor_says_what_recorded_times_are_made_of():
    hands = Hands()
    clock = hands.clock()
    hands.wall += 5 * SECOND
    hands.pass_by(SECOND)
    anchor = clock.anchor()
    assert anchor.wall_ns - anchor.monotonic_ns == clock.to_wall_ns
    assert anchor.wall_ns == clock.now_ns()


def test_a_restart_takes_over_what_was_set_but_no_reading_error():
    hands = Hands()
    clock = hands.clock()
    hands.wall += 300_000  # less than anybody sets a clock by
    clock.restart()
    assert clock.ahead_ns() == 300_000
    hands.wall += 2 * SECOND
    clock.restart()
    assert clock.ahead_ns() == 0
    assert clock.now_ns() == hands.wall


@given(st.lists(st.integers(-(10**12), 10**12), max_size=20))
def test_times_ascend_whatever_is_done_to_the_wall_clock(jumps):
    hands = Hands()
    clock = hands.clock()
    times = [clock.now_ns()]
    for jump in jumps:
        hands.wall += jump
        hands.pass_by(1)
        times.append(clock.now_ns())
    assert times == sorted(set(times))
    assert clock.ahead_ns() == sum(jumps)


def test_the_process_has_one_and_it_is_close_to_the_wall_clock():
    assert now_ns() >= PROCESS_CLOCK.anchor().wall_ns - SECOND
    assert abs(now_ns() - PROCESS_CLOCK.to_wall_ns - time.monotonic_ns()) < 60 * SECOND
