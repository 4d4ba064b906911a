"""Offsets and bounds of round trips."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.clock.distributed import RoundTrip, best_of

WAY = st.integers(0, 10**9)


@given(
    offset=st.integers(-(10**15), 10**15),
    sent=st.integers(0, 2**60),
    there=WAY,
    answering=WAY,
    back=WAY,
)
def test_the_bound_holds_however_unlike_the_ways_are(
    offset, sent, there, answering, back
):
    got = sent + there + offset
    answered = got + answering
    trip = RoundTrip(sent, got, answered, sent + there + answering + back)
    assert abs(trip.offset_ns - offset) <= trip.error_ns
    assert trip.error_ns <= (there + back) // 2 + 1


def test_a_known_round_trip():
    # There 30, answering 100, back 10; the reference is 1000 ahead.
    trip = RoundTrip(0, 1030, 1130, 140)
    assert (trip.offset_ns, trip.error_ns) == (1010, 21)


def test_the_fastest_round_trip_counts():
    slow = RoundTrip(0, 500 + 90, 500 + 90, 100)
    fast = RoundTrip(1000, 1500 + 5, 1500 + 5, 1010)
    found = best_of([slow, fast, slow])
    assert found is not None
    assert (found.at_ns, found.offset_ns, found.error_ns) == (1005, 500, 6)


def test_times_that_contradict_each_other_count_for_nothing():
    back_before_sent = RoundTrip(100, 50, 60, 90)
    answered_before_got = RoundTrip(0, 50, 40, 90)
    longer_there_than_away = RoundTrip(0, 0, 500, 90)
    trips = [back_before_sent, answered_before_got, longer_there_than_away]
    assert best_of(trips) is None
    assert best_of([]) is None
