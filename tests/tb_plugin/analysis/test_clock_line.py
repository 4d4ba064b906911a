"""Offsets between comparisons, and the bounds that grow with the distance from them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.ranks.clock_line import (
    SAME,
    Offset,
    Reading,
    clock_line,
    shifted,
)

SECOND = 10**9


def test_between_two_comparisons_the_offset_is_in_between():
    line = clock_line([Reading(0, 100, 10), Reading(10 * SECOND, 200, 30)])
    assert line.at(0) == Offset(100, 11)
    assert line.at(5 * SECOND).offset_ns == 150
    # The bounds' middle, and 10 ppm of five seconds for what clocks wander.
    assert line.at(5 * SECOND).error_ns == 20 + 50_000 + 1
    assert line.at(10 * SECOND).offset_ns == 200


def test_outside_it_goes_on_with_a_growing_bound():
    line = clock_line([Reading(0, 0, 1000), Reading(10 * SECOND, 10_000, 1000)])
    assert line.at(20 * SECOND).offset_ns == 20_000
    assert line.at(-10 * SECOND).offset_ns == -10_000
    errors = [line.at(n * SECOND).error_ns for n in (10, 11, 20, 100)]
    assert errors == sorted(set(errors))


def test_one_comparison_holds_for_all_times_but_ever_worse():
    line = clock_line([Reading(5 * SECOND, 7, 100)])
    assert line.at(5 * SECOND) == Offset(7, 100)
    assert line.at(6 * SECOND) == Offset(7, 100 + 200_000)
    assert line.at(4 * SECOND) == Offset(7, 100 + 200_000)


def test_unknown_bounds_stay_unknown_and_known_ones_win():
    assert clock_line([]) is None
    assert clock_line([Reading(0, 5, None)]).at(99) == Offset(5, None)
    line = clock_line([Reading(0, 5, None), Reading(1, 8, 20)])
    assert line.at(1) == Offset(8, 20)


def test_a_poor_comparison_beside_a_good_one_counts_for_nothing():
    good = [Reading(0, 0, 1000), Reading(60 * SECOND, 600, 1000)]
    poor = Reading(30 * SECOND, 40_000_000, 50_000_000)
    assert clock_line([*good, poor]) == clock_line(good)


def test_of_comparisons_at_one_moment_the_best_stays():
    line = clock_line([Reading(0, 9, 500), Reading(0, 7, 20), Reading(0, 5, 100)])
    assert line.readings == (Reading(0, 7, 20),)


def test_a_clocks_own_line_changes_nothing():
    assert SAME.at(1_700_000_000 * SECOND).offset_ns == 0
    assert shifted(SAME, 40, 2).readings[0] == Reading(0, 40, 2)


@given(
    drift_ppb=st.integers(-100_000, 100_000),
    start=st.integers(-(10**12), 10**12),
    moments=st.lists(
        st.integers(0, 3600 * SECOND), min_size=1, max_size=12, unique=True
    ),
    data=st.data(),
)
def test_the_bound_contains_the_truth_of_an_even_drift(drift_ppb, start, moments, data):
    def truth(at):
        return start + at * drift_ppb // 10**9

    readings = []
    for at in moments:
        error = data.draw(st.integers(1, 10**7))
        wrong = data.draw(st.integers(-error + 1, error - 1))
        readings.append(Reading(at, truth(at) + wrong, error))
    line = clock_line(readings)
    for at in (*moments, *data.draw(st.lists(st.integers(-SECOND, 3700 * SECOND)))):
        found = line.at(at)
        assert abs(found.offset_ns - truth(at)) <= found.error_ns
    low, high = min(moments), max(moments)
    worst = line.worst_error_ns(low, high)
    assert worst is not None
    assert all(line.at(at).error_ns <= worst for at in moments)


@given(st.lists(st.integers(0, 1000 * SECOND), min_size=1, max_size=8, unique=True))
def test_stretches_are_the_line_itself(moments):
    line = clock_line([Reading(at, at // 7919, 10) for at in moments])
    stretches = line.stretches()
    for at in (*moments, -5, 2000 * SECOND):
        of = [s for s in stretches if s.from_ns <= at] or [stretches[0]]
        assert of[-1].at(at) == line.at(at).offset_ns
